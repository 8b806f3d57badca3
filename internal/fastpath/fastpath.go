// Package fastpath has the memory by which C code sends and receives fast-box messages, does
// collective operations on the host's board, and one-sided ones in memory that the host's procs
// share, without entering Go (docs/decisions/0030-fast-boxes.md, 0054-origins-access-shared-memory.md);
// cmd/libmpi's fastpath.h declares it for C. It has what
// C must know of a proc's peers, communicators and receives, and the gate that keeps C out
// while Go uses it.
//
// Code that has passed the gate may do what Go would do while the proc is locked. C does an
// operation completely, or changes nothing and enters Go. When Go has closed the gate it
// takes over the receives that C has left waiting. So a receive is in one of two lists, and
// C's are younger than Go's.
package fastpath

import (
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Sizes of the tables.
const (
	Peers    = 64   // procs of this host that use fast boxes with this one
	Comms    = 64   // communicators, each at a fixed place
	Ranks    = 1024 // of each communicator: C reaches only these by fast boxes
	Requests = 256  // of C
	Members  = 64   // of a board
	Windows  = 64   // each at a fixed place
	Teams    = 64   // communicators of the site's own MPI
)

// What C does on a board, in bytes.
const (
	BoardMost      = 32 << 10 // that a member posts, or gets
	BoardPair      = 8 << 10  // in a block, with two members
	BoardAllreduce = 4 << 10  // in a vector of Allreduce
	BoardStart     = 32 << 10 // a member posts less in a nonblocking operation
)

// From how many bytes on a member lends what it would post
// (docs/decisions/0023-a-board-for-each-host.md).
const (
	BoardLend               = 8<<10 + 1   // where each proc of the host has a core
	BoardLendOversubscribed = 32<<10 + 1  // where procs share cores
	BoardLendBcast          = 128<<10 + 1 // at least, of Bcast
	BoardLendMost           = 4 << 20     // that C lends, or gets
	BoardLendAllreduce      = 256<<10 + 1 // at least, of Allreduce
	BoardPiece              = 128 << 10   // of a reduction of what is lent
	BoardFarOwn             = 1 << 20     // from here on a member copies its own block around the caches
)

// BoardFound is after how many waits in a row that found all that they needed at once a start does not wait until
// the others can find its post (docs/decisions/0075-a-start-does-not-wait.md).
const BoardFound = 4

// BoardSeldom is the most operations on a board between two looks at the links, which Go does.
const BoardSeldom = 32

// What C does by the site's own MPI.
const (
	LongMost   = 4 << 20 // bytes of a message
	TeamMost   = 4 << 20 // bytes of an operation
	TeamSeldom = 1024    // of its operations, one is left to Go, which looks at the links
)

// What C does on windows.
const (
	WindowMost   = 256 << 10 // bytes of an operation
	WindowSeldom = 128       // of C's flushes with nothing to do, one is left to Go, which makes progress
)

// The operations that C does on a board, as the board calls them.
const (
	BoardBarrier    = 0
	BoardBcast      = 1
	BoardGather     = 2
	BoardScatter    = 4
	BoardAllgather  = 6
	BoardAlltoall   = 8
	BoardReduce     = 11
	BoardAllreduces = 12

	BoardReduceScatterBlock = 14
)

// The values of Gate.
const (
	Open   = 0
	Inside = 1 // C code is inside
	Closed = 2
)

// The values of State of a Request.
const (
	Free    = 0
	Posted  = 1 // a receive that waits
	Done    = 2
	Adopted = 3 // Go has taken it over
	Moving  = 4 // the site's MPI is sending or receiving its data
)

// None is an index that stands for no entry.
const None = -1

// Every is the peer of a receive from any source.
const Every = -2

// OnBoard is the peer of a nonblocking collective operation.
const OnBoard = -3

// The predefined operations of reductions that C does, as it calls them; 0 is none.
const (
	Sum = 1 + iota
	Prod
	Max
	Min
	LAnd
	LOr
	LXor
	BAnd
	BOr
	BXor
	Ops
)

// Memory is all of that memory. It belongs to a proc, and is not allocated by Go.
type Memory struct {
	Gate       atomic.Uint32
	LeaveAsked atomic.Uint32 // 1: Go wants C to leave
	Polls      int32         // how often to look before Go has to wait, or C yields; C changes it, too
	Streak     uint32        // receives in a row that have polled nothing else
	First      int32         // first of the waiting receives
	Last       int32
	Spare      int32         // first of the free requests
	Used       int32         // how many of Peers, Boards and Windows
	Top        int32         // no entry of Peers from here on is used
	Yields     uint32        // 1: whoever waits at the board offers the core before it sleeps
	Counts     uint32        // 1: C measures its waits
	Busy       atomic.Uint32 // 1: something needs progress between calls; C does operations on windows alone
	Starts     uint32        // how many operations there are in Begun
	Shared     uint32        // a yield that takes longer lets another thread run, in nanoseconds
	Serves     uint32        // 1: Go serves other procs in between, so C waits for a moment alone
	_          uint32        // C counts in it
	Peers      [Peers]Peer
	Comms      [Comms]Comm
	Table      [Requests]Request
	Boards     [board.Slots]board.State // of communicators, by their slots
	Windows    [Windows]Window
	Waited     [board.Slots][Members]uint64 // for how long C has waited for each member, by calls.Elapsed
	Begun      [board.Slots]Begun
	Shorts     link.CarrierCalls // by which messages go to and come from peers with a Carrier
	Teams      [Teams]Team       // by the numbers of the communicators of the site's own MPI
	Moves      Moves
}

// Moves are the requests of Table whose data the site's own MPI is moving, in the order in which they have
// begun to.
type Moves struct{ First, Last int32 }

// Peer is a peer that is reached by fast boxes.
type Peer struct {
	link.FastBoxes
	OutAt  uint64 // positions in the streams of the next fast-box messages, while the gate is open
	InAt   uint64
	Sends  uint32 // 1: fast-box messages may be sent
	Takes  uint32 // 1: fast-box messages may be taken
	Vain   uint64 // 1 more than Seen was when C waited in vain for room
	Waited uint64 // for how long C has waited for messages, by calls.Elapsed
}

// Comm is a communicator, found by its handle.
type Comm struct {
	Handle  uintptr // 0: this place is free
	Context uint64
	Rank    int32 // this proc's rank
	TagUB   int32
	Board   int32       // index in Boards, or None
	Whole   int32       // 1: all others are in Peer
	Team    int32       // index in Teams, if C may do operations there, or None
	Size    int32       // how many ranks it has
	Peer    [Ranks]int8 // of each rank, or None
}

// Team is a communicator of the site's own MPI, in which C does blocking collective operations.
type Team struct {
	Pending int32         // the number of an operation that C has begun and Go has to go on with, or None
	Error   int32         // of such an operation; 0: none
	Count   atomic.Uint32 // operations that C has done since Go has begun one
}

// Drop forgets what C did in a team.
func (t *Team) Drop() { t.Pending, t.Error = None, 0; t.Count.Store(0) }

// Window is a window of memory that MPI has allocated, found by its handle.
type Window struct {
	Handle  uintptr // 0: this place is free
	Targets *Target // the first of Ranks; not allocated by Go
	Ranks   uint32
	Every   uint32 // 1: the epoch admits operations at all ranks
	Passive uint32 // 1: the epoch is of locks, so operations may be flushed
	Whole   uint32 // 1: operations at all ranks are done in shared memory
	Used    uint32 // 1: C has begun operations since Go has looked
	Idle    uint32 // flushes with nothing to do
	Board   int32  // of the window's communicator: index in Boards, or None
	Fences  uint32 // 1: C may do a fence, which opens an epoch like the one that is open
	Fenced  uint32 // 1: C has done a fence since Go has looked, before the operations that Used is about
	_       uint32
}

// Target is the memory of a rank.
type Target struct {
	Base unsafe.Pointer // nil: only Go can access it
	Size int64          // in bytes
	Unit int64          // of displacements, in bytes
	Lock *atomic.Uint32 // held while an operation that is atomic is done; nil: the gate is enough
	Open uint32         // 1: the epoch admits operations at this rank
	_    uint32
}

// Begun are the nonblocking operations on a board that C has started and that are not over. This member
// has posted what it had to, and has not read what it needs.
type Begun struct {
	First int32 // in Table; their order is that of their starts
	Last  int32
	Read  uint32 // 1: the member has read something in an area since it has told how far it is
	Found uint32 // how many waits in a row have found all that they needed at once
}

// Request is a send that is complete, a receive, or a nonblocking collective operation.
type Request struct {
	Gen     uint32 // odd while the request exists
	State   uint32
	Comm    uintptr // handle
	Context uint64
	Buf     unsafe.Pointer // of an operation on the board: the receive buffer, or that of Bcast; nil: in place, or not significant
	Room    uint64         // size of the buffer in bytes; of an operation on the board that of a block
	Rank    int32          // source that is asked for, or any; of an operation on the board its root
	Tag     int32          // or any
	Peer    int32          // None: it is a send; Every: a receive from any source; OnBoard: an operation on the board
	Next    int32
	Source  int32 // source of the message
	From    int32 // tag of the message
	Bytes   uint32

	// Of an operation on the board:
	What  uint32         // as the board calls it; of one that is moving: the error of the site's MPI
	Send  unsafe.Pointer // the send buffer; nil: in place, or not significant
	Turn  board.Turn
	Board int32  // the slot; of one that is moving: its number in the site's MPI
	Kind  uint32 // of the elements, a datatype.Kind
	Op    uint32 // one of those above
	_     uint32
	_     unsafe.Pointer
}

// Reset frees all entries. The gate stays closed.
func (m *Memory) Reset() {
	m.Gate.Store(Closed)
	m.First, m.Last, m.Spare, m.Used, m.Top = None, None, 0, 0, 0
	for i := range m.Table {
		m.Table[i].Next = int32(i + 1)
	}
	m.Table[Requests-1].Next = None
	for i := range m.Peers {
		m.Peers[i] = Peer{}
	}
	m.Starts = 0
	m.Moves = Moves{First: None, Last: None}
	for i := range m.Teams {
		m.Teams[i].Drop()
	}
	for i := range m.Boards {
		m.Boards[i].Members = 0
		m.Begun[i] = Begun{First: None, Last: None}
	}
	for i := range m.Windows {
		m.Windows[i] = Window{}
	}
	m.Forget()
}

// Forget makes C ask Go again for all communicators. The gate must be closed.
func (m *Memory) Forget() {
	for i := range m.Comms {
		m.Comms[i].Handle = 0 // an entry is 1 KiB, and written anew when it is used again
	}
}

// ForgetComm is Forget for the communicator with a context alone.
func (m *Memory) ForgetComm(context uint64) {
	for i := range m.Comms {
		if c := &m.Comms[i]; c.Context == context {
			c.Handle = 0
		}
	}
}

// Place returns the entry of the communicator with this handle, or nil.
func (m *Memory) Place(handle uintptr) *Comm {
	return &m.Comms[(handle^handle>>3^handle>>32)%Comms]
}

// Window returns the place of the window with this handle.
func (m *Memory) Window(handle uintptr) *Window {
	return &m.Windows[(handle^handle>>3^handle>>32)%Windows]
}

// Release frees a request. The gate must be closed.
func (m *Memory) Release(i int32) {
	r := &m.Table[i]
	r.Gen++
	r.State, r.Next = Free, m.Spare
	m.Spare = i
}
