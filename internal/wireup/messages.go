package wireup

import "github.com/openimpi/impi/core/wire"

// Kind says what a Message is about, and who sends it.
type Kind string

// The messages, in the order in which a proc's life uses them.
const (
	// KindHello is the proc's first message, from mpi.Init.
	KindHello Kind = "hello"
	// KindWelcome answers it once the whole job has been set up. It carries two
	// descriptors: the link to the agent, and a memfd with the Job as JSON; with
	// Board those of the host's Board follow.
	KindWelcome Kind = "welcome"
	// KindOpen asks the node for a direct link to Peer, or with Resumable for a
	// further connection of one.
	KindOpen Kind = "open"
	// KindLink gives the proc a link to Peer, which it asked for or which the
	// peer opened, with its descriptors: a socket's (fd), those of memory and of the
	// socket beside it (peer-shm, ring), or those of a socket and of the pipe that
	// tells of its end (stream, grpc); Reason says why that data plane. Without any,
	// Reason says why no direct link could be had, and packets to Peer go through the
	// agent.
	KindLink Kind = "link"
	// KindFini says that the proc has passed the barrier of Finalize and that
	// everything it sent is on its links. It sends nothing after that.
	KindFini Kind = "fini"
	// KindLost says that the proc has lost its link to Peer, and why, before the
	// program can see it. A node that does not know it loses nothing but a better
	// message of what happens next.
	KindLost Kind = "lost"
	// KindAbort is MPI_Abort, with Code and Reason.
	KindAbort Kind = "abort"
	// KindDown tells a proc that the job is ending and why: another proc died,
	// somebody called Abort, the operator wants it. The proc should exit.
	KindDown Kind = "down"
	// KindStats without Stats asks a proc about its links; with Stats it is the
	// answer, or a part of it. A library that does not know it does not answer.
	KindStats Kind = "stats"
	// KindTrace tells that the proc's trace could not be written (Cut, Reason): it has
	// no more packets from there on.
	KindTrace Kind = "trace"
)

// Message is one record of the control socket. Which fields mean something
// depends on its Kind.
type Message struct {
	Kind      Kind           `json:"kind"`
	Version   int            `json:"version,omitempty"`    // hello, welcome: of this protocol
	Library   string         `json:"library,omitempty"`    // hello: the MPI library and its version
	Board     bool           `json:"board,omitempty"`      // hello: can use one; welcome: gets one
	Peer      wire.WorldRank `json:"peer"`                 // open, link, lost
	Transport string         `json:"transport,omitempty"`  // link
	DataPlane string         `json:"data_plane,omitempty"` // link; empty: fd
	Side      int            `json:"side,omitempty"`       // link by peer-shm or ring: which side of the memory is the proc's
	Code      int            `json:"code,omitempty"`       // abort: exit status
	Reason    string         `json:"reason,omitempty"`     // link, lost, abort, down, trace
	Cut       *CutTrace      `json:"cut,omitempty"`        // trace
	Stats     *Stats         `json:"stats,omitempty"`      // stats: the answer
	Resumable *Resumable     `json:"lasting,omitempty"`    // link, open: of a link that outlives its connections
	Meeting   *Meeting       `json:"meeting,omitempty"`    // open, link: of a peer in another world; and the messages of meeting.go
}

// CutTrace is a file that has not all it should have.
type CutTrace struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"` // that were written
}

// Version is the version of this protocol. Node and library of one job may
// come from different builds; they must agree on it.
const Version = 1

// Job is all that a proc knows of its job, sent with KindWelcome.
type Job struct {
	Name string         `json:"name"`
	Rank wire.WorldRank `json:"rank"`

	// AppNum is the place of the proc's program among those of the job file.
	AppNum int `json:"appnum,omitempty"`

	Procs []Proc `json:"procs"` // by world rank

	DataLen   uint32 `json:"data_len"` // D: most user data bytes in one packet
	TagUB     int32  `json:"tag_ub"`
	XSize     int32  `json:"xsize"`     // short/long collectives, bytes
	MaxLinear int32  `json:"maxlinear"` // linear/tree collectives, masters
	AckMark   uint32 `json:"ackmark"`
	HiWater   uint32 `json:"hiwater"`

	// Dialect is how packets are written to procs of other clients, and to all others
	// as well: one job has one.
	Dialect wire.Dialect `json:"dialect,omitempty"`

	Spin  string `json:"spin,omitempty"`  // "auto", "0" or a duration: how long to poll before sleeping
	Trace string `json:"trace,omitempty"` // file to print packets to; empty: none

	// World describes this job to others, as core/dynamic encodes a Description, and
	// Card is this proc's business card. Both are empty where the node cannot meet other
	// worlds: it has no transports for direct links.
	World []byte `json:"world,omitempty"`
	Card  string `json:"card,omitempty"`

	// Parent is the port that the procs of a spawned job call in Init.
	Parent string `json:"parent,omitempty"`

	// Check has the members of communicators compare what collective operations
	// they call. All procs of the job have it, or none.
	Check bool `json:"check,omitempty"`
}

// Proc is what a proc knows of another.
type Proc struct {
	Host   []byte          `json:"host"` // 16 bytes, as on the wire
	PID    int64           `json:"pid"`
	Client wire.ClientRank `json:"client"`
	Node   wire.HostRank   `json:"node"` // host rank of its agent
	Path   Path            `json:"path"`
	Data   string          `json:"data"` // representation of user data exchanged with it, as core/datatype names it
	// Machine is the same for procs that share a kernel and a user, where that is
	// known; those of one Node do anyway.
	Machine string `json:"machine,omitempty"`

	// Foreign says that it runs another MPI library, or may: nothing is known of it
	// but what IMPI has all libraries do.
	Foreign bool `json:"foreign,omitempty"`

	// ReduceOnPointToPoint says that its client uses the point-to-point context
	// for Reduce, as LAM/MPI does.
	ReduceOnPointToPoint bool `json:"reduce_on_p2p,omitempty"`

	// Unexpected is how many bytes of messages that nobody has asked for it keeps; 0: as many
	// as come, or it is not known.
	Unexpected int64 `json:"unexpected,omitempty"`

	// Allows says that Unexpected is not known, that both procs know of allowances, and that
	// each has the least at the other to begin with.
	Allows bool `json:"allows,omitempty"`
}

// Path is the way that packets to a proc take.
type Path string

// The paths.
const (
	PathSelf    Path = "self"
	PathDirect  Path = "direct"  // ask the node for a link; fall back to the agent
	PathChannel Path = "channel" // through the agents
)
