package resumable

import (
	"github.com/openimpi/impi/plugins/sdk/link"
)

// idle looks whether anything has come, without the state machine, and reports whether
// there is nothing to do. Most calls of a polling user end here.
func (b *below) idle() bool {
	if len(b.ahead) > 0 {
		return false
	}
	b.dry = false
	if b.inside || b.owner.pending {
		return false
	}
	room := b.in
	if b.bulk {
		room = room[:bulk]
	}
	b.one[0] = room
	n, err := b.Link.Recv(b.one[:])
	if err != nil {
		return false // not idle: the machine has to get the error, too
	}
	b.ahead, b.dry = b.in[:n], 0 < n && n < len(room)
	return n == 0
}

const (
	// short is the size up to which bytes are copied into one piece, since the kernel is faster
	// with one slice than with several.
	short = 2 << 10
	// first is how much is read if it is unknown what comes: a frame with a packet of one
	// page.
	first = 4<<10 + 512
	// bulk is how much is read after a frame that was longer than first: the next one may
	// be as long, and most of it should be read straight to its destination.
	bulk = 1<<10 + 64
	// next is how much is read beyond the end of a long frame, for the header of the next
	// one.
	next = 512
)

// below is the link below, as the machine sees it. The machine asks for a header and then
// for the bytes that it announces; below reads ahead, because a system call for each would
// cost more than a copy.
type below struct {
	link.Link
	owner  *Link
	ahead  []byte // part of in: received, but not asked for yet
	dry    bool   // the last system call within this call of the owner has emptied the link
	inside bool   // a long frame has begun and is not complete
	bulk   bool   // the present frame is long, or the last one was
	closed bool
	batch  [][]byte
	one    [1][]byte
	in     []byte // memory of the owner, first bytes
	out    []byte // memory of short bytes, allocated when needed
}

// Recv returns what was read ahead, and then what the link has.
func (b *below) Recv(batch [][]byte) (n int, err error) {
	b.owner.buffered = true // the owner's Recv corrects this
	switch room := link.Len(batch); {
	case len(b.ahead) > 0:
	case b.dry:
		b.dry = false
		return 0, nil
	case room >= short:
		return b.recvLong(batch, room)
	default:
		b.one[0] = b.in
		if n, err = b.Link.Recv(b.one[:]); err != nil {
			return 0, err
		}
		b.ahead, b.dry = b.in[:n], 0 < n && n < len(b.in)
	}
	return b.take(batch), nil
}

// recvRest returns up to size bytes, first those that were read ahead. It reads a little
// more if there is room for all of them.
func (b *below) recvRest(batch [][]byte, size int) (n int, err error) {
	if len(b.ahead) > 0 {
		b.batch = link.Front(b.batch, batch, size)
		n = b.take(b.batch)
		clear(b.batch)
		return n, nil
	}
	room := len(batch[0])
	if room < size {
		b.batch = link.Front(b.batch, batch, size)
		room = link.Len(b.batch)
	} else {
		room = size
		b.batch = append(b.batch[:0], batch[0][:size])
	}
	offered := room
	if room == size {
		b.batch = append(b.batch, b.in[:next])
		offered += next
	}
	n, err = b.Link.Recv(b.batch)
	clear(b.batch)
	b.dry = 0 < n && n < offered
	if n > room {
		b.ahead, n = b.in[:n-room], room
	}
	return n, err
}

func (b *below) take(batch [][]byte) (n int) {
	for _, to := range batch {
		k := copy(to, b.ahead)
		b.ahead = b.ahead[k:]
		n += k
	}
	return n
}

// recvLong reads straight into the batch, and a little more.
func (b *below) recvLong(batch [][]byte, room int) (n int, err error) {
	b.batch = append(append(b.batch[:0], batch...), b.in[:next])
	n, err = b.Link.Recv(b.batch)
	clear(b.batch)
	b.dry = n > 0 && n < room+next
	b.inside = n < room
	if n > room {
		b.ahead = b.in[:n-room]
		n = room
	}
	return n, err
}

// Send sets pending at the owner if bytes are left over.
func (b *below) Send(batch [][]byte) (int, error) {
	size := link.Len(batch)
	if len(batch) > 1 && size <= short {
		if b.out == nil {
			b.out = make([]byte, short)
		}
		at := 0
		for _, x := range batch {
			at += copy(b.out[at:], x)
		}
		b.one[0] = b.out[:size]
		batch = b.one[:]
	}
	n, err := b.Link.Send(batch)
	if b.owner.pending = n < size; b.owner.pending && err == nil && b.owner.blocked != nil {
		b.owner.blocked()
	}
	return n, err
}

// Unwrap returns the link itself, for frames that it sends completely, after which nothing is
// pending.
func (b *below) Unwrap() link.Link { return b.Link }

// Arm returns at once if bytes were read ahead.
func (b *below) Arm(want link.Interest) bool {
	b.dry = false
	return want&link.Readable != 0 && len(b.ahead) > 0 || b.Link.Arm(want)
}

// Close calls Released before it closes the link.
func (b *below) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	if b.owner.below == b {
		b.owner.below = nil
	}
	if b.owner.released != nil {
		b.owner.released(b.Link.Handle())
	}
	return b.Link.Close()
}
