// Package fastpath has the memory by which C code sends and receives fast-box messages, does
// collective operations on the host's board, and one-sided ones in memory that the host's procs
// share, without entering Go (docs/decisions/0030-fast-boxes.md,
// 0054-origins-access-shared-memory.md). It has what C must know of a proc's peers, communicators
// and receives, and the gate that keeps C out while Go uses it. C's header is generated from it:
// after a change run go generate ./internal/abi (docs/shared-memory.md).
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
	Requests = 256  // requests that C makes
	Members  = 64   // members of a board
	Windows  = 64   // each at a fixed place
	Teams    = 64   // communicators of the site's own MPI
)

// Limits of C's operations on a board, in bytes.
const (
	MaxBoardPost      = 32 << 10 // maximum that a member posts, or gets
	MaxBoardPair      = 8 << 10  // in a block, with two members
	MaxBoardAllreduce = 4 << 10  // in a vector of Allreduce
	BoardStartLimit   = 32 << 10 // limit of a member's post in a nonblocking operation, exclusive
)

// Sizes in bytes from which a member lends its data instead of posting it
// (docs/decisions/0023-a-board-for-each-host.md).
const (
	BoardLend               = 8<<10 + 1   // where each proc of the host has a core
	BoardLendOversubscribed = 32<<10 + 1  // where procs share cores
	BoardLendBcast          = 128<<10 + 1 // minimum for Bcast
	MaxBoardLend            = 4 << 20     // maximum that C lends, or gets
	BoardLendAllreduce      = 256<<10 + 1 // minimum for Allreduce
	BoardPiece              = 128 << 10   // a piece of a reduction of lent data
	BoardStreamingCopy      = 1 << 20     // from this size on a member copies its own block around the caches
)

// BoardFoundStreak is the number of waits in a row that were over at once after which a start does
// not wait until the others can find its post (docs/decisions/0075-a-start-does-not-wait.md).
const BoardFoundStreak = 4

// ReceivesPerLook is the maximum number of receives in a row that poll only the link that they
// receive from, also in Go.
const ReceivesPerLook = 64

// BoardOpsPerLook is the maximum number of operations on a board between two looks at the links,
// which Go does.
const BoardOpsPerLook = 32

// Limits of C's operations by the site's own MPI.
const (
	MaxNative        = 4 << 20 // bytes of an operation
	NativeOpsPerLook = 1024    // one of this many operations is left to Go, which looks at the links
)

// Limits of C's operations on windows.
const (
	MaxWindow      = 256 << 10 // bytes of an operation
	FlushesPerLook = 128       // one of this many empty flushes of C is left to Go, which makes progress
)

// The operations that C does on a board, with the board's numbers.
const (
	BoardBarrier   = 0
	BoardBcast     = 1
	BoardGather    = 2
	BoardScatter   = 4
	BoardAllgather = 6
	BoardAlltoall  = 8
	BoardReduce    = 11
	BoardAllreduce = 12

	BoardReduceScatterBlock = 14
)

// The values of Gate.
const (
	Open   = 0
	Inside = 1
	Closed = 2
)

// The values of Request.State.
const (
	Free    = 0
	Posted  = 1 // a receive that waits
	Done    = 2
	Adopted = 3 // Go has adopted it
	Moving  = 4 // the site's MPI is sending or receiving its data
)

// None is an index that stands for no entry.
const None = -1

// AnySource is the peer of a receive from any source.
const AnySource = -2

// OnBoard is the peer of a nonblocking collective operation.
const OnBoard = -3

// The predefined operations of reductions that C does, with C's numbers; 0 is none.
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

// Memory is all of the memory that C and Go share. It belongs to a proc, and is not allocated by
// Go.
type Memory struct {
	Gate       atomic.Uint32
	LeaveAsked atomic.Uint32 // 1: Go asks C to leave
	Polls      int32         // number of polls before Go must wait, or C yields; C changes it, too
	Streak     uint32        // receives in a row that have polled nothing else
	First      int32         // first of the waiting receives
	Last       int32
	Spare      int32         // first of the free requests
	Used       int32         // number of used entries of Peers, Boards and Windows
	Top        int32         // no entry of Peers from here on is used
	Yields     uint32        // 1: a waiter at the board yields the core before it sleeps
	Counts     uint32        // 1: C measures its waits
	Busy       atomic.Uint32 // 1: something needs progress between calls; C does only operations on windows
	Starts     uint32        // number of operations in StartedOps
	Shared     uint32        // a longer yield has let another thread run, in nanoseconds
	Serves     uint32        // 1: Go serves other procs in between, so C waits only for a moment
	Carried    uint32        // messages of carriers that C has received, for it alone
	Peers      [Peers]Peer
	Comms      [Comms]Comm
	Table      [Requests]Request
	Boards     [board.Slots]board.State // of communicators, by their slots
	Windows    [Windows]Window
	Waited     [board.Slots][Members]uint64 // time that C has waited for each member, by calls.Elapsed
	Begun      [board.Slots]StartedOps
	Carriers   link.CarrierCalls // calls that send and receive messages of peers with a Carrier
	Teams      [Teams]NativeComm // by the numbers of the communicators of the site's own MPI
	Moves      NativeTransfers
}

// NativeTransfers lists the requests of Table whose data the site's own MPI is moving, in the order
// in which they have begun to.
type NativeTransfers struct{ First, Last int32 }

// Peer is a peer with which fast boxes are used.
type Peer struct {
	link.FastBoxes
	OutAt  uint64 // positions in the streams of the next fast-box messages, while the gate is open
	InAt   uint64
	Sends  uint32 // 1: fast-box messages may be sent
	Takes  uint32 // 1: fast-box messages may be taken
	FullAt uint64 // Seen plus 1 when C last waited in vain for room
	Waited uint64 // time that C has waited for messages, by calls.Elapsed
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
	Size    int32       // number of ranks
	Peer    [Ranks]int8 // index of each rank, or None
}

// NativeComm is a communicator of the site's own MPI, in which C does blocking collective
// operations.
type NativeComm struct {
	Pending int32         // number of an operation that C has begun and Go must continue, or None
	Error   int32         // of such an operation; 0: none
	Count   atomic.Uint32 // operations that C has done since Go last began one
}

// Drop forgets the operations that C did in a team.
func (t *NativeComm) Drop() { t.Pending, t.Error = None, 0; t.Count.Store(0) }

// Window is a window of memory that MPI has allocated, found by its handle.
type Window struct {
	Handle  uintptr // 0: this place is free
	Targets *Target // the first of Ranks; not allocated by Go
	Ranks   uint32
	Every   uint32 // 1: the epoch admits operations at all ranks
	Passive uint32 // 1: the epoch uses locks, so operations may be flushed
	Whole   uint32 // 1: operations at all ranks are done in shared memory
	Used    uint32 // 1: C has begun operations since Go last looked
	Idle    uint32 // flushes with nothing to do
	Board   int32  // of the window's communicator: index in Boards, or None
	Fences  uint32 // 1: C may do a fence, which opens an epoch like the current one
	Fenced  uint32 // 1: C has done a fence since Go last looked, before the operations of Used
	_       uint32
}

// Target is the memory of a rank.
type Target struct {
	Base unsafe.Pointer // nil: only Go can access the memory
	Size int64          // in bytes
	Unit int64          // of displacements, in bytes
	Lock *atomic.Uint32 // held during an atomic operation; nil: the gate is enough
	Open uint32         // 1: the epoch admits operations at this rank
	_    uint32
}

// StartedOps lists the nonblocking operations on a board that C has started and that are not over.
// This member has posted its data for them, and has not read the data that it needs.
type StartedOps struct {
	First int32 // in Table; linked in the order of their starts
	Last  int32
	Read  uint32 // 1: the member has read from an area since it last published its progress
	Found uint32 // number of waits in a row that were over at once
}

// Request is a send that is complete, a receive, or a nonblocking collective operation.
type Request struct {
	Gen     uint32 // odd while the request exists
	State   uint32
	Comm    uintptr // handle
	Context uint64
	Buf     unsafe.Pointer // of an operation on the board: the receive buffer, or that of Bcast; nil: in place, or not significant
	Room    uint64         // size of the buffer in bytes; of an operation on the board the size of a block
	Rank    int32          // requested source, or any; of an operation on the board its root
	Tag     int32          // tag, or any
	Peer    int32          // None: it is a send; AnySource: a receive from any source; OnBoard: an operation on the board
	Next    int32
	Source  int32 // source of the message
	From    int32 // tag of the message
	Bytes   uint32

	// Of an operation on the board:
	What  uint32         // the board's number of it; of a moving one: the error of the site's MPI
	Send  unsafe.Pointer // the send buffer; nil: in place, or not significant
	Step  board.Step
	Board int32          // the slot; of a moving one: its number in the site's MPI
	Kind  uint32         // of the elements, a datatype.Kind
	Op    uint32         // one of the operations above
	Type  uint32         // handle of the elements' type, for C alone
	Loop  unsafe.Pointer // the function of C that combines elements, for C alone
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
	m.Moves = NativeTransfers{First: None, Last: None}
	for i := range m.Teams {
		m.Teams[i].Drop()
	}
	for i := range m.Boards {
		m.Boards[i].Members = 0
		m.Begun[i] = StartedOps{First: None, Last: None}
	}
	for i := range m.Windows {
		m.Windows[i] = Window{}
	}
	m.Forget()
}

// Forget makes C ask Go again for all communicators. The gate must be closed.
func (m *Memory) Forget() {
	for i := range m.Comms {
		m.Comms[i].Handle = 0 // an entry is 1 KiB, and rewritten when it is used again
	}
}

// ForgetComm is Forget for only the communicator with a context.
func (m *Memory) ForgetComm(context uint64) {
	for i := range m.Comms {
		if c := &m.Comms[i]; c.Context == context {
			c.Handle = 0
		}
	}
}

// CommOf returns the entry of the communicator with this handle, or nil.
func (m *Memory) CommOf(handle uintptr) *Comm {
	return &m.Comms[(handle^handle>>3^handle>>32)%Comms]
}

// WindowOf returns the entry of the window with this handle, or nil.
func (m *Memory) WindowOf(handle uintptr) *Window {
	return &m.Windows[(handle^handle>>3^handle>>32)%Windows]
}

// Release frees a request. The gate must be closed.
func (m *Memory) Release(i int32) {
	r := &m.Table[i]
	r.Gen++
	r.State, r.Next = Free, m.Spare
	m.Spare = i
}
