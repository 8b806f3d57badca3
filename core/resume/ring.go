package resume

import "github.com/openimpi/impi/core/link"

// ring has room for size bytes of a stream; who uses it knows which positions it
// holds. The memory is allocated when it is first needed.
type ring struct {
	buf  []byte
	size uint64
}

// parts appends to dst the memory of n bytes from position at on, n <= size: one
// slice, or two where the ring wraps round.
func (r *ring) parts(dst [][]byte, at, n uint64) [][]byte {
	if n == 0 {
		return dst
	}
	if r.buf == nil {
		r.buf = make([]byte, r.size)
	}
	i := at % r.size
	if rest := r.size - i; n > rest {
		return append(dst, r.buf[i:], r.buf[:n-rest])
	}
	return append(dst, r.buf[i:i+n])
}

// write puts b, which must fit, at a position.
func (r *ring) write(at uint64, b []byte) {
	var room [2][]byte
	for _, part := range r.parts(room[:0], at, uint64(len(b))) {
		b = b[copy(part, b):]
	}
}

// sum extends a CRC-32C by n bytes from a position on.
func (r *ring) sum(at, n uint64) (sum uint32) {
	var room [2][]byte
	for _, part := range r.parts(room[:0], at, n) {
		sum = checksum(sum, part)
	}
	return sum
}

// outgoing is this side's stream. Positions: acked <= next <= reached, and all are
// at most end, or end+1 once there is a FIN.
type outgoing struct {
	ring
	acked   uint64 // the peer's user has what is before
	next    uint64 // what this underlying link has taken is before
	reached uint64 // what any underlying link has taken is before
	end     uint64 // bytes accepted from the user
	fin     bool   // there will be no more
}

// room is the number of bytes that can be accepted.
func (o *outgoing) room() uint64 {
	if o.fin {
		return 0
	}
	return o.size - (o.end - o.acked)
}

// take copies what fits of batch.
func (o *outgoing) take(batch [][]byte) (n int) {
	for _, b := range batch {
		if room := o.room(); uint64(len(b)) > room {
			b = b[:room]
		}
		o.write(o.end, b)
		o.end += uint64(len(b))
		n += len(b)
	}
	return n
}

// unsent is the number of bytes that may leave now under a window.
func (o *outgoing) unsent(window uint64) uint64 {
	limit := min(o.end, o.acked+window)
	return limit - min(limit, o.next)
}

// sent moves next on by n.
func (o *outgoing) sent(n uint64) {
	o.next += n
	o.reached = max(o.reached, o.next)
}

// complete tells whether the peer has acknowledged everything.
func (o *outgoing) complete() bool { return o.fin && o.acked == o.end+1 }

// incoming is the peer's stream: bytes from delivered to have are in the ring.
type incoming struct {
	ring
	delivered uint64 // bytes that the user has
	have      uint64 // bytes that have come
	fin       bool   // and they were all
}

// ended tells whether the user has everything that there will ever be.
func (i *incoming) ended() bool { return i.fin && i.delivered == i.have }

// received is the position of what comes next.
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

// deliver copies from the ring to dst and returns what is left of dst.
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
