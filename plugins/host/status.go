package host

import "time"

// State is where a plugin is in its life.
type State string

// The states.
const (
	StateStarting State = "starting" // process launched, not ready
	StateHealthy  State = "healthy"
	StateDegraded State = "degraded" // works, but less well than it could: see Problem
	StateBackoff  State = "backoff"  // dead; the next need of it, or a timer, starts it
	StateFailed   State = "failed"   // died too often; tried again after the cool-down
	StateStopped  State = "stopped"  // closed
)

// Status is a plugin's state at one moment.
type Status struct {
	Name     string
	State    State
	Since    time.Time // of the state
	PID      int       // 0: no process
	Path     string    // of the binary
	Digest   string    // its SHA-256, in hex; empty for a built-in one that is not pinned
	Version  string    // of the plugin
	Protocol int       // version of the protocol that is spoken
	Lacks    []string  // what that version has not: see proto.Lacking
	Problem  string    // degraded: what is less well than it could be
	Starts   int       // processes that got healthy
	Failures int       // deaths and failed starts in a row
	NextTry  time.Time // backoff and failed: no start before
	Links    int       // links handed over, by all processes together
	LastErr  error     // why the last process died or did not start
}
