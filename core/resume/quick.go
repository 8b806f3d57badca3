package resume

import (
	"encoding/binary"

	"github.com/openimpi/impi/core/link"
)

// quickSize is the most bytes that are worth a copy to have frame and header in one
// piece, for the sake of the call of the underlying link.
const quickSize = 2 << 10

// plainData is how a DATA frame without checksums begins.
const plainData = uint32(Version)<<24 | uint32(kindData)<<16

// sendQuick is Send for a few bytes on a link that is up and has nothing else to
// send: one frame, one call. It tells whether it was that.
func (l *state) sendQuick(batch [][]byte) (n int, ok bool) {
	o, w := &l.out, &l.tx
	if l.lower == nil || l.joining || l.summed || o.fin || w.err != nil || o.owed > 0 || o.next != o.end || w.busy() {
		return 0, false
	}
	buf := &l.quick // where header and bytes are in one piece
	at := headerSize
	for _, b := range batch {
		if len(b) > len(buf)-at {
			return 0, false
		}
		at += copy(buf[at:], b)
	}
	size := uint64(at - headerSize)
	if size == 0 || size > uint64(l.config.Frame) || o.end-o.acked+size > min(l.window, o.size) {
		return 0, false
	}
	h := header{kind: kindData, length: uint32(size), seq: o.next, ack: l.in.ack()}
	h.putPlain(buf[:])
	if o.acked == o.end {
		o.restart(o.end)
	}
	o.write(o.end, buf[headerSize:at])
	o.end += size
	o.shown = max(o.shown, o.end)
	l.told, l.hurry = h.ack, false
	l.one[0] = buf[:at]
	k, err := l.lower.Send(l.one[:])
	if err == nil && k == at {
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

// putPlain is put for a frame without checksums.
func (h *header) putPlain(b []byte) {
	_ = b[headerSize-1]
	binary.BigEndian.PutUint32(b, uint32(Version)<<24|uint32(h.kind)<<16)
	binary.BigEndian.PutUint32(b[4:], h.length)
	binary.BigEndian.PutUint64(b[8:], h.seq)
	binary.BigEndian.PutUint64(b[16:], h.ack)
	binary.BigEndian.PutUint64(b[24:], 0)
}

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
	in, r := &l.in, &l.rx
	if r.n > 0 || r.left > 0 || l.lower == nil || l.joining || l.summed || in.fin || in.delivered != in.have || l.closed || l.err != nil {
		return 0, 0, false
	}
	slice, off := 0, 0
	for room := link.Len(batch); len(raw)-used > headerSize; {
		b := raw[used:]
		size := binary.BigEndian.Uint32(b[4:])
		ack := binary.BigEndian.Uint64(b[16:])
		if binary.BigEndian.Uint32(b) != plainData || binary.BigEndian.Uint64(b[8:]) != in.have || binary.BigEndian.Uint64(b[24:]) != 0 ||
			ack < l.out.acked || ack > l.out.next ||
			size == 0 || uint64(size) > min(l.window, uint64(len(b)-headerSize), uint64(room-n)) {
			break
		}
		if ack > l.out.end && n == 0 {
			l.out.acknowledge(ack)
			return 0, 0, true
		}
		for data := b[headerSize : headerSize+size]; len(data) > 0; {
			if off == len(batch[slice]) {
				slice, off = slice+1, 0
			}
			k := copy(batch[slice][off:], data)
			off += k
			data = data[k:]
		}
		in.have += uint64(size)
		in.delivered = in.have
		l.out.acknowledge(ack)
		used += headerSize + int(size)
		n += int(size)
	}
	return used, n, n > 0 && (l.tx.busy() || l.ackIsDue(in.delivered))
}

// Flush sends what is pending.
func (l *Link) Flush() {
	l.lock()
	defer l.unlock()
	if !l.closed {
		l.flush()
	}
}
