package ring

import (
	"fmt"

	"github.com/openimpi/impi/core/link"
)

// Bytes can be read and written where they lie in the ring, by those for whom a copy
// would be one too many. Peek, Reserve and Commit are for engines that look again and
// again (link.Memory): they know of one piece and of no errors, which Recv and Send
// tell. Bytes, Space and Fill are for pumps: they give all there is, in two pieces
// where the ring wraps, and the errors. What is read leaves the ring by Discard.

// Ready reports whether something has come, or an impossible number.
func (l *Link) Ready() bool {
	if l.in.fastBoxDue() {
		return true
	}
	n, err := l.in.waiting()
	return n > 0 || l.in.due() || err != nil
}

// Peek returns what has come, up to the end of the ring.
func (l *Link) Peek() []byte {
	if l.recvErr != nil || l.closed.Load() {
		return nil
	}
	return l.in.peek()
}

// Bytes returns what can be read, where it lies in the ring: for whom a Recv would
// be a copy too many. There is nothing when first is empty. The slices hold until
// Discard, and the other side can change what is in them. Bytes, Discard and Recv are
// for one goroutine; errors are those of Recv.
func (l *Link) Bytes() (first, second []byte, err error) {
	switch {
	case l.closed.Load():
		return nil, nil, link.ErrClosed
	case l.recvErr != nil:
		return nil, nil, l.recvErr
	}
	n, err := l.in.waiting()
	if err != nil {
		l.recvErr = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return nil, nil, l.recvErr
	}
	if n == 0 {
		if l.idle++; l.idle < lookEvery && l.in.b.ended.Load() == 0 && !l.dead {
			return nil, nil, nil
		}
		return nil, nil, l.atEnd()
	}
	first, second = window(l.in.data, l.in.tail&l.in.mask, n)
	return first, second, nil
}

// Discard takes the first n bytes of what Peek or Bytes gave out of the ring, and lets
// the writer have their room.
func (l *Link) Discard(n int) {
	l.in.tail += uint64(n)
	l.idle = 0
	l.free()
}

// Reserve gives n bytes of room in the ring, unless they are not in one piece. Several
// can be reserved before Commit.
func (l *Link) Reserve(n int) []byte {
	if l.ended || l.sendErr != nil || l.out.given != l.out.back || l.closed.Load() {
		return nil
	}
	return l.out.reserve(uint64(n))
}

// Commit sends what was reserved.
func (l *Link) Commit() bool {
	if !l.out.publish() {
		return false
	}
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
	return true
}

// Space returns the room in the ring, to be filled in place. There is none when first
// is empty. Space, Fill and Send are for one goroutine; errors are those of Send.
func (l *Link) Space() (first, second []byte, err error) {
	if _, err := l.Send(nil); err != nil {
		return nil, nil, err
	}
	n, err := l.out.room(l.out.mask/4 + 1)
	if err != nil {
		l.sendErr = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return nil, nil, l.sendErr
	}
	first, second = window(l.out.data, l.out.head&l.out.mask, n)
	return first, second, nil
}

// Fill sends the first n bytes of Space.
func (l *Link) Fill(n int) {
	l.out.head += uint64(n)
	l.out.b.head.Swap(l.out.head)
	if n > 0 && l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
}

// window is n bytes of a ring from an offset on.
func window(data []byte, at, n uint64) (first, second []byte) {
	first = data[at:]
	if uint64(len(first)) >= n {
		return first[:n], nil
	}
	return first, data[:n-uint64(len(first))]
}

// reserve returns the next n bytes of room, which publish will send.
func (w *writer) reserve(n uint64) []byte {
	at := (w.head + w.placed) & w.mask
	if at+n > w.mask+1 {
		return nil
	}
	if free, err := w.room(w.placed + n); err != nil || free < w.placed+n {
		return nil
	}
	w.placed += n
	return w.data[at : at+n : at+n]
}

// publish shows the reader what was reserved.
func (w *writer) publish() bool {
	if w.placed == 0 {
		return false
	}
	w.head += w.placed
	w.placed = 0
	w.b.head.Swap(w.head)
	return true
}

// peek returns what is there in one piece. An impossible head is for read to tell.
func (r *reader) peek() []byte {
	n, err := r.waiting()
	if err != nil || n == 0 {
		return nil
	}
	at := r.tail & r.mask
	return r.data[at:min(at+n, r.mask+1)]
}
