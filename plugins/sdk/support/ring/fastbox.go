package ring

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// boxes is the state of a side for the fast-box messages of both directions.
type boxes struct {
	fastBoxes *link.FastBoxes // nil: this side does not use fast boxes
	taker     *atomic.Uint32  // set by the other side if it takes fast-box messages
	taken     bool            // the other side takes fast-box messages
	area      uint64          // memory for data of fast-box messages, once the other side takes them
	answered  uint64          // messages that had been taken when the last one was sent
	length    int             // length of the message that was taken last
}

// The values of the word by which a reader says which fast-box messages it takes.
const (
	takesInBoxes = 1 // messages whose data are in the boxes
	takesAll     = 2 // also messages whose data are behind the boxes
)

// TakeFastBoxes makes this side take fast-box messages, and send them once the other side
// takes them too (link.FastBoxLink). It is for the process that uses the link to its end,
// before the first use. It returns false if the memory has no room for fast boxes.
func (l *Link) TakeFastBoxes() bool {
	r := l.region
	if r.pages[0] == nil || l.closed.Load() {
		return false
	}
	l.boxes = boxes{
		taker: &l.out.b.takesFastBoxes,
		fastBoxes: &link.FastBoxes{
			Out: r.pages[l.side], In: r.pages[1-l.side],
			Read: &l.out.b.boxed, Told: &l.in.b.boxed,
			Sleeps: &l.out.b.readerSleeps, Bytes: &l.in.b.head,
			Limit: math.MaxUint64, Review: math.MaxUint64,
		},
	}
	takes := uint32(takesInBoxes)
	if out, in := r.areas[l.side], r.areas[1-l.side]; len(in) > 0 {
		l.area = uint64(len(out))
		l.fastBoxes.OutData, l.fastBoxes.InData, l.fastBoxes.InArea = &out[0], &in[0], uint64(len(in))
		takes = takesAll
	}
	l.in.fastBoxes = l.fastBoxes
	l.in.b.takesFastBoxes.Store(takes)
	return true
}

// FastBoxRoom returns the place of the next fast-box message, of n bytes, to be filled in and
// posted, or nil if none can be sent now after the bytes that were sent.
func (l *Link) FastBoxRoom(n int) *link.EagerMessage {
	if !l.FastBoxesAgreed() {
		return nil
	}
	if l.out.placed > 0 || l.out.given != l.out.back || l.ended || l.sendErr != nil || l.closed.Load() {
		return nil
	}
	if inTwoLines(n) {
		l.prepareSecond()
	}
	return l.fastBoxes.Room(n)
}

// FastBoxesAgreed reports whether both sides take fast-box messages.
func (b *boxes) FastBoxesAgreed() bool { return b.taken || b.lookForTaker() }

func (b *boxes) lookForTaker() bool {
	if b.fastBoxes == nil {
		return false
	}
	takes := b.taker.Load()
	b.taken = takes != 0
	if takes >= takesAll {
		b.fastBoxes.OutArea = b.area
	}
	return b.taken
}

// PostFastBox sends data in the fast-box message for which FastBoxRoom returned a place.
func (l *Link) PostFastBox(data []byte) {
	l.fastBoxes.Post(data, l.out.head)
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
	if l.inSeries() {
		l.prepareNext(len(data))
	}
}

// NextFastBox returns the fast-box message that comes before any other byte, or nil. The
// other side can still change it.
func (l *Link) NextFastBox() *link.EagerMessage {
	if l.recvErr != nil || l.closed.Load() {
		return nil
	}
	return l.fastBoxes.Next(l.in.tail)
}

// BegunFastBox is like NextFastBox, but also returns a message some of whose data may be missing.
func (l *Link) BegunFastBox() *link.EagerMessage {
	if l.recvErr != nil || l.closed.Load() {
		return nil
	}
	if inTwoLines(l.length) {
		l.expectSecond()
	}
	m := l.fastBoxes.Begun(l.in.tail)
	if m != nil {
		l.prepareAnswer()
	}
	return m
}

// FastBoxData returns the data of a message of NextFastBox whose length was read as n, or nil
// if there can be no such message.
func (b *boxes) FastBoxData(m *link.EagerMessage, n uint32) []byte { return b.fastBoxes.Content(m, n) }

// FastBoxTaken releases the message that NextFastBox returned.
func (l *Link) FastBoxTaken(n uint32) {
	l.fastBoxes.Take(n)
	l.idle, l.length = 0, int(n)
	l.expect()
}

// FastBoxesAt returns the positions of the next fast-box messages in both directions, and
// whether any can be sent and taken (link.FastBoxLink).
func (l *Link) FastBoxesAt() (out, in uint64, sends, takes bool) {
	if l.closed.Load() {
		return 0, 0, false, false
	}
	sends = l.FastBoxesAgreed() && l.out.placed == 0 && l.out.given == l.out.back && !l.ended && l.sendErr == nil
	return l.out.head, l.in.tail, sends, l.recvErr == nil
}

// MoveFastBoxes moves this side's state of the fast boxes to other memory.
func (l *Link) MoveFastBoxes(to *link.FastBoxes) {
	*to = *l.fastBoxes
	l.fastBoxes, l.in.fastBoxes = to, to
}

// FastBoxesSent returns how many fast-box messages were sent.
func (b *boxes) FastBoxesSent() uint64 { return b.fastBoxes.Sent }

// FastBoxesCharged returns the cost of the messages that were sent.
func (b *boxes) FastBoxesCharged() uint64 { return b.fastBoxes.Charged }

// FastBoxesTaken returns the cost of the messages that were taken.
func (b *boxes) FastBoxesTaken() uint64 { return b.fastBoxes.Received }

// LimitFastBoxes stops sending fast-box messages before they cost more than charge.
func (b *boxes) LimitFastBoxes(charge uint64) { b.fastBoxes.Limit = charge }

// ReviewFastBoxes sets the cost from which on only Go takes messages.
func (b *boxes) ReviewFastBoxes(taken uint64) { b.fastBoxes.Review = taken }

// WakeForFastBox wakes the other side if it sleeps.
func (l *Link) WakeForFastBox() {
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
}

// before returns how many of the next n bytes precede the next fast-box message.
func (r *reader) before(n uint64) (uint64, error) {
	k, ok := r.fastBoxes.Ahead(r.tail)
	if !ok {
		return n, nil
	}
	if uint64(k) > r.mask+1 {
		return 0, fmt.Errorf("%w: the other side's fast-box message comes %d bytes behind those that were read, of %d that fit", ErrRegion, k, r.mask+1)
	}
	return min(n, uint64(k)), nil
}

func (r *reader) fastBoxDue() bool { return r.fastBoxes != nil && r.fastBoxes.Next(r.tail) != nil }
