package resume

import "github.com/openimpi/impi/plugins/sdk/link"

// ring has room for size bytes of a stream. Its user knows which positions it holds. Memory
// is allocated for what is held, so that a large window costs nothing where little is under way.
type ring struct {
	buf    []byte
	size   uint64 // maximum length of buf
	origin uint64 // position of buf[0], not above any held byte
}

// restart says that nothing is held and that position at comes next. Memory that was just
// used, and so is in the cache, is used again.
func (r *ring) restart(at uint64) { r.origin = at }

// firstRing is how much memory a ring has first, in bytes. It doubles from there.
const firstRing = 64 << 10

// reserve makes memory for n bytes from position from on, n <= size, of which those before
// position to are held.
func (r *ring) reserve(from, to, n uint64) {
	if n <= uint64(len(r.buf)) {
		return
	}
	grown := make([]byte, min(r.size, max(n, 2*uint64(len(r.buf)), firstRing)))
	var room [2][]byte
	b := grown
	for _, part := range r.parts(room[:0], from, to-from) {
		b = b[copy(b, part):]
	}
	r.buf, r.origin = grown, from
}

// parts appends to dst the memory of n bytes from position at on, which was reserved: one
// slice, or two where the ring wraps around. A ring that was given up has none.
func (r *ring) parts(dst [][]byte, at, n uint64) [][]byte {
	size := uint64(len(r.buf))
	if n == 0 || size == 0 {
		return dst
	}
	i := at - r.origin
	if i >= size { // rare, and a division is slow
		i %= size
	}
	if rest := size - i; n > rest {
		return append(dst, r.buf[i:], r.buf[:n-rest])
	}
	return append(dst, r.buf[i:i+n])
}

func (r *ring) write(at uint64, b []byte) {
	var room [2][]byte
	for _, part := range r.parts(room[:0], at, uint64(len(b))) {
		b = b[copy(part, b):]
	}
}

func sum(parts [][]byte) (sum uint32) {
	for _, part := range parts {
		sum = checksum(sum, part)
	}
	return sum
}

// outgoing is this side's stream. Positions: acked <= next <= reached, and all are at most
// end, or at most shown if bytes are lent, or end+1 after FIN. Bytes from acked to end are
// in the ring; those from end to shown are in the memory that the user has lent.
type outgoing struct {
	ring
	acked   uint64 // the peer's user has the bytes before this position
	next    uint64 // this underlying link has taken the bytes before this position
	reached uint64 // some underlying link has taken the bytes before this position
	end     uint64 // end of the bytes accepted from the user: copied, or lent and acknowledged
	fin     bool   // the stream ends at end

	shown  uint64   // the user has lent or sent the bytes before this position
	owed   uint64   // lent bytes before end that Lend or Send has not returned to the user yet
	lent   [][]byte // during Lend: the user's memory
	lentAt uint64   // position of the first byte of lent
	stop   uint64   // position after the last byte of lent
}

func (o *outgoing) room() uint64 {
	if o.fin {
		return 0
	}
	return o.size - (o.end - o.acked)
}

// take copies as much of batch as there is room for. It first skips the bytes that were
// lent and acknowledged.
func (o *outgoing) take(batch [][]byte) (n int) {
	if o.acked == o.end {
		o.restart(o.end)
	}
	for _, b := range batch {
		if k := min(o.owed, uint64(len(b))); k > 0 {
			o.owed -= k
			n += int(k)
			b = b[k:]
		}
		if room := o.room(); uint64(len(b)) > room {
			b = b[:room]
		}
		o.add(b)
		n += len(b)
	}
	o.shown = max(o.shown, o.end)
	return n
}

// add copies b, for which there is room, behind the end.
func (o *outgoing) add(b []byte) {
	o.reserve(o.acked, o.end, o.end-o.acked+uint64(len(b)))
	o.write(o.end, b)
	o.end += uint64(len(b))
}

func (o *outgoing) lend(batch [][]byte) {
	o.lent, o.lentAt = batch, o.end-o.owed
	o.stop = o.lentAt + uint64(link.Len(batch))
	o.shown = max(o.shown, o.stop)
}

// settle ends a call of Lend and returns how many bytes of the batch are the user's again.
func (o *outgoing) settle() (n int) {
	n = int(o.owed)
	o.lent, o.stop, o.owed = nil, 0, 0
	return n
}

// lending reports whether the user has lent bytes that were not returned to it.
func (o *outgoing) lending() bool { return o.shown > o.end || o.owed > 0 }

// acknowledge records that the peer's user has what is before a position: lent bytes before
// it are the user's again (docs/decisions/0015-link-resume.md).
func (o *outgoing) acknowledge(at uint64) {
	o.acked = at
	if at > o.end && !o.fin {
		o.owed += at - o.end
		o.end = at
	}
}

// parts is like the ring's, and continues in lent memory where there is some.
func (o *outgoing) parts(dst [][]byte, at, n uint64) [][]byte {
	if at < o.end {
		k := min(n, o.end-at)
		dst = o.ring.parts(dst, at, k)
		at, n = at+k, n-k
	}
	if n == 0 || at >= o.stop {
		return dst
	}
	skip := at - o.lentAt
	for _, b := range o.lent {
		size := uint64(len(b))
		if skip >= size {
			skip -= size
			continue
		}
		b = b[skip:min(size, skip+n)]
		dst = append(dst, b)
		skip = 0
		if n -= uint64(len(b)); n == 0 {
			break
		}
	}
	return dst
}

// unsent is the number of bytes that may be sent now with this window.
func (o *outgoing) unsent(window uint64) uint64 {
	limit := min(max(o.end, o.stop), o.acked+window)
	return limit - min(limit, o.next)
}

func (o *outgoing) sent(n uint64) {
	o.next += n
	o.reached = max(o.reached, o.next)
}

// complete reports whether the peer has acknowledged everything, FIN included.
func (o *outgoing) complete() bool { return o.fin && o.acked == o.end+1 }

// incoming is the peer's stream: bytes from delivered to have are in the ring.
type incoming struct {
	ring
	delivered uint64 // bytes that the user has received
	have      uint64 // bytes that have come
	fin       bool   // have is the end of the stream
}

// ended reports whether the user has received everything.
func (i *incoming) ended() bool { return i.fin && i.delivered == i.have }

// received is the position up to which everything has come, FIN included.
func (i *incoming) received() uint64 {
	if i.fin {
		return i.have + 1
	}
	return i.have
}

// ack is the position up to which everything was delivered.
func (i *incoming) ack() uint64 {
	if i.ended() {
		return i.delivered + 1
	}
	return i.delivered
}

// deliver copies from the ring to dst and returns the rest of dst.
func (i *incoming) deliver(dst [][]byte) [][]byte {
	for len(dst) > 0 && i.delivered < i.have {
		var room [2][]byte
		n := min(uint64(len(dst[0])), i.have-i.delivered)
		b := dst[0]
		for _, part := range i.parts(room[:0], i.delivered, n) {
			b = b[copy(b, part):]
		}
		i.delivered += n
		dst = link.Advance(dst, int(n))
	}
	return dst
}
