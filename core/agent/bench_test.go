package agent

import (
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// exchange moves the bytes of batch, packets from host 1 to local procs, through
// the agent once, as a driver does whose links are never full.
func (r *rig) exchange(batch []byte) {
	for len(batch) > 0 {
		n := copy(r.Input(hostLink(1))[0], batch)
		batch = batch[n:]
		if err := r.Received(hostLink(1), n); err != nil {
			r.t.Fatal(err)
		}
		for _, l := range r.GrownQueues() {
			for r.HasOutput(l) {
				n := 0
				for _, b := range r.Output(l) {
					n += len(b)
				}
				r.Sent(l, n)
			}
		}
	}
}

// traffic is count packets of n bytes from the foreign proc to dests in turn. The
// host is an own one, so that the window does not end it.
func traffic(t testing.TB, count, n, dests int) (*rig, []byte) {
	c := job(0, dests, 1)
	c.Hosts[1].Own = true
	c.MaxData = 1 << 20
	r := newRig(t, c).attachAll()
	var b []byte
	for i := range count {
		b = append(b, r.packet(wire.PkData, dests, i%dests, n, uint64(i))...)
	}
	return r, b
}

// TestAllocations: in steady state switching allocates nothing.
func TestAllocations(t *testing.T) {
	for _, x := range []struct{ count, n, dests int }{{1, 8, 1}, {1000, 8, 1}, {1000, 8, 16}, {50, 65536, 3}, {3, 1 << 20, 2}} {
		r, b := traffic(t, x.count, x.n, x.dests)
		if got := testing.AllocsPerRun(50, func() { r.exchange(b) }); got != 0 {
			t.Errorf("%+v: %v allocations", x, got)
		}
	}
}

// TestAllocationsWindow: counting pairs and passing PROTOACKs on neither.
func TestAllocationsWindow(t *testing.T) {
	c := job(0, 1, 1)
	r := newRig(t, c).attachAll()
	var b []byte
	for i := range c.AckMark {
		b = append(b, r.packet(wire.PkData, 1, 0, 8, uint64(i))...)
	}
	b = append(b, r.packet(wire.PkProtoAck, 1, 0, 8, 0)...)
	back := append(r.packet(wire.PkProtoAck, 0, 1, 8, 0), b[:0]...)
	for i := range c.AckMark {
		back = append(back, r.packet(wire.PkData, 0, 1, 8, uint64(i))...)
	}
	run := func() {
		r.exchange(b)
		if err := r.Received(procLink(0), copy(r.Input(procLink(0))[0], back)); err != nil {
			t.Fatal(err)
		}
		r.exchange(b[:0])
		n := 0
		for _, x := range r.Output(hostLink(1)) {
			n += len(x)
		}
		r.Sent(hostLink(1), n)
	}
	if got := testing.AllocsPerRun(50, run); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// BenchmarkSwitch returns the time per packet. One copy, from the test into the
// agent's memory, stands for the read system call and is part of it.
func BenchmarkSwitch(b *testing.B) {
	for _, x := range []struct{ count, n, dests int }{
		{1, 8, 1}, {500, 8, 1}, {500, 8, 16}, {60, 1024, 4}, {8, 65536, 1}, {8, 65536, 2}, {2, 1 << 20, 1},
	} {
		b.Run(fmt.Sprintf("packets=%d/bytes=%d/dests=%d", x.count, x.n, x.dests), func(b *testing.B) {
			r, batch := traffic(b, x.count, x.n, x.dests)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				r.exchange(batch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*x.count), "ns/packet")
		})
	}
}

// BenchmarkCopy is the copy alone, to compare.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{136, 500 * 136, 8 * 65664, 2 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			src, dst := make([]byte, n), make([]byte, DefaultChunkSize)
			b.SetBytes(int64(n))
			for b.Loop() {
				for at := 0; at < n; {
					at += copy(dst, src[at:])
				}
			}
		})
	}
}
