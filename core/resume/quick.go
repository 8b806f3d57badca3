package resume

import (
	"encoding/binary"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// quickSize is up to how many bytes are copied behind the frame's header, so that the frame
// is one slice for the system call.
const quickSize = 2 << 10

// plainData is the first 4 bytes of a DATA frame without checksums
// (docs/decisions/0015-link-resume.md: checksums are a choice).
const plainData = uint32(Version)<<24 | uint32(kindData)<<16

// SendQuick sends batch if it can leave at once in one frame, which is the usual case. It takes all
// of batch or nothing; in the latter case the caller uses Send.
func (l *Link) SendQuick(batch [][]byte) (n int) {
	l.lock()
	n = l.sendQuick(batch)
	l.unlock()
	return n
}

// sendQuick sends batch in one frame and one call if the link is up and has nothing else to
// send. It copies the bytes for replay afterwards, while they are on their way. It takes
// all of batch or nothing.
func (l *state) sendQuick(batch [][]byte) int {
	o, w := &l.out, &l.tx
	if l.plain == nil || (o.next-o.end)|o.owed|w.left|uint64(w.size-w.off) != 0 {
		return 0
	}
	size := uint64(link.Len(batch)) // for 0, size-1 in the next line is huge
	if size-1 >= uint64(l.config.Frame) || o.end-o.acked+size > l.window {
		return 0
	}
	ack, quick := l.in.delivered, l.quick
	binary.BigEndian.PutUint32(quick[4:], uint32(size))
	binary.BigEndian.PutUint64(quick[8:], o.next)
	binary.BigEndian.PutUint64(quick[16:], ack)
	// A short batch is copied after the header, since the kernel accepts one slice faster than
	// several.
	at, long := headerSize, batch
	for len(long) > 0 && len(long[0]) <= len(quick)-at {
		at += copy(quick[at:], long[0])
		long = long[1:]
	}
	frame := append(l.scratch[:0], quick[:at])
	if len(long) > 0 {
		frame = append(frame, long...)
	}
	l.scratch = frame
	k, err := l.plain.Send(frame)
	if len(long) > 0 {
		clear(frame) // do not keep references to the user's memory
	}
	l.told, l.hurry = ack, false
	o.keep(batch)
	if k == headerSize+int(size) && err == nil {
		o.next = o.end
		o.reached = max(o.reached, o.end)
	} else {
		l.goOn(header{kind: kindData, length: uint32(size), seq: o.next, ack: ack}, k, err)
	}
	return int(size)
}

// keep copies all of batch for replay. There must be room for it.
func (o *outgoing) keep(batch [][]byte) {
	if o.acked == o.end {
		o.restart(o.end)
	}
	for _, b := range batch {
		if i := o.end - o.origin; i+uint64(len(b)) <= uint64(len(o.buf)) { // the usual case: no wrap
			copy(o.buf[i:], b)
			o.end += uint64(len(b))
		} else {
			o.add(b)
		}
	}
	o.shown = max(o.shown, o.end)
}

// Peek returns the bytes of the DATA frame at the start of raw, and reports whether they
// are all of the frame. raw must be all that came since the last call of any method that
// receives. Peek returns nil if raw does not begin with such a frame, or if the frame also
// returns lent bytes; then Feed or Recv has to be used. Discard follows.
func (l *Link) Peek(raw []byte) (data []byte, whole bool) {
	l.lock()
	if l.fresh() {
		if size, ack := l.frame(raw); size > 0 && ack <= l.out.end {
			l.peeked, l.peekedAck = size, ack
			data = raw[headerSize:]
			if whole = size <= len(data); whole {
				data = data[:size]
			}
		}
	}
	l.unlock()
	return data, whole
}

// Discard must be the next call after Peek. It records that the first n bytes that Peek returned
// were delivered; Recv or DirectBytes must read the others. It returns the number of bytes of raw
// that were used and, like Feed, whether Flush must be called.
func (l *Link) Discard(n int) (used int, answer bool) {
	if n == 0 {
		return 0, false
	}
	l.lock()
	in := &l.in
	in.have += uint64(n)
	in.delivered = in.have
	l.out.acked = l.peekedAck // copied bytes only: Peek refuses frames that return lent ones
	l.rx.left = uint64(l.peeked - n)
	answer = in.have-l.told >= l.due || l.tx.busy()
	l.unlock()
	return headerSize + n, answer
}

// goOn records that plain has taken n bytes of a frame, and sends the rest by lower.
func (l *state) goOn(h header, n int, err error) {
	w := &l.tx
	w.begin(h)
	w.off = min(n, headerSize)
	w.left -= uint64(n - w.off)
	l.out.sent(uint64(n - w.off))
	w.err = err
	l.flush()
}

// fresh reports whether the quick path may read: no frame has begun, no received byte waits
// in the ring, and frames have no checksums.
func (l *state) fresh() bool {
	in, r := &l.in, &l.rx
	return l.plain != nil && (in.have-in.delivered)|r.left|uint64(r.n) == 0
}

// setPlain sets plain: nil unless the quick path can be used. It is called when something
// that this depends on has changed.
func (l *state) setPlain() {
	l.plain = nil
	if l.lower == nil || l.joining || l.summed || l.out.fin || l.in.fin {
		return
	}
	l.plain = l.lower
	if b, ok := l.lower.(Wrapper); ok {
		l.plain = b.Unwrap()
	}
}

// frame returns the size and the acknowledgement of the DATA frame without checksums that b
// begins with, complete or not. The size is 0 if there is no such frame, or if it is not
// what must come next.
func (l *state) frame(b []byte) (size int, ack uint64) {
	if len(b) <= headerSize {
		return 0, 0
	}
	n := binary.BigEndian.Uint32(b[4:])
	ack = binary.BigEndian.Uint64(b[16:])
	if binary.BigEndian.Uint32(b) != plainData || binary.BigEndian.Uint64(b[8:]) != l.in.have || binary.BigEndian.Uint64(b[24:]) != 0 ||
		ack < l.out.acked || ack > l.out.next || uint64(n) > l.window {
		return 0, 0
	}
	return int(n), ack
}

// came records that n bytes of a frame were delivered, and handles its acknowledgement.
func (l *state) came(n int, ack uint64) {
	l.in.have += uint64(n)
	l.in.delivered = l.in.have
	l.out.acknowledge(ack)
}

// answers reports whether something has to be sent because bytes were delivered.
func (l *state) answers() bool { return l.tx.busy() || l.ackIsDue(l.in.delivered) }

// Feed is Recv for bytes that the caller has received from the underlying link; raw must be all
// bytes that arrived since the last call of any method that receives. It takes DATA frames from the
// start of raw that are complete, in order and fit into batch, and returns the number of bytes of
// raw used and the number of bytes stored in batch. The underlying link's Recv must return the rest
// again. If answer is set, something has to be sent: the caller calls Flush once the used bytes are
// removed from the underlying link. If answer is set and n is 0, lent bytes are the user's again,
// which is reported before any further bytes: see Recv.
func (l *Link) Feed(raw []byte, batch [][]byte) (used, n int, answer bool) {
	l.lock()
	defer l.unlock()
	if !l.fresh() {
		return 0, 0, false
	}
	slice, off := 0, 0
	for room := link.Len(batch); ; {
		size, ack := l.frame(raw[used:])
		if size == 0 || size > min(room-n, len(raw)-used-headerSize) {
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

// DirectBytes returns the number of bytes still to arrive of a DATA frame that has begun, if they
// may be read straight into the user's memory, and 0 if Recv has to be used. ReadDirect follows.
func (l *Link) DirectBytes() (n int) {
	l.lock()
	if l.plain != nil && l.in.delivered == l.in.have {
		n = int(l.rx.left)
	}
	l.unlock()
	return n
}

// ReadDirect records that the caller has read n of the bytes of DirectBytes into the user's memory.
// It reports whether Flush must be called.
func (l *Link) ReadDirect(n int) (answer bool) {
	l.lock()
	l.rx.left -= uint64(n)
	l.came(n, l.out.acked)
	answer = l.answers()
	l.unlock()
	return answer
}

// Flush sends pending bytes, as far as the underlying link accepts them.
func (l *Link) Flush() {
	l.lock()
	defer l.unlock()
	if !l.closed {
		l.flush()
	}
}
