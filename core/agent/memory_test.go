package agent

import (
	"errors"
	"io"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
)

// within fails if the agent holds more memory than doc.go promises.
func (r *rig) within(why string) {
	r.t.Helper()
	s := r.Counts()
	links := len(r.all())
	held := 2 * (links + 1) * r.pool.size // where an input reads and where its packet began
	held += links * (int(r.c.MaxData) + wire.HeaderSize + r.pool.size)
	queues := 2 * 3 * links * r.pool.size
	if most := 2*s.Queued + held + queues; s.Memory > most {
		r.t.Fatalf("%s: %d bytes of memory for %d queued, more than %d", why, s.Memory, s.Queued, most)
	}
}

// TestNeverRead has a proc that never reads, while its neighbour and the foreign
// procs go on. What the agent holds stays within the window; the packet after
// that ends the channel of who sent it.
func TestNeverRead(t *testing.T) {
	c := job(0, 2, 1, 1)
	c.MaxData, c.AckMark, c.HiWater, c.ChunkSize = 4000, 8, 64, 16<<10
	r := newRig(t, c).attachAll()
	const deaf, other, bad, good = 0, 1, 2, 3
	fast := 0
	for i := range c.HiWater {
		r.must(r.feed(hostLink(1), r.packet(wire.PkData, bad, deaf, 4000, uint64(i)), everything))
		for range 20 {
			r.must(r.feed(hostLink(2), r.packet(wire.PkData, good, other, 3000, uint64(fast)), everything))
			fast++
			if fast%int(c.AckMark) == 0 {
				r.must(r.feed(procLink(other), r.packet(wire.PkProtoAck, other, good, 0, 0), everything))
				r.take(hostLink(2), everything)
			}
			r.take(procLink(other), everything)
		}
		if i%2 == 0 { // the deaf one still sends
			r.must(r.feed(procLink(deaf), r.packet(wire.PkData, deaf, other, 10, uint64(i)), everything))
			r.take(procLink(other), everything)
		}
		r.within("while one proc does not read")
	}
	if q, most := r.Counts().Queued, int(c.HiWater)*(4000+wire.HeaderSize); q != most {
		t.Fatalf("%d bytes are queued, want a full window, %d", q, most)
	}
	err := r.feed(hostLink(1), r.packet(wire.PkSyncAck, bad, deaf, 0, 99), everything)
	if !errors.Is(err, ErrProtocol) {
		t.Fatalf("beyond the window: %v", err)
	}
	r.must(r.feed(hostLink(2), r.packet(wire.PkData, good, deaf, 4, 0), everything))
}

// TestSmallPinsNothing sends one small packet to a proc that does not read out of
// each chunk that is otherwise for one that does.
func TestSmallPinsNothing(t *testing.T) {
	for _, size := range []int{0, 1000, 7000} {
		c := job(0, 2, 1)
		c.MaxData, c.HiWater, c.ChunkSize = 8000, 200, 16<<10
		c.Hosts[1].Own = true
		r := newRig(t, c).attachAll()
		for i := range 150 {
			b := r.packet(wire.PkData, 2, 0, size, uint64(i))
			for range 3 {
				b = append(b, r.packet(wire.PkData, 2, 1, 5000, 0)...)
			}
			r.must(r.feed(hostLink(1), b, everything))
			r.take(procLink(1), everything)
			r.within("small packets among large ones")
		}
	}
}

// TestIdleHoldsNothing: links that are silent and drained hold no chunk.
func TestIdleHoldsNothing(t *testing.T) {
	r := newRig(t, job(0, 40, 1)).attachAll()
	for i := range 40 {
		r.must(r.feed(procLink(i), r.packet(wire.PkData, i, 40, 100, 0), everything))
	}
	if r.Counts().Memory == 0 {
		t.Fatal("no memory for queued packets")
	}
	r.take(hostLink(1), everything)
	if m := r.Counts().Memory; m != 0 {
		t.Fatalf("%d bytes are held", m)
	}
}

// TestFloodOfAcks: a foreign host cannot fill memory with PROTOACKs for a proc
// that does not read.
func TestFloodOfAcks(t *testing.T) {
	c := job(0, 1, 1)
	r := newRig(t, c).attachAll()
	for range 100000 {
		r.must(r.feed(hostLink(1), r.packet(wire.PkProtoAck, 1, 0, 0, 0), everything))
	}
	if q, most := r.Counts().Queued, int(c.HiWater/c.AckMark)*wire.HeaderSize; q > most {
		t.Fatalf("%d bytes of PROTOACKs wait, more than %d", q, most)
	}
	if s := r.Counts(); s.Packets+s.Dropped != 100000 {
		t.Fatalf("%+v", s)
	}
}

// TestDeadProcHoldsNothing: what is for a proc that is gone does not stay, a part
// of a large packet neither.
func TestDeadProcHoldsNothing(t *testing.T) {
	c := job(0, 2, 1)
	c.ChunkSize = 1024
	r := newRig(t, c).attachAll()
	large := r.packet(wire.PkData, 2, 0, 60000, 0)
	r.must(r.feed(hostLink(1), large[:30000], everything))
	r.Closed(procLink(0), io.EOF)
	r.wantEvents("closed", ProcLost)
	r.must(r.feed(hostLink(1), large[30000:], everything))
	r.must(r.feed(hostLink(1), large, everything))
	r.must(r.feed(hostLink(1), r.packet(wire.PkData, 2, 1, 10, 0), everything))
	if got, _ := cut(r.take(procLink(1), everything)); len(got) != 1 {
		t.Fatalf("%d packets for the other proc", len(got))
	}
	r.Closed(hostLink(1), io.EOF)
	if s := r.Counts(); s.Dropped != 2 || s.Memory != 0 {
		t.Fatalf("%+v", s)
	}
}

// TestLocalProcsCostLittle: what an agent keeps for a local proc depends on its
// traffic. Of the job as a whole there is one table.
func TestLocalProcsCostLittle(t *testing.T) {
	const local, remote = 90, 50_000
	cost := func(local int, traffic bool) int {
		c := job(0, local, remote)
		c.ChunkSize = 1 << 10
		return int(allocs.BytesExact(func() {
			r := newRig(t, c).attachAll()
			for i := 0; traffic && i < local; i++ {
				to := (i + 1) % local
				r.must(r.feed(procLink(i), r.packet(wire.PkData, i, to, 8, 0), everything))
				r.take(procLink(to), everything)
			}
		}))
	}
	idle := (cost(local, false) - cost(1, false)) / (local - 1)
	busy := (cost(local, true) - cost(local, false)) / local
	t.Logf("%d bytes for a local proc, %d more with traffic", idle, busy)
	if idle > 1<<10 || busy > 1<<10 {
		t.Errorf("%d bytes for a local proc, %d more with traffic", idle, busy)
	}
}
