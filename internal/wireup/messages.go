package wireup

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/wire"
)

// Kind is what a Message is for; it decides which fields are used, and which descriptors come
// along.
type Kind string

// The messages, in the order in which a proc's life uses them.
const (
	// KindAttach is the first message of a proc that the node has not started, before
	// KindHello: Peer is its own rank, Code the number of its program. Of a proc of a native
	// site, Peer is its rank at the site, Library the site's MPI, and Size how many processes
	// that MPI's launcher has started.
	KindAttach Kind = "attach"
	// KindHello is the proc's first message, from mpi.Init.
	KindHello Kind = "hello"
	// KindWelcome answers KindHello once the whole job has been set up. It carries three
	// descriptors: the link to the agent, a memfd with the Job as JSON, and one with the
	// table of its procs. If Board is set, those of the host's Board follow.
	KindWelcome Kind = "welcome"
	// KindOpen asks the node for a direct link to Peer or, with Resumable, for another
	// connection of a resumable link. Of a peer in another world both have the same Meeting.
	KindOpen Kind = "open"
	// KindLink gives the proc a link to Peer, which the proc has requested or the peer has opened.
	// Its descriptors are a socket (fd), memory and the socket with it (peer-shm, ring), or a
	// socket and the pipe that shows its end (stream, grpc); Reason says why that data plane was
	// chosen. Without descriptors, Reason says why there is no direct link, and packets to Peer go
	// through the agent.
	KindLink Kind = "link"
	// KindFailed informs a proc that the procs from Peer to Last are lost, and why, and that the
	// job continues (docs/decisions/0058-jobs-outlive-their-procs.md).
	KindFailed Kind = "failed"
	// KindFini reports that the proc has passed the barrier of Finalize and that everything it sent
	// is on its links. It sends nothing after that.
	KindFini Kind = "fini"
	// KindLost reports that the proc has lost its link to Peer, and why, before the program can see
	// it. The loss ends the job if nothing else does, unless it is InOrderBase
	// (docs/decisions/0037-causes-and-consequences.md).
	KindLost Kind = "lost"
	// KindAbort reports a call of MPI_Abort, with Code and Reason.
	KindAbort Kind = "abort"
	// KindDown informs a proc that the job is ending and why: another proc died, a proc called
	// Abort, or the operator ended the job. The proc should exit, with status Code.
	KindDown Kind = "down"
	// KindStats without Stats asks a proc about its links; with Stats it is the answer, or
	// a part of it. A library that does not know this message does not answer.
	KindStats Kind = "stats"
	// KindAccount reports what the proc has counted (Account), before KindFini, and has no answer.
	KindAccount Kind = "account"
	// KindTrace reports that the proc's trace could not be written (Cut, Reason), and that it has
	// no packets after that.
	KindTrace Kind = "trace"
)

// Message is one record of the control socket. Its Kind says which fields are used.
type Message struct {
	Kind      Kind            `json:"kind"`
	Version   int             `json:"version,omitempty"`    // hello, welcome: version of this protocol
	Library   string          `json:"library,omitempty"`    // hello, attach: the MPI library and its version
	Size      int             `json:"size,omitempty"`       // attach
	Board     bool            `json:"board,omitempty"`      // hello: can use one; welcome: gets one
	Peer      wire.WorldRank  `json:"peer"`                 // open, link, lost, attach
	Last      wire.WorldRank  `json:"last,omitempty"`       // failed
	Transport string          `json:"transport,omitempty"`  // link
	DataPlane string          `json:"data_plane,omitempty"` // link; empty: fd
	Side      int             `json:"side,omitempty"`       // link by peer-shm or ring: which side of the memory is the proc's
	Code      int             `json:"code,omitempty"`       // abort, down: exit status; attach: number of the program
	Calls     bool            `json:"calls,omitempty"`      // stats, asked: also list the calls of MPI in which it waits, which takes longer
	Reason    string          `json:"reason,omitempty"`     // link, lost, failed, abort, down, trace
	InOrder   bool            `json:"in_order,omitempty"`   // lost: in Finalize, the peer has ended the link: it may have passed the barrier
	Account   *Account        `json:"account,omitempty"`    // account
	Cut       *TruncatedTrace `json:"cut,omitempty"`        // trace
	Stats     *Stats          `json:"stats,omitempty"`      // stats: the answer
	Resumable *Resumable      `json:"lasting,omitempty"`    // link, open: of a link that outlives its connections
	Compress  *Compress       `json:"compress,omitempty"`   // link: its bytes go compressed
	Meeting   *OtherWorld     `json:"meeting,omitempty"`    // open, link: of a peer in another world; and the messages of meeting.go
}

// TruncatedTrace describes a trace file that is incomplete.
type TruncatedTrace struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"` // bytes that were written
}

// Compress describes how the bytes of a link are compressed (core/compress). Both ends compress.
type Compress struct {
	Algorithm string `json:"algorithm"` // Zstd
	Level     int    `json:"level"`     // level at which this end compresses
	Min       int    `json:"min"`       // minimum bytes that leave together to be compressed
}

func (c *Compress) String() string {
	return fmt.Sprintf("%s, level %d, from %d bytes", c.Algorithm, c.Level, c.Min)
}

// Zstd is the algorithm of RFC 8878.
const Zstd = "zstd"

// Version is the version of this protocol. Node and library may come from different builds,
// and must have the same version.
const Version = 6

// Job is what a proc learns of its job; it comes with KindWelcome.
type Job struct {
	Name string         `json:"name"`
	Rank wire.WorldRank `json:"rank"`

	// AppNum is the index of the proc's program in the job file (MPI_APPNUM).
	AppNum int `json:"appnum,omitempty"`

	// Procs are by world rank; nil in a job that was read with a Table, of which Views are a part: see
	// Proc.
	Procs []Proc `json:"-"`
	Views []View `json:"views,omitempty"`
	table *Table

	DataLen   uint32 `json:"data_len"` // D: most user data bytes in one packet
	TagUB     int32  `json:"tag_ub"`
	XSize     int32  `json:"xsize"`     // boundary between short and long collectives, bytes
	MaxLinear int32  `json:"maxlinear"` // boundary between linear and tree collectives, masters
	// Direct is the number of sites of ours that exchange messages of collective operations all at
	// once, and DirectLong the number of bytes from which they combine vectors part by part; 0 and
	// 0: they use trees.
	Direct     int32  `json:"direct,omitempty"`
	DirectLong int64  `json:"direct_long,omitempty"`
	AckMark    uint32 `json:"ackmark"`
	HiWater    uint32 `json:"hiwater"`

	// Dialect is the layout of packets, the same for all procs of a job.
	Dialect wire.Dialect `json:"dialect,omitempty"`

	Spin string `json:"spin,omitempty"` // "auto", "0" or a duration: time of polling before sleeping
	// Progress is the interval at which the proc processes its messages while the program computes;
	// 0: only in calls of MPI.
	Progress time.Duration `json:"progress_ns,omitempty"`

	Trace string `json:"trace,omitempty"` // file to print packets to; empty: none

	// Timeline is the file to which the proc's calls of MPI are written; empty: none.
	Timeline string `json:"timeline,omitempty"`

	// TimelineEach makes the proc write short calls one by one.
	TimelineEach bool `json:"timeline_each,omitempty"`

	// Account makes the proc count its calls of MPI, and for which procs it waits in them.
	Account bool `json:"account,omitempty"`

	// Lend makes the proc allocate memory of MPI_Alloc_mem so that it can be lent to plugins: links
	// may be by data plane "rdma".
	Lend bool `json:"lend,omitempty"`

	// World is the head of the description of this job for others, an encoded Description of
	// core/dynamic, and the whole description in a job without a Table: see Describe. Card is this
	// proc's business card. Both are empty if the node cannot meet other worlds, because it has no
	// transports for direct links.
	World []byte `json:"world,omitempty"`
	Card  string `json:"card,omitempty"`

	// Parent is the port that the procs of a spawned job call in Init.
	Parent string `json:"parent,omitempty"`

	// Native is set if the site's own MPI may be used between procs of this proc's site, as the
	// path to each of them says, and takes part in collective operations of procs that use it.
	Native bool `json:"native,omitempty"`

	// Check makes the members of communicators compare their calls of collective
	// operations. It is the same for all procs of the job.
	Check bool `json:"check,omitempty"`
	// Survive is set if the job continues without procs that are lost.
	Survive bool `json:"survive,omitempty"`
}

// Proc is what a proc knows of another proc.
type Proc struct {
	Host   []byte // 16 bytes, as on the wire
	PID    int64
	Client wire.ClientRank
	Node   wire.HostRank // host rank of its agent
	Path   Path
	Data   string // representation of user data exchanged with it, as core/datatype names it
	// Machine is equal for procs that share a kernel and a user, if that is known; procs of
	// one Node always do.
	Machine string

	// Foreign is set if the proc runs another MPI library, or may: it can be expected to do only
	// what IMPI requires.
	Foreign bool

	// ReduceOnPointToPoint is set if the proc's client uses the point-to-point context for Reduce,
	// as LAM/MPI does.
	ReduceOnPointToPoint bool

	// Unexpected is the number of bytes of unexpected messages that the proc keeps; 0: no limit, or
	// unknown.
	Unexpected int64

	// Allows is set if Unexpected is unknown, but both procs use allowances and begin with the
	// smallest one.
	Allows bool
}

// Path is the way on which packets reach a proc.
type Path string

// The paths.
const (
	PathSelf    Path = "self"
	PathDirect  Path = "direct"  // ask the node for a link; fall back to the agent
	PathChannel Path = "channel" // through the agents
	PathNative  Path = "native"  // by the MPI library of the site of both procs
)
