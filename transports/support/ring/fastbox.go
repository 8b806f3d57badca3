package ring

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/openimpi/impi/core/link"
)

// boxes is a side's part in the fast-box messages of both directions.
type boxes struct {
	fastBoxes *link.FastBoxes // nil: this side does not take part
	taker     *atomic.Uint32  // whether the other one does, as it says
	taken     bool            // it does
}

// TakeFastBoxes has this side take fast-box messages, and write some once the other side does
// so too (link.FastBoxLink). It is for who keeps the link to its end, before the link is used.
// False means that the memory has no room for any.
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
			Limit: math.MaxUint64,
		},
	}
	l.in.fastBoxes = l.fastBoxes
	l.in.b.takesFastBoxes.Store(1)
	return true
}

// FastBoxRoom returns the place of the next fast-box message, to be filled in and posted, if one
// can be written behind what was sent so far.
func (l *Link) FastBoxRoom() *link.EagerMessage {
	if !l.FastBoxesAgreed() {
		return nil
	}
	if l.out.placed > 0 || l.out.given != l.out.back || l.ended || l.sendErr != nil || l.closed.Load() {
		return nil
	}
	return l.fastBoxes.Room()
}

// FastBoxesAgreed reports whether both sides take fast-box messages.
func (b *boxes) FastBoxesAgreed() bool { return b.taken || b.lookForTaker() }

func (b *boxes) lookForTaker() bool {
	b.taken = b.fastBoxes != nil && b.taker.Load() != 0
	return b.taken
}

// PostFastBox sends the fast-box message that FastBoxRoom gave.
func (l *Link) PostFastBox() {
	l.fastBoxes.Post(l.out.head)
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
}

// NextFastBox returns the fast-box message that comes before any other byte, nil if there is
// none. The other side can still change it.
func (l *Link) NextFastBox() *link.EagerMessage {
	if l.recvErr != nil || l.closed.Load() {
		return nil
	}
	return l.fastBoxes.Next(l.in.tail)
}

// FastBoxTaken says that the fast-box message that NextFastBox gave is done with.
func (l *Link) FastBoxTaken() {
	l.fastBoxes.Take()
	l.idle = 0
}

// FastBoxesAt returns where the next fast-box messages come, and whether any could be sent and
// taken (link.FastBoxLink).
func (l *Link) FastBoxesAt() (out, in uint64, sends, takes bool) {
	if l.closed.Load() {
		return 0, 0, false, false
	}
	sends = l.FastBoxesAgreed() && l.out.placed == 0 && l.out.given == l.out.back && !l.ended && l.sendErr == nil
	return l.out.head, l.in.tail, sends, l.recvErr == nil
}

// MoveFastBoxes has what this side knows of fast-box messages lie elsewhere.
func (l *Link) MoveFastBoxes(to *link.FastBoxes) {
	*to = *l.fastBoxes
	l.fastBoxes, l.in.fastBoxes = to, to
}

// FastBoxesSent counts the fast-box messages that were sent.
func (b *boxes) FastBoxesSent() uint64 { return b.fastBoxes.Sent }

// FastBoxesTaken counts the fast-box messages that were taken.
func (b *boxes) FastBoxesTaken() uint64 { return b.fastBoxes.Taken }

// LimitFastBoxes has no fast-box message be sent once that many were.
func (b *boxes) LimitFastBoxes(sent uint64) { b.fastBoxes.Limit = sent }

// WakeForFastBox wakes the other side if it sleeps.
func (l *Link) WakeForFastBox() {
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
}

// before is how many of the next n bytes come before the next fast-box message.
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

// fastBoxDue reports whether what comes next is a fast-box message.
func (r *reader) fastBoxDue() bool { return r.fastBoxes != nil && r.fastBoxes.Next(r.tail) != nil }
