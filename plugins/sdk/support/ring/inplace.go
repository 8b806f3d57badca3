package ring

import (
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Bytes can be read and written where they lie in the ring, without a copy. Peek, Reserve and
// Commit are for engines that poll (link.Memory): they handle one piece and no errors, which Recv
// and Send return. Bytes, Space and Fill are for pumps: they return everything, in two pieces where
// the ring wraps, and the errors. Discard removes from the ring what was read.

// Ready reports whether something has come, or an impossible counter, which Recv reports.
func (l *Link) Ready() bool {
	if l.in.fastBoxDue() {
		return true
	}
	n, err := l.in.waiting()
	return n > 0 || l.in.due() || err != nil
}

// Peek returns the bytes that have come, up to the end of the ring's memory.
func (l *Link) Peek() []byte {
	if l.recvErr != nil || l.closed.Load() {
		return nil
	}
	return l.in.peek()
}

// Bytes returns the bytes that can be read, in place, without the copy of Recv. If first is
// empty there are none. The slices are valid until Discard, and the other side can change
// their content. One goroutine may use Bytes, Discard and Recv; errors are those of Recv.
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

// Discard removes the first n bytes of Peek or Bytes from the ring and gives their room to
// the writer.
func (l *Link) Discard(n int) {
	l.in.tail += uint64(n)
	l.idle = 0
	l.free()
}

// Reserve returns n bytes of room in the ring, or nil if there are not that many in one
// piece. It may be called several times before Commit.
func (l *Link) Reserve(n int) []byte {
	if l.ended || l.sendErr != nil || l.out.given != l.out.back || l.closed.Load() {
		return nil
	}
	return l.out.reserve(uint64(n))
}

// Commit sends what was reserved. It reports whether there was anything.
func (l *Link) Commit() bool {
	if !l.out.publish() {
		return false
	}
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
	return true
}

// Space returns the room in the ring, to be filled in place. If first is empty there is
// none. One goroutine may use Space, Fill and Send; errors are those of Send.
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

// window returns the n bytes of a ring from an offset on: in two parts if they go beyond its end.
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

// publish makes what was reserved visible to the reader.
func (w *writer) publish() bool {
	if w.placed == 0 {
		return false
	}
	w.head += w.placed
	w.placed = 0
	w.b.head.Swap(w.head)
	return true
}

// peek returns what has come, in one piece. read reports an impossible head.
func (r *reader) peek() []byte {
	n, err := r.waiting()
	if err != nil || n == 0 {
		return nil
	}
	at := r.tail & r.mask
	return r.data[at:min(at+n, r.mask+1)]
}
