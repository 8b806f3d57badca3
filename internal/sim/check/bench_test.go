package check

import (
	"testing"
	"time"
)

// course is a chain of links that packets of one pair pass again and again.
type course struct {
	c     *Checker
	stops []Endpoint
}

func newCourse(tb testing.TB, datalen int) *course {
	job := testJob()
	job.Datalen, job.AckMark, job.HiWater = uint32(datalen), 32, 128
	c := newChecker(tb, job)
	r := &course{c: c, stops: way(0, 3)}
	for i := range r.stops[1:] {
		if err := c.Link(i, r.stops[i], r.stops[i+1]); err != nil {
			tb.Fatal(err)
		}
	}
	r.hop(tb, 1, false, greetingOf(1))
	return r
}

// hop takes b over link i in pieces as large as a socket takes.
func (r *course) hop(tb testing.TB, i int, down bool, b []byte) {
	for len(b) > 0 {
		n := min(len(b), 64<<10)
		err := r.c.Sent(i, down, b[:n], time.Second)
		if err == nil {
			err = r.c.Received(i, !down, n, time.Second)
		}
		if err != nil {
			tb.Fatal(err)
		}
		b = b[n:]
	}
}

// round sends a batch of packets there and their PROTOACK back.
func (r *course) round(tb testing.TB, batch, ack []byte) {
	last := len(r.stops) - 2
	for i := range last + 1 {
		r.hop(tb, i, true, batch)
	}
	for i := range last + 1 {
		r.hop(tb, last-i, false, ack)
	}
}

func batchOf(n int) (batch []byte) {
	for range 32 {
		batch = append(batch, msg(0, 3, n).bytes()...)
	}
	return batch
}

// The cost of a round, by bytes written: three links see each byte.
func BenchmarkRound(b *testing.B) {
	for _, test := range []struct {
		name string
		size int
	}{{"empty", 0}, {"1k", 1 << 10}, {"256k", 256 << 10}} {
		b.Run(test.name, func(b *testing.B) {
			r := newCourse(b, 256<<10)
			batch, back := batchOf(test.size), ack(3, 0).bytes()
			b.SetBytes(int64(3 * (len(batch) + len(back))))
			b.ReportAllocs()
			for b.Loop() {
				r.round(b, batch, back)
			}
		})
	}
}

func TestNoAllocationPerPacket(t *testing.T) {
	r := newCourse(t, 1<<10)
	batch, back := batchOf(1<<10), ack(3, 0).bytes()
	if n := testing.AllocsPerRun(10, func() { r.round(t, batch, back) }); n != 0 {
		t.Errorf("32 packets over 3 links make %v allocations", n)
	}
}
