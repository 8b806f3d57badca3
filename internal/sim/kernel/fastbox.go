package kernel

import (
	"math"
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
)

var _ link.FastBoxLink = (*BoxedEnd)(nil)

// BoxedEnd is an end of a link whose two owners share memory: fast boxes supplement the link's
// bytes. A message in a box arrives at once, and is taken when the bytes before it have been
// received. Bytes are not written or read in place.
type BoxedEnd struct {
	*End
	boxes link.FastBoxes
	takes bool // its owner accepts fast-box messages
}

// boxArea is the memory for data of fast-box messages in one direction. It is small, so that it is
// often full.
const boxArea = 2 << 10

func (l *Link) box() {
	var pages [2]link.FastBoxPage
	var areas [2][boxArea]byte
	var taken [2]atomic.Uint64 // messages of each page that the other end has taken
	for i, e := range l.Ends {
		e.boxed = &BoxedEnd{End: e, boxes: link.FastBoxes{
			Out: &pages[i], In: &pages[1-i], Read: &taken[i], Told: &taken[1-i], Limit: math.MaxUint64,
			OutData: &areas[i][0], OutArea: boxArea, InData: &areas[1-i][0], InArea: boxArea,
		}}
	}
}

// Boxed returns the end with its fast boxes, or nil if it has none.
func (e *End) Boxed() *BoxedEnd { return e.boxed }

// due reports whether a fast-box message comes before any other byte.
func (e *End) due() bool {
	return e.boxed != nil && e.boxed.takes && e.boxed.boxes.Next(e.taken) != nil
}

// before is how many of the next n bytes come before the next fast-box message.
func (e *End) before(n int) int {
	if e.boxed == nil || !e.boxed.takes {
		return n
	}
	if k, ok := e.boxed.boxes.Ahead(e.taken); ok {
		return min(n, int(k))
	}
	return n
}

// TakeFastBoxes implements link.FastBoxLink, like all methods below.
func (b *BoxedEnd) TakeFastBoxes() bool {
	b.takes = true
	return true
}

// FastBoxesAgreed reports whether both owners accept fast-box messages.
func (b *BoxedEnd) FastBoxesAgreed() bool { return b.takes && b.peer.boxed.takes }

// FastBoxRoom returns the place of the next message, which comes after all bytes sent so far.
func (b *BoxedEnd) FastBoxRoom(n int) *link.EagerMessage {
	if !b.FastBoxesAgreed() || !b.Open() || b.owed.shown > 0 || b.peer.closed {
		return nil
	}
	return b.boxes.Room(n)
}

// PostFastBox sends the message.
func (b *BoxedEnd) PostFastBox(data []byte) {
	b.boxes.Post(data, b.peer.given)
	b.l.k.mixNumbers(uint64(b.handle), b.boxes.Sent)
	b.l.boxes++
	b.peer.ring()
}

// NextFastBox returns the message that comes before any other byte, or nil.
func (b *BoxedEnd) NextFastBox() *link.EagerMessage {
	if b.closed {
		return nil
	}
	return b.boxes.Next(b.taken)
}

// BegunFastBox returns the same message: its data arrive with it.
func (b *BoxedEnd) BegunFastBox() *link.EagerMessage { return b.NextFastBox() }

// FastBoxData implements link.FastBoxLink: the data are there at once.
func (b *BoxedEnd) FastBoxData(m *link.EagerMessage, n uint32) []byte { return b.boxes.Content(m, n) }

// FastBoxTaken releases the message, which is not needed any more.
func (b *BoxedEnd) FastBoxTaken(n uint32) { b.boxes.Take(n) }

// FastBoxesAt would give code direct access to the boxes; the simulator has no such code.
func (b *BoxedEnd) FastBoxesAt() (out, in uint64, sends, takes bool) {
	return b.peer.given, b.taken, false, false
}

// MoveFastBoxes panics: it is only for code with direct access to the boxes.
func (b *BoxedEnd) MoveFastBoxes(*link.FastBoxes) { panic("kernel: fast boxes are not moved") }

// WakeForFastBox wakes the peer; it is only for code with direct access to the boxes.
func (b *BoxedEnd) WakeForFastBox() { b.peer.ring() }

// FastBoxesSent returns the number of messages that were sent.
func (b *BoxedEnd) FastBoxesSent() uint64 { return b.boxes.Sent }

// FastBoxesCharged returns the cost of the messages that were sent.
func (b *BoxedEnd) FastBoxesCharged() uint64 { return b.boxes.Charged }

// FastBoxesTaken returns the cost of the messages that were taken.
func (b *BoxedEnd) FastBoxesTaken() uint64 { return b.boxes.Received }

// LimitFastBoxes sets the total cost beyond which no messages are sent.
func (b *BoxedEnd) LimitFastBoxes(charge uint64) { b.boxes.Limit = charge }

// ReviewFastBoxes is only for code with direct access to the boxes.
func (b *BoxedEnd) ReviewFastBoxes(uint64) {}

// Reserve returns nil: nothing is written in place.
func (b *BoxedEnd) Reserve(int) []byte { return nil }

// Commit returns false: it has nothing to send.
func (b *BoxedEnd) Commit() bool { return false }

// Ready reports whether there is something to receive.
func (b *BoxedEnd) Ready() bool { return b.readable() }

// Peek returns nil: nothing is read in place.
func (b *BoxedEnd) Peek() []byte { return nil }

// Discard does nothing.
func (b *BoxedEnd) Discard(int) {}

// Boxes returns the number of fast-box messages that were sent on the link.
func (l *Link) Boxes() int { return l.boxes }
