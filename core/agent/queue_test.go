package agent

import (
	"testing"
)

func (q *queue) lengths() (all []int) {
	for i := range q.n {
		all = append(all, q.at(i).end-q.at(i).off)
	}
	return all
}

func wantLengths(t *testing.T, why string, q *queue, want ...int) {
	t.Helper()
	got := q.lengths()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = got[i] == want[i]
	}
	if !ok {
		t.Fatalf("%s: runs of %v bytes, want %v", why, got, want)
	}
}

// TestQueueJoins: runs that are neighbours in memory are one slice.
func TestQueueJoins(t *testing.T) {
	p := &pool{size: 1000}
	var q queue
	c := p.get()
	q.add(p, c, 0, 10, false)
	q.add(p, c, 10, 30, false)
	wantLengths(t, "neighbours", &q, 30)
	q.add(p, c, 40, 50, false)
	q.add(p, c, 60, 80, false)
	wantLengths(t, "two with gaps, copied together", &q, 30, 30)
	if c.refs != 2 || p.live != 2 {
		t.Fatalf("%d references, %d chunks", c.refs, p.live)
	}
	q.add(p, c, 100, 600, false)
	wantLengths(t, "large, not copied", &q, 30, 30, 500)
	q.add(p, c, 600, 601, false)
	wantLengths(t, "its neighbour", &q, 30, 30, 501)
	q.copyIn(p, make([]byte, 5), false)
	wantLengths(t, "the chunk of copies goes on", &q, 30, 30, 501, 5)
	if p.live != 2 {
		t.Fatalf("%d chunks", p.live)
	}
	q.copyIn(p, make([]byte, 970), false)
	if p.live != 3 {
		t.Fatalf("%d chunks after the chunk of copies was full", p.live)
	}
	p.put(c)
	if n := q.clear(p); n != 1536 || p.live != 0 {
		t.Fatalf("cleared %d bytes, %d chunks are left", n, p.live)
	}
}

// TestQueueLent: what the driver is writing, or has written in part, does not
// grow; what comes is a run of its own and still not copied.
func TestQueueLent(t *testing.T) {
	p := &pool{size: 1000}
	var q queue
	c := p.get()
	q.add(p, c, 0, 100, false)
	if b := q.lend(make([][]byte, 0, 4), 0, q.n); len(b) != 1 || len(b[0]) != 100 {
		t.Fatalf("lent %d slices", len(b))
	}
	q.add(p, c, 100, 200, false)
	wantLengths(t, "lent", &q, 100, 100)
	q.lent = 0
	q.sent(p, 100, 1)
	q.add(p, c, 200, 300, false)
	wantLengths(t, "free again", &q, 200)
	q.sent(p, 50, 1)
	q.add(p, c, 300, 400, false)
	wantLengths(t, "sent in part", &q, 150, 100)
	if q.bytes != 250 || p.live != 1 {
		t.Fatalf("%d bytes, %d chunks", q.bytes, p.live)
	}
}

// TestQueuePartial counts what must go before anything else.
func TestQueuePartial(t *testing.T) {
	p := &pool{size: 1000}
	var q queue
	for _, more := range []bool{true, true, false, false} {
		c := p.get()
		q.push(seg{c, 0, 600, more})
	}
	want := func(why string, n int) {
		t.Helper()
		if got := q.partial(); got != n {
			t.Fatalf("%s: %d runs, want %d", why, got, n)
		}
	}
	want("nothing is sent", 0)
	q.sent(p, 1, 4)
	want("a byte is sent", 3)
	q.sent(p, 599, 4)
	want("the first run is sent", 2)
	q.sent(p, 1199, 4)
	want("all but a byte of the packet", 1)
	q.sent(p, 1, 4)
	want("the packet is sent", 0)
}

// TestQueueRing sends and adds until the ring has gone round many times.
func TestQueueRing(t *testing.T) {
	p := &pool{size: 300}
	var q queue
	in, out := 0, 0
	for i := range 1000 {
		for range 1 + i%7 {
			c := p.get()
			c.buf[0], c.buf[299] = byte(in), byte(in)
			q.add(p, c, 0, 300, false)
			p.put(c)
			in++
		}
		for q.n > i%5*3 {
			if s := q.at(0); s.c.buf[s.off] != byte(out) {
				t.Fatalf("run %d is number %d", s.c.buf[s.off], byte(out))
			}
			if left, gone := q.sent(p, 300, 1); left != 0 || gone != 1 {
				t.Fatalf("left %d gone %d", left, gone)
			}
			out++
		}
	}
	if p.live != q.n || in-out != q.n {
		t.Fatalf("%d chunks in use, %d runs, %d came, %d went", p.live, q.n, in, out)
	}
}

// TestPool: a chunk that was returned comes back first, only some are kept, and
// returning one too often is our own bug.
func TestPool(t *testing.T) {
	p := &pool{size: 10}
	a, b := p.get(), p.get()
	p.put(a)
	p.put(b)
	if p.get() != b || p.get() != a || p.live != 2 {
		t.Fatal("not the last one first")
	}
	var all []*chunk
	for range 2 * maxIdle {
		all = append(all, p.get())
	}
	for _, c := range all {
		p.put(c)
	}
	if p.idle != maxIdle || p.live != 2 {
		t.Fatalf("%d are kept, %d in use", p.idle, p.live)
	}
	p.put(a)
	defer func() {
		if recover() == nil {
			t.Fatal("a chunk was returned twice")
		}
	}()
	p.put(a)
}
