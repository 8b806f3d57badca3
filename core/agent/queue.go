package agent

// seg is a run of bytes in a chunk. It begins with a packet, unless more is set in the
// segment before it.
type seg struct {
	c        *chunk
	off, end int
	more     bool // the last packet continues in the next seg
}

// queue is what waits for one link, in order. It has one reference to the chunk of each
// segment.
type queue struct {
	ring  []seg // a ring; its length is zero or a power of two
	head  int
	n     int
	bytes int
	mid   bool // a packet has been sent in part, or may have been, so nothing may be queued before its rest
	lent  int  // segs at the front that the driver is writing now
	final bool // the next run is the last one, and must be a segment of its own

	fill    *chunk // collects copies of short runs; the queue has its own reference to it
	fillEnd int
}

func (q *queue) at(i int) *seg { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// add appends a run without copying it, unless that would hold much more memory than it
// queues. The conditions bound the memory that a queue of n bytes holds: of each chunk at
// least half is queued, except for the oldest, the one being filled, and one that was
// referred to while the queue was empty.
func (q *queue) add(p *pool, c *chunk, off, end int, more bool) {
	switch {
	case q.follows(c, off):
		q.extend(end, more)
	case q.n == 0 || end-off >= p.size/2:
		c.refs++
		q.push(seg{c, off, end, more})
	default:
		q.copyIn(p, c.buf[off:end], more)
	}
}

// copyIn appends a copy of b, which must not be longer than a chunk.
func (q *queue) copyIn(p *pool, b []byte, more bool) {
	if q.fill != nil && q.fillEnd+len(b) > p.size {
		p.put(q.fill)
		q.fill = nil
	}
	if q.fill == nil {
		q.fill, q.fillEnd = p.get(), 0
	}
	off := q.fillEnd
	q.fillEnd += copy(q.fill.buf[off:], b)
	if q.follows(q.fill, off) {
		q.extend(q.fillEnd, more)
		return
	}
	q.fill.refs++
	q.push(seg{q.fill, off, q.fillEnd, more})
}

// follows reports whether a run at off comes right after the last segment in memory.
func (q *queue) follows(c *chunk, off int) bool {
	if q.n == 0 || q.final {
		return false
	}
	s := q.at(q.n - 1)
	return s.c == c && s.end == off
}

// extend appends the bytes after the last segment up to end. It makes that segment longer,
// unless the driver is writing it or has written a part of it: urgent packets, which go
// between segments, would have to wait for the addition too.
func (q *queue) extend(end int, more bool) {
	s := q.at(q.n - 1)
	if q.n <= q.lent || q.n == 1 && q.mid {
		s.c.refs++
		q.push(seg{s.c, s.end, end, more})
		return
	}
	q.bytes += end - s.end
	s.end, s.more = end, more
}

func (q *queue) push(s seg) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.n++
	*q.at(q.n - 1) = s
	q.bytes += s.end - s.off
}

func (q *queue) grow() {
	bigger := make([]seg, max(8, 2*len(q.ring)))
	for i := range q.n {
		bigger[i] = *q.at(i)
	}
	q.ring, q.head = bigger, 0
}

// partial returns how many segments at the front have to be sent to complete a packet of which a
// part has been sent.
func (q *queue) partial() int {
	if !q.mid {
		return 0
	}
	for i := range q.n {
		if !q.at(i).more {
			return i + 1
		}
	}
	return q.n
}

// lend appends the memory of segments from to to-1 to batch, as far as its capacity goes.
func (q *queue) lend(batch [][]byte, from, to int) [][]byte {
	for i := from; i < to && len(batch) < cap(batch); i++ {
		s := q.at(i)
		batch = append(batch, s.c.buf[s.off:s.end])
		q.lent = i + 1
	}
	return batch
}

// sent removes up to n bytes from the first segs segments. It returns how many of the n
// bytes are left and how many segments are gone.
func (q *queue) sent(p *pool, n, segs int) (left, gone int) {
	for ; gone < segs && n > 0; gone++ {
		s := q.at(0)
		k := min(n, s.end-s.off)
		n -= k
		q.bytes -= k
		if s.off += k; s.off < s.end {
			q.mid = true
			return 0, gone
		}
		q.mid = s.more
		p.put(s.c)
		*s = seg{}
		q.head = (q.head + 1) & (len(q.ring) - 1)
		q.n--
	}
	if q.n == 0 && q.fill != nil {
		p.put(q.fill)
		q.fill = nil
	}
	return n, gone
}

func (q *queue) clear(p *pool) int {
	n := q.bytes
	for i := range q.n {
		p.put(q.at(i).c)
	}
	if q.fill != nil {
		p.put(q.fill)
	}
	*q = queue{}
	return n
}
