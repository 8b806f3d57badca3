package wireup

import "time"

// The messages about other worlds: ports, names and spawned procs. A node that does
// not know them gives no World in its Job.
const (
	// KindPort opens a port (Meeting.Key, Backlog). From then on the node keeps who
	// calls it. With a Request it is answered by a KindPort, once callers can come, or
	// with a Reason.
	KindPort Kind = "port"
	// KindUnport closes a port (Key). Those who wait there are refused.
	KindUnport Kind = "unport"
	// KindTake asks for the next caller of a port (Key). It is answered, perhaps much
	// later, by a KindCaller with the same Request: with the descriptors of a link, as
	// KindLink has them, or with a Reason. A KindTake with Cancel ends the wait of the one
	// with the same Request, which is answered in any case.
	KindTake   Kind = "take"
	KindCaller Kind = "caller"
	// KindCall calls a port (Key, Card, Timeout). The answer is a KindCalled with the
	// same Request, as that to KindTake.
	KindCall   Kind = "call"
	KindCalled Kind = "called"
	// KindForget tells that the proc has closed its link to Peer of World, so that
	// another one can be made: the node refuses what comes beside a link.
	KindForget Kind = "forget"
	// KindPublish, KindUnpublish and KindLookup are about names of ports (Service,
	// Port, Info). The answer is a KindNamed with the same Request.
	KindPublish   Kind = "publish"
	KindUnpublish Kind = "unpublish"
	KindLookup    Kind = "lookup"
	KindNamed     Kind = "named"
	// KindSpawn starts procs (Spawn, and Port, which they call). The answer is a
	// KindSpawned with the same Request, when all are in Init or none is left. With
	// Cancel it ends those that the one with the same Request has started: they and the
	// parents could not connect.
	KindSpawn   Kind = "spawn"
	KindSpawned Kind = "spawned"
	// KindPart tells that the proc has no communicator any more with the procs that
	// its KindSpawn with the same Request has started. Until then, and from when the
	// proc has closed the port that they called, a failure of one world is one of
	// both.
	KindPart Kind = "part"
)

// Meeting is what is said of other worlds. In KindOpen and KindLink it tells that
// Peer is a rank of World and not of the job; in KindOpen it has that world's Secret and
// the peer's Card too.
type Meeting struct {
	// Request is the proc's choice, and pairs answers with questions.
	Request uint64 `json:"request,omitempty"`
	Cancel  bool   `json:"cancel,omitempty"`

	World  []byte `json:"world,omitempty"`  // dynamic.World
	Secret []byte `json:"secret,omitempty"` // dynamic.Token
	Key    []byte `json:"key,omitempty"`    // dynamic.Token of a port
	Card   string `json:"card,omitempty"`

	Backlog int           `json:"backlog,omitempty"` // callers that may wait; 0: the node's default
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	Waited  time.Duration `json:"waited_ns,omitempty"` // caller: at the port, before it was taken

	Service string            `json:"service,omitempty"`
	Port    string            `json:"port,omitempty"` // dynamic.Port's text, or what was published
	Info    map[string]string `json:"info,omitempty"`

	Spawn *Spawn `json:"spawn,omitempty"` // spawn: what to start
	Codes []int  `json:"codes,omitempty"` // spawned: MPI error classes, for each proc that was asked for

	// Class is the MPI error class of an answer that is none; Reason of the message
	// says why. 0: it went well.
	Class int `json:"class,omitempty"`
}

// Spawn says what procs to start: one world of all commands.
type Spawn struct {
	Commands []Command `json:"commands"`
}

// Command is one program of a Spawn.
type Command struct {
	Path  string            `json:"path"`
	Args  []string          `json:"args,omitempty"`
	Procs int               `json:"procs"`
	Info  map[string]string `json:"info,omitempty"` // host, wdir, path, soft, env, arch, ...
}
