package message

import (
	"fmt"
	"math"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// Peer is an index into the engine's table of procs. The first ones are the world ranks in order,
// AddWorld appends further ones.
type Peer int32

// NoPeer stands for no particular peer.
const NoPeer Peer = -1

// defaultStageLimit is the default of Config.StageLimit. Measured on TCP over loopback with
// 32 messages in a write, copying costs at most 4% for messages of up to 2 KiB, and a third
// for 4 KiB.
const defaultStageLimit = 2 << 10

// Config describes the job to the engine.
type Config struct {
	Self      Peer
	Directory *Directory // of the job
	MaxData   uint32     // C_DATALEN of the job: maximum data bytes in one packet
	AckMark   uint32
	HiWater   uint32
	Dialect   wire.Dialect

	// RankOf returns the rank of a peer in the group that a context belongs to. It is
	// needed with wire.Draft only, and not even then if all contexts are those of the
	// world.
	RankOf func(wire.ContextID, Peer) wire.CommRank

	// Unexpected is the number of bytes of unexpected messages that this proc keeps from procs that
	// support allowances, and UnexpectedOf returns the same for another proc of the job. 0 means
	// that there is no limit, or that the proc does not support allowances; LeastAllowance means
	// that both procs begin with the least allowance at each other.
	Unexpected   int64
	UnexpectedOf func(Peer) int64

	StageLimit   int    // packets with up to this many data bytes are copied into the link's staging memory; 0: default
	FirstRequest uint64 // the first request ID; 0: 1
}

// Engine is the point-to-point engine of one proc. Only one goroutine at a time may use it. It is
// made in layers, each of which uses only those before it: procs and operations, links, matching of
// messages and receives, sending, reading.
type Engine struct {
	reader
}

// procs are the procs that the engine can talk to, and how it deals with each.
type procs struct {
	cfg       Config
	own       worldTerms // terms for the procs of the own job
	self      *peer
	directory *Directory
	worlds    []*met // added by AddWorld, ascending
	next      Peer   // first number of the next world
	peers     peers
	lost      int  // peers that are down
	pool      pool // memory for unexpected messages
}

// operations are the requests under way, and the memory of requests that is reused.
type operations struct {
	ids           ids
	requests      slab[Request]
	scatteredSlab slab[scattered]
	buffers       buffers
	sends         int // sends that are not finished inside the engine
	completed     uint64
	events        uint64
}

// linkTable has the links, and the peers that have something to send by them.
type linkTable struct {
	procs
	operations
	links    []*linkState // attached links, by LinkID; nil: not attached
	unrouted fifo[*peer]
	counters Counts
	in       wire.Packet // the packet that is being handled
}

// matcher is the receiving side: it matches messages with receives (IMPI ch.3, Message Matching;
// MPI-4.1, 3.2.4).
type matcher struct {
	linkTable
	posted     match.Posted[*Request]
	unexpected match.Unexpected[*Message]
	messages   slab[Message]
	there      func([]byte) bool // reports whether memory of a receive can be written; nil: all can
	failed     map[wire.ContextID]error
	gaveUp     bool // a context has failed, so packets may come that no request waits for
}

// sender turns sends into packets (IMPI ch.3, Message Passing Protocols).
type sender struct {
	matcher
	room  BufferSpace                     // for buffered sends
	rooms map[wire.ContextID]*BufferSpace // for buffered sends in some contexts
	out   wire.Packet                     // the packet that is being written
}

// reader takes packets and fast-box messages from links and passes them to sender and matcher.
type reader struct {
	sender
}

// Counts count unusual but harmless actions of peers.
type Counts struct {
	StraySyncAcks  uint64 // SYNCACKs that no send waits for
	StrayCancelNos uint64 // CANCELNOs that no cancel waits for
	ShortPackets   uint64 // packets that could have carried more of their message
	UnknownDestReq uint64 // continuation packets without our pk_drqid, found by their pk_srqid
	LatePackets    uint64 // packets of a peer that is down, by others' links, or of a context given up
}

// New makes the engine of the proc cfg.Self. It has no links.
func New(cfg Config) (*Engine, error) {
	if cfg.StageLimit == 0 {
		cfg.StageLimit = defaultStageLimit
	}
	if cfg.FirstRequest == 0 {
		cfg.FirstRequest = 1
	}
	own := worldTerms{maxData: int64(cfg.MaxData), limits: flow.Limits{AckMark: cfg.AckMark, HiWater: cfg.HiWater}}
	if err := own.check(); err != nil {
		return nil, err
	}
	switch {
	case cfg.Directory == nil:
		return nil, fmt.Errorf("%w: no directory of the job's procs", ErrConfig)
	case cfg.Self < 0 || int(cfg.Self) >= cfg.Directory.Len():
		return nil, fmt.Errorf("%w: own rank %d in a job of %d procs", ErrConfig, cfg.Self, cfg.Directory.Len())
	case cfg.StageLimit < 0 || cfg.StageLimit > stageSize/4:
		return nil, fmt.Errorf("%w: stage limit %d, must be 0 to %d", ErrConfig, cfg.StageLimit, stageSize/4)
	case cfg.Unexpected < 0 || cfg.Unexpected > math.MaxInt64/4:
		return nil, fmt.Errorf("%w: %d bytes of unexpected messages", ErrConfig, cfg.Unexpected)
	case cfg.FirstRequest > math.MaxInt64:
		return nil, fmt.Errorf("%w: first request %d leaves no room for more", ErrConfig, cfg.FirstRequest)
	}
	e := &Engine{}
	e.cfg, e.own, e.directory = cfg, own, cfg.Directory
	e.next = Peer(cfg.Directory.Len())
	e.ids = ids{first: cfg.FirstRequest}
	if n := cfg.Directory.Len() - 1; cfg.Unexpected > 0 {
		e.pool.size = max(0, cfg.Unexpected-int64(n)*Allowance(cfg.Unexpected, n))
	}
	e.own.self = cfg.Directory.Proc(cfg.Self)
	e.self = e.newPeer(cfg.Self)
	return e, nil
}

// CheckMemory sets a function that the engine calls before it receives into memory, and that
// reports whether the memory can be written. If it cannot, the message is dropped as it comes, and
// its receive fails with ErrMemory.
func (e *matcher) CheckMemory(there func(b []byte) bool) { e.there = there }

// Completed returns the number of finished requests, so that a driver that waits for one of
// many looks at them only when the number has changed.
func (e *operations) Completed() uint64 { return e.completed }

// Events returns the number of events that a blocked MPI call may be waiting for: requests that
// finish, messages that can be probed, buffered sends that have left. A driver that puts goroutines
// to sleep need not wake them before this number has changed.
func (e *operations) Events() uint64 { return e.events }
