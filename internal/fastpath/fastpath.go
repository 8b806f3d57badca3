// Package fastpath has the memory by which C code sends and receives fast-box messages without
// entering Go, as cmd/libmpi's fastpath.h has it for C: what C has to know of a proc's
// peers, communicators and receives, and the gate that keeps C out while Go is at them.
//
// Who is through the gate may do what Go would do while the proc is locked. C takes what it
// can do whole, or leaves everything as it is and enters Go. Where C has left receives that wait
// for a message, Go makes them its own as soon as it has closed the gate, so that a receive is
// in one of two lists, and C's are younger than Go's.
package fastpath

import (
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/link"
)

// Sizes of the tables.
const (
	Peers    = 8   // procs of this host that are talked to by fast-box messages
	Comms    = 64  // communicators, each at one place
	Ranks    = 64  // of each: who comes after is not reached by fast-box messages of C
	Requests = 256 // of C
)

// What Gate can be.
const (
	Open   = 0
	Inside = 1 // C is
	Closed = 2
)

// What State can be of a Request.
const (
	Free    = 0
	Posted  = 1 // a receive that waits
	Done    = 2
	Adopted = 3 // it is Go's now
)

// None is no place in a table.
const None = -1

// Memory is all of it. It belongs to a proc, and is not Go's own memory.
type Memory struct {
	Gate   atomic.Uint32
	Knock  atomic.Uint32 // 1: Go wants C to leave
	Polls  int32         // how often to look for a fast-box message before Go is to wait for it
	Streak uint32        // receives so far that looked at nothing else, or could have
	First  int32         // of the receives that wait
	Last   int32
	Spare  int32 // first of the requests that are free
	Used   int32 // how many of Peers
	Peers  [Peers]Peer
	Comms  [Comms]Comm
	Table  [Requests]Request
}

// Peer is the way to one proc.
type Peer struct {
	link.FastBoxes
	OutAt uint64 // where in the streams the next fast-box messages come, while the gate is open
	InAt  uint64
	Sends uint32 // 1: fast-box messages may be sent
	Takes uint32 // 1: fast-box messages may be taken
}

// Comm is what a communicator's handle stands for.
type Comm struct {
	Handle  uintptr // 0: nothing is here, and no communicator has it
	Context uint64
	Rank    int32 // ours
	TagUB   int32
	Peer    [Ranks]int8 // of each rank, or None
}

// Request is a send that is over, or a receive.
type Request struct {
	Gen     uint32 // odd while there is one
	State   uint32
	Comm    uintptr // handle
	Context uint64
	Buf     unsafe.Pointer
	Room    uint64 // bytes
	Rank    int32  // of whom to receive from
	Tag     int32  // or any
	Peer    int32  // None: a send
	Next    int32
	Source  int32 // of what was received
	From    int32 // its tag
	Bytes   uint32
	_       uint32
}

// Reset makes everything free. The gate stays closed.
func (m *Memory) Reset() {
	m.Gate.Store(Closed)
	m.First, m.Last, m.Spare, m.Used = None, None, 0, 0
	for i := range m.Table {
		m.Table[i].Next = int32(i + 1)
	}
	m.Table[Requests-1].Next = None
	for i := range m.Peers {
		m.Peers[i] = Peer{}
	}
	m.Forget()
}

// Forget makes C ask Go what all communicators are. The gate is closed.
func (m *Memory) Forget() {
	for i := range m.Comms {
		m.Comms[i] = Comm{}
	}
}

// Place is where the communicator of a handle is, if it is anywhere.
func (m *Memory) Place(handle uintptr) *Comm {
	return &m.Comms[(handle^handle>>3^handle>>32)%Comms]
}

// Release makes a request free. The gate is closed.
func (m *Memory) Release(i int32) {
	r := &m.Table[i]
	r.Gen++
	r.State, r.Next = Free, m.Spare
	m.Spare = i
}
