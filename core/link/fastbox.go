package link

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// FastBoxLink is a Memory that takes fast-box messages beside its bytes: short messages, each
// in a line of memory of its own that both sides see. Who waits for one looks at the very line
// in which it comes, and neither side packs or reads a packet.
//
// A fast-box message has a place in the stream: it comes after so many of its bytes, and before
// those that follow. So fast-box messages and packets keep the order in which they were sent.
// The calls for sending count as Send, those for receiving as Recv.
type FastBoxLink interface {
	Memory

	// TakeFastBoxes announces that this side takes fast-box messages. It is called once, before
	// the link is used. False means that there are none.
	TakeFastBoxes() bool

	// FastBoxRoom returns the place of the next fast-box message, which PostFastBox sends, behind
	// all that was sent before; nil if there is no room, if something that was reserved is not
	// committed, or if the other side takes no fast-box messages. A packet has to do then.
	FastBoxRoom() *EagerMessage

	// PostFastBox sends what FastBoxRoom gave.
	PostFastBox()

	// NextFastBox returns the fast-box message that comes before any other byte, nil if there is
	// none. The other side can still change it: what is in it is to be read once.
	NextFastBox() *EagerMessage

	// FastBoxesAt returns where in the two streams the next fast-box messages come, and whether
	// some could be sent now, and taken, by who has the boxes itself.
	FastBoxesAt() (out, in uint64, sends, takes bool)

	// MoveFastBoxes has what this side knows of fast-box messages lie at to from now on: for
	// others to use it, too, while nobody calls the link.
	MoveFastBoxes(to *FastBoxes)

	// FastBoxesAgreed reports whether the other side takes fast-box messages.
	FastBoxesAgreed() bool

	// FastBoxesSent counts the fast-box messages that were sent, FastBoxesTaken those that were
	// taken.
	FastBoxesSent() uint64
	FastBoxesTaken() uint64

	// LimitFastBoxes has no fast-box message be sent once that many were; at first there is no
	// limit.
	LimitFastBoxes(sent uint64)

	// WakeForFastBox wakes the other side if it sleeps, after who has the boxes itself has sent
	// a fast-box message.
	WakeForFastBox()

	// FastBoxTaken says that the fast-box message that NextFastBox gave is done with.
	FastBoxTaken()
}

const (
	// FastBoxCount is how many fast-box messages one direction holds.
	FastBoxCount = 64
	// MaxFastBox is the longest message, in bytes, that a fast-box message can carry. The first
	// 32 bytes lie in the line that is looked at.
	MaxFastBox = 96
	// fastBoxLag is how many fast-box messages a reader takes before it says so.
	fastBoxLag = FastBoxCount / 4
)

// EagerMessage is a message in standard mode from one proc of a link to the other, in a fast box.
type EagerMessage struct {
	Context uint64
	Rank    int32 // of the sender in the communicator
	Tag     int32
	Len     uint32 // bytes of Data that count
	Kind    uint32 // what they are, for information
	Data    [MaxFastBox]byte
}

// fastBox is where a fast-box message lies. mark is the number of the fast-box message, from 1,
// in its upper half, and where in the stream it comes in its lower one, both modulo 2^32; it is
// written last.
type fastBox struct {
	mark    atomic.Uint64
	message EagerMessage
}

// FastBoxPage is the memory of the fast-box messages of one direction.
type FastBoxPage [FastBoxCount]fastBox

// FastBoxPageSize is the size of a FastBoxPage.
const FastBoxPageSize = int(unsafe.Sizeof(FastBoxPage{}))

// FastBoxPageAt is the page at the beginning of b, which has to lie at a multiple of 8.
func FastBoxPageAt(b []byte) *FastBoxPage {
	return (*FastBoxPage)(unsafe.Pointer(&b[:FastBoxPageSize][0]))
}

// FastBoxes is what one side knows of the fast-box messages of both directions.
type FastBoxes struct {
	Out    *FastBoxPage   // ours
	In     *FastBoxPage   // the other side's
	Read   *atomic.Uint64 // of Out: fast-box messages taken, says the other side
	Told   *atomic.Uint64 // of In: fast-box messages taken, for the other side to know
	Sleeps *atomic.Uint32 // 1 while the other side wants to be woken
	Bytes  *atomic.Uint64 // how many bytes of the stream the other side has written

	Sent  uint64 // fast-box messages since the beginning
	Seen  uint64 // Read as last seen
	Taken uint64 // fast-box messages since the beginning
	Limit uint64 // of Sent, which stops there
}

// Room returns the place of the next fast-box message, to be filled in and posted; nil if there
// is none.
func (l *FastBoxes) Room() *EagerMessage {
	if l.Sent == l.Limit {
		return nil
	}
	if l.Sent-l.Seen >= FastBoxCount {
		seen := l.Read.Load()
		if l.Sent-seen >= FastBoxCount { // or an impossible number
			return nil
		}
		l.Seen = seen
	}
	return &l.Out[l.Sent%FastBoxCount].message
}

// Post sends the fast-box message that Room gave, behind the first at bytes of the stream. The
// caller then looks whether the other side sleeps: the store does not pass that look.
func (l *FastBoxes) Post(at uint64) {
	p := &l.Out[l.Sent%FastBoxCount]
	l.Sent++
	p.mark.Swap(l.Sent<<32 | at&math.MaxUint32)
}

// Next returns the fast-box message that comes behind the first at bytes of the stream; nil if
// none does as yet.
func (l *FastBoxes) Next(at uint64) *EagerMessage {
	p := &l.In[l.Taken%FastBoxCount]
	if p.mark.Load() != (l.Taken+1)<<32|at&math.MaxUint32 {
		return nil
	}
	return &p.message
}

// Take says that the fast-box message that Next gave is done with.
func (l *FastBoxes) Take() {
	l.Taken++
	if l.Taken%fastBoxLag == 0 {
		l.Told.Store(l.Taken)
	}
}

// Ahead returns how many bytes behind the first at ones come before the next fast-box message, if
// there is one. The number is nonsense if the other side writes nonsense.
func (l *FastBoxes) Ahead(at uint64) (n uint32, ok bool) {
	mark := l.In[l.Taken%FastBoxCount].mark.Load()
	return uint32(mark) - uint32(at), uint32(mark>>32) == uint32(l.Taken+1)
}
