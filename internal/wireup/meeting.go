package wireup

import "time"

// The messages about other worlds: ports, names and spawned procs. A node that does not
// know them leaves World in its Job empty.
const (
	// KindPort opens a port (Meeting.Key, Backlog). From then on the node keeps connections to
	// it. With a Request it is answered by a KindPort: when others can connect, or with a
	// Reason.
	KindPort Kind = "port"
	// KindClosePort closes a port (Key). Connections that wait there are refused.
	KindClosePort Kind = "unport"
	// KindAccept asks for the next connection to a port (Key). The answer, perhaps much
	// later, is a KindAccepted with the same Request: with the descriptors of a link, as in
	// KindLink, or with a Reason. A KindAccept with Cancel ends the wait of the one with the
	// same Request, which is answered in any case.
	KindAccept   Kind = "take"
	KindAccepted Kind = "caller"
	// KindConnect connects to a port (Key, Card, Timeout). The answer is a KindConnected with
	// the same Request, in the form of KindAccepted.
	KindConnect   Kind = "call"
	KindConnected Kind = "called"
	// KindForget reports that the proc has closed its link to Peer of World, so that another one
	// can be made: until then the node refuses further links.
	KindForget Kind = "forget"
	// KindPublish, KindUnpublish and KindLookup are about port names (Service, Port, Info).
	// The answer is a KindNamed with the same Request.
	KindPublish   Kind = "publish"
	KindUnpublish Kind = "unpublish"
	KindLookup    Kind = "lookup"
	KindNamed     Kind = "named"
	// KindSpawn starts procs (Spawn, and Port, to which they connect). The answer is a
	// KindSpawned with the same Request, when all are in Init or all have ended. With
	// Cancel it ends the procs that the KindSpawn with the same Request has started,
	// because they and their parents could not connect.
	KindSpawn   Kind = "spawn"
	KindSpawned Kind = "spawned"
	// KindDisconnect reports that the proc has no communicator any more with the procs that its
	// KindSpawn with the same Request has started. From the time when the proc closed the port to
	// which they connected until then, a failure of one world ends both.
	KindDisconnect Kind = "part"
)

// OtherWorld has the fields about other worlds. In KindOpen and KindLink it means that Peer is a
// rank of World and not of the job; in KindOpen it also has that world's Secret and the peer's
// Card, as the node keeps neither: also in one by which a link is resumed.
type OtherWorld struct {
	// Request is a number that the proc chooses, to match answers with requests.
	Request uint64 `json:"request,omitempty"`
	Cancel  bool   `json:"cancel,omitempty"`

	World  []byte `json:"world,omitempty"`  // dynamic.WorldID
	Secret []byte `json:"secret,omitempty"` // dynamic.Token
	Key    []byte `json:"key,omitempty"`    // dynamic.Token of a port
	Card   string `json:"card,omitempty"`

	Backlog int           `json:"backlog,omitempty"` // connections that may wait; 0: the node's default
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	Waited  time.Duration `json:"waited_ns,omitempty"` // accepted: time that the connection waited at the port

	Service string            `json:"service,omitempty"`
	Port    string            `json:"port,omitempty"` // text of a dynamic.Port, or what was published
	Info    map[string]string `json:"info,omitempty"`

	Spawn *Spawn `json:"spawn,omitempty"` // spawn: what to start
	Codes []int  `json:"codes,omitempty"` // spawned: MPI error class of each proc that was asked for

	// LifeCheck, of KindOpen: the proc had a link to the peer, and wants to know whether that lives.
	LifeCheck bool `json:"life_check,omitempty"`
	// Lives, of a link that could not be made: the node of the peer has answered that it has one to
	// this proc.
	Lives bool `json:"lives,omitempty"`

	// Class is the MPI error class of a request that has failed; Reason of the message gives the
	// cause. 0: it has succeeded.
	Class int `json:"class,omitempty"`
}

// Spawn describes the procs to start: one world with all commands.
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
