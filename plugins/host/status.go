package host

import "time"

// State is the state of a plugin's process.
type State string

// The states.
const (
	StateStarting State = "starting" // process launched, not ready
	StateHealthy  State = "healthy"
	StateDegraded State = "degraded" // works, but not as well as it could: see Problem
	StateBackoff  State = "backoff"  // dead; started again when it is needed, or by a timer
	StateFailed   State = "failed"   // died too often; started again after the cool-down
	StateStopped  State = "stopped"  // closed
)

// Status is a plugin's state at one moment.
type Status struct {
	Name     string
	State    State
	Since    time.Time // when the state began
	PID      int       // 0: no process
	Path     string    // of the binary
	Digest   string    // its SHA-256, in hex; empty for a built-in one that is not pinned
	Version  string    // of the plugin
	Protocol int       // version of the protocol that is spoken
	Lacks    []string  // names of the additions that this version lacks: see proto.Lacking
	Problem  string    // in StateDegraded: what works less well than it could
	Starts   int       // processes that became healthy
	Failures int       // deaths and failed starts in a row
	NextTry  time.Time // in StateBackoff and StateFailed: no start before this time
	Links    int       // links that CountLink has counted, of all processes
	LastErr  error     // why the last process died or did not start
}
