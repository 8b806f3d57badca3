package message

import (
	"fmt"
	"math"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// Peer is an index into the engine's table of procs. The first ones are the
// world ranks in order, AddWorld appends.
type Peer int32

// NoPeer stands for nobody in particular.
const NoPeer Peer = -1

// defaultStageLimit is how much is copied so that the send is complete at once.
// Measured on TCP over loopback, 32 messages in a write, copying makes messages
// of up to 2 KiB at most 4% dearer, those of 4 KiB a third.
const defaultStageLimit = 2 << 10

// Config says what the engine has to know of the job.
type Config struct {
	Self      Peer
	Directory *Directory // of the job
	MaxData   uint32     // C_DATALEN of the job: most data bytes in one packet
	AckMark   uint32
	HiWater   uint32
	Dialect   wire.Dialect

	// RankOf gives the rank that a peer has among those whom a context is for. It is
	// needed with wire.Draft only, and not even then if all contexts are of the world.
	RankOf func(wire.ContextID, Peer) wire.CommRank

	// Unexpected is how many bytes of messages that nobody has asked for this proc keeps of those
	// procs that know of allowances, UnexpectedOf what another proc of the job does; 0: there is
	// no limit, or that proc knows of none; Least: each has the least at the other to begin with.
	Unexpected   int64
	UnexpectedOf func(Peer) int64

	StageLimit   int    // packets with up to so many data bytes are copied into the link's staging memory; 0: default
	FirstRequest uint64 // where request ids begin; 0: 1
}

// Engine is the point-to-point machine of one proc. It is for one goroutine at
// a time. It is made in layers, each of which knows those before it: procs and
// operations, links, what matches messages and receives, what sends, what reads.
type Engine struct {
	reader
}

// procs are the procs that the engine can talk to, and how it deals with each.
type procs struct {
	cfg       Config
	own       standing // among the job's procs
	self      *peer
	directory *Directory
	worlds    []*met // by AddWorld, ascending
	next      Peer   // where the next world begins
	peers     peers
	lost      int  // peers that are down
	pool      pool // of memory for messages that nobody has asked for
}

// operations are the requests under way and the memory of requests that is used again.
type operations struct {
	ids       ids
	requests  slab[Request]
	aparts    slab[scattered]
	buffers   buffers
	sends     int // that the engine is not through with
	completed uint64
	events    uint64
}

// linkTable has the links, and the peers that have something to send by them.
type linkTable struct {
	procs
	operations
	links    []*linkState // by LinkID; nil: not attached
	unrouted fifo[*peer]
	counters Counters
	in       wire.Packet // that is just looked at
}

// matcher is the receiving side: it matches messages with receives.
type matcher struct {
	linkTable
	posted     match.Posted[*Request]
	unexpected match.Unexpected[*Message]
	messages   slab[Message]
	there      func([]byte) bool // nil: the memory of receives can be written
}

// sender turns sends into packets.
type sender struct {
	matcher
	room  Room                     // of buffered sends
	rooms map[wire.ContextID]*Room // of those in some contexts
	out   wire.Packet              // that is just written
}

// reader takes packets and fast-box messages from links and hands them to the others.
type reader struct {
	sender
}

// Counters count what peers do that is odd but harmless.
type Counters struct {
	StraySyncAcks  uint64 // no send waits for it
	StrayCancelNos uint64 // no cancel waits for it
	ShortPackets   uint64 // a packet that could have carried more of its message
	UnknownDestReq uint64 // a continuation packet without our pk_drqid, found by its pk_srqid
	LatePackets    uint64 // of a peer that is down, by the link of others
}

// New makes the engine of the proc cfg.Self. It has no links.
func New(cfg Config) (*Engine, error) {
	if cfg.StageLimit == 0 {
		cfg.StageLimit = defaultStageLimit
	}
	if cfg.FirstRequest == 0 {
		cfg.FirstRequest = 1
	}
	own := standing{maxData: int64(cfg.MaxData), limits: flow.Limits{AckMark: cfg.AckMark, HiWater: cfg.HiWater}}
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

// CheckMemory has the engine ask whether memory can be written before it receives into it. A
// message whose memory cannot is dropped as it comes, and its receive fails with ErrMemory.
func (e *matcher) CheckMemory(there func(b []byte) bool) { e.there = there }

// Counters gives the counts since New.
func (e *linkTable) Counters() Counters { return e.counters }

// Completed counts finished requests, so that a driver which waits for one of
// many looks at them only when the number has changed.
func (e *operations) Completed() uint64 { return e.completed }

// Events counts whatever somebody may be waiting for: requests that finish,
// messages that can be probed, buffered sends that have left. A driver that puts
// goroutines to sleep need not wake them before it has changed.
func (e *operations) Events() uint64 { return e.events }
