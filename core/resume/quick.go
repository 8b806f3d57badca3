package resume

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/link"
)

// quickSize is the most bytes that are worth a copy to have them and the frame's header
// in one piece, for the sake of the call of the underlying link.
const quickSize = 2 << 10

// plainData is how a DATA frame without checksums begins.
const plainData = uint32(Version)<<24 | uint32(kindData)<<16

// sendQuick is Send for bytes on a link that is up and has nothing else to send: one
// frame, one call. They are kept for replay after that, when they are on their way. It
// tells whether it was that.
func (l *state) sendQuick(batch [][]byte) (n int, ok bool) {
	o, w := &l.out, &l.tx
	if l.lower == nil || l.joining || l.summed || o.fin || w.err != nil || o.owed > 0 || o.next != o.end || w.busy() {
		return 0, false
	}
	size := uint64(link.Len(batch))
	if size == 0 || size > uint64(l.config.Frame) || o.end-o.acked+size > min(l.window, o.size) {
		return 0, false
	}
	h := header{kind: kindData, length: uint32(size), seq: o.next, ack: l.in.ack()}
	h.putPlain(l.quick)
	frame := l.gather(batch)
	k, err := l.lower.Send(frame)
	o.keep(batch)
	clear(frame)
	l.told, l.hurry = h.ack, false
	if err == nil && k == headerSize+int(size) {
		o.next = o.end
		o.reached = max(o.reached, o.end)
		return int(size), true
	}
	w.begin(h)
	w.off = min(k, headerSize)
	w.left -= uint64(k - w.off)
	o.sent(uint64(k - w.off))
	if w.err = err; err != nil {
		l.settle()
	}
	return int(size), true
}

// gather gives the frame of which the header is in quick: what is short is copied behind
// that, as the kernel takes one slice quicker than several.
func (l *state) gather(batch [][]byte) [][]byte {
	at := headerSize
	for len(batch) > 0 && len(batch[0]) <= len(l.quick)-at {
		at += copy(l.quick[at:], batch[0])
		batch = batch[1:]
	}
	l.scratch = append(append(l.scratch[:0], l.quick[:at]), batch...)
	return l.scratch
}

// keep copies all of batch, for which there is room, for replay.
func (o *outgoing) keep(batch [][]byte) {
	if o.acked == o.end {
		o.restart(o.end)
	}
	for _, b := range batch {
		o.write(o.end, b)
		o.end += uint64(len(b))
	}
	o.shown = max(o.shown, o.end)
}

// putPlain is put for a frame without checksums.
func (h *header) putPlain(b []byte) {
	_ = b[headerSize-1]
	binary.BigEndian.PutUint32(b, uint32(Version)<<24|uint32(h.kind)<<16)
	binary.BigEndian.PutUint32(b[4:], h.length)
	binary.BigEndian.PutUint64(b[8:], h.seq)
	binary.BigEndian.PutUint64(b[16:], h.ack)
	binary.BigEndian.PutUint64(b[24:], 0)
}

// plain tells whether a DATA frame without a checksum may come next, and nothing is
// there that comes before it.
func (l *state) plain() bool {
	in, r := &l.in, &l.rx
	return r.n == 0 && r.left == 0 && l.lower != nil && !l.joining && !l.summed && !in.fin && in.delivered == in.have && !l.closed && l.err == nil
}

// frame judges what b begins with. It tells how many bytes a DATA frame has that is
// whole and in order; 0 if there is none.
func (l *state) frame(b []byte) (size int, ack uint64) {
	if len(b) <= headerSize {
		return 0, 0
	}
	n := binary.BigEndian.Uint32(b[4:])
	ack = binary.BigEndian.Uint64(b[16:])
	if binary.BigEndian.Uint32(b) != plainData || binary.BigEndian.Uint64(b[8:]) != l.in.have || binary.BigEndian.Uint64(b[24:]) != 0 ||
		ack < l.out.acked || ack > l.out.next || uint64(n) > min(l.window, uint64(len(b)-headerSize)) {
		return 0, 0
	}
	return int(n), ack
}

// came notes that n bytes of a frame were delivered, and what it acknowledges.
func (l *state) came(n int, ack uint64) {
	l.in.have += uint64(n)
	l.in.delivered = l.in.have
	l.out.acknowledge(ack)
}

// Peek gives the bytes of the DATA frame at the front of raw, which has all that came
// since the last call of any method that receives; none if there is no such frame, or it
// is not whole, or has more to say: Feed and Recv are for those. Discard follows.
func (l *Link) Peek(raw []byte) (data []byte) {
	l.lock()
	if l.plain() {
		if size, ack := l.frame(raw); size > 0 && ack <= l.out.end {
			l.peeked, l.peekedAck = size, ack
			data = raw[headerSize : headerSize+size]
		}
	}
	l.unlock()
	return data
}

// Discard says that the first n bytes of what the last call, Peek, gave are delivered;
// Recv must get the others. It tells how many bytes of raw were used by that, and, like
// Feed, whether Flush is to be called.
func (l *Link) Discard(n int) (used int, answer bool) {
	if n == 0 {
		return 0, false
	}
	l.lock()
	l.came(n, l.peekedAck)
	l.rx.left = uint64(l.peeked - n)
	answer = l.answers()
	l.unlock()
	return headerSize + n, answer
}

// answers tells whether something is to be sent because bytes were delivered.
func (l *state) answers() bool { return l.tx.busy() || l.ackIsDue(l.in.delivered) }

// Feed is Recv for bytes that the caller has received from the underlying link, all
// that came since the last call of any method that receives. It takes DATA frames
// from the front of raw that are whole, in order and fit into batch, and tells how
// many bytes of raw those were and how many batch got. For the rest the underlying
// link's Recv must give them again. If answer is set, something is to be sent: the
// caller calls Flush, once the underlying link does not have what was used any more.
// If it is set and n is 0, lent bytes have come back, which is told first: see Recv.
func (l *Link) Feed(raw []byte, batch [][]byte) (used, n int, answer bool) {
	l.lock()
	defer l.unlock()
	if !l.plain() {
		return 0, 0, false
	}
	slice, off := 0, 0
	for room := link.Len(batch); ; {
		size, ack := l.frame(raw[used:])
		if size == 0 || size > room-n {
			break
		}
		if ack > l.out.end && n == 0 {
			l.out.acknowledge(ack)
			return 0, 0, true
		}
		for data := raw[used+headerSize:][:size]; len(data) > 0; {
			if off == len(batch[slice]) {
				slice, off = slice+1, 0
			}
			k := copy(batch[slice][off:], data)
			off += k
			data = data[k:]
		}
		l.came(size, ack)
		used += headerSize + size
		n += size
	}
	return used, n, n > 0 && l.answers()
}

// Flush sends what is pending.
func (l *Link) Flush() {
	l.lock()
	defer l.unlock()
	if !l.closed {
		l.flush()
	}
}
