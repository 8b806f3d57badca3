package message

import (
	"testing"

	"github.com/openimpi/impi/internal/allocs"
)

func engineOf(tb testing.TB, d *Directory) *Engine {
	tb.Helper()
	e, err := New(Config{Directory: d, MaxData: 65536, AckMark: 8, HiWater: 32})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// The memory of an engine depends on the procs that it exchanges messages with, not on how
// many there are.
func TestEngineMemoryDoesNotGrowWithTheJob(t *testing.T) {
	small, large := jobOf(t, 100), jobOf(t, 100_000)
	const engines = 50
	cost := func(d *Directory) int {
		keep := make([]*Engine, engines)
		n := allocs.BytesExact(func() {
			for i := range keep {
				e := engineOf(t, d)
				e.Attach(0)
				for k := 1; k < 64; k *= 2 {
					e.SetRoute(Peer(d.Len()-k), 0)
					e.Send(Peer(d.Len()-k), Envelope{}, Standard, nil, 0, 0)
				}
				e.Sent(0, total(e.Output(0)))
				keep[i] = e
			}
		})
		return int(n) / engines
	}
	before, after := cost(small), cost(large)
	t.Logf("%d bytes in a job of 100 procs, %d in one of 100,000", before, after)
	if after > before+256 {
		t.Errorf("%d bytes more in the large job", after-before)
	}
	if before > 10<<10 {
		t.Errorf("%d bytes for an engine that talks to 6 peers", before)
	}
}

// Asking about procs allocates no state for them.
func TestQuestionsMakeNoPeers(t *testing.T) {
	d := jobOf(t, 1000)
	e := engineOf(t, d)
	for p := range Peer(d.Len()) {
		if _, ok := e.Route(p); ok || e.Unreachable(p) != nil || e.Proc(p) != d.Proc(p) {
			t.Fatalf("peer %d", p)
		}
	}
	e.Recv(Envelope{Rank: 7}, 7, nil)
	if n := len(e.peers.made); n != 1 {
		t.Errorf("%d peers have been made", n)
	}
}

// Whatever the distances, each peer is found and none is made twice.
func TestPeersAreFound(t *testing.T) {
	e := engineOf(t, jobOf(t, 70_000))
	made := map[Peer]*peer{0: e.self}
	look := func(i Peer) {
		p := e.peer(i)
		if old, ok := made[i]; ok && old != p || p.index != i || p.proc != e.Proc(i) {
			t.Fatalf("peer %d is found as %d", i, p.index)
		}
		made[i] = p
	}
	for distance := Peer(1); distance < 70_000; distance *= 2 {
		for i := Peer(0); i < 70_000 && i < 100*distance; i += distance {
			look(i)
		}
	}
	for i := range made {
		look(i)
	}
	for i, p := range e.peers.sorted() {
		if made[p.index] != p || i > 0 && e.peers.sorted()[i-1].index >= p.index {
			t.Fatalf("%d of the peers is %d", i, p.index)
		}
		if i > 100 {
			break
		}
	}
	if n := len(e.peers.made); n != len(made) {
		t.Errorf("%d peers, want %d", n, len(made))
	}
}

// A hash that maps many ranks to one place would make every packet slow.
func TestPeersAreSpread(t *testing.T) {
	for distance := Peer(1); distance < 1<<20; distance *= 2 {
		var table peers
		for i := range Peer(64) {
			table.add(&peer{index: i * distance})
		}
		for _, p := range table.made {
			steps, at := 0, hash(p.index)>>table.shift
			for table.slots[int(at)%len(table.slots)] != p {
				at, steps = at+1, steps+1
			}
			if steps > 8 {
				t.Fatalf("distance %d: %d steps to peer %d", distance, steps, p.index)
			}
		}
	}
}

func TestPeersOutsideTheJobPanic(t *testing.T) {
	for _, p := range []Peer{NoPeer, 100} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("peer %d of 100", p)
				}
			}()
			engineOf(t, jobOf(t, 100)).Send(p, Envelope{}, Standard, nil, 0, 0)
		}()
	}
}

// Losing the link to the agent concerns only the procs with which this one has exchanged
// messages.
func TestDetachReachesOnlyThoseKnown(t *testing.T) {
	e := engineOf(t, jobOf(t, 100_000))
	e.Attach(0)
	for _, p := range []Peer{5, 99_999} {
		e.SetRoute(p, 0)
	}
	e.Detach(0, errCut)
	if e.Unreachable(5) == nil || e.Unreachable(99_999) == nil || e.Unreachable(6) != nil || len(e.peers.made) != 3 {
		t.Errorf("5: %v, 99999: %v, 6: %v, %d peers", e.Unreachable(5), e.Unreachable(99_999), e.Unreachable(6), len(e.peers.made))
	}
}

func BenchmarkPeer(b *testing.B) {
	e := engineOf(b, jobOf(b, 100_000))
	for k := Peer(1); k < 100_000; k *= 2 {
		e.peer(k)
	}
	for k := Peer(1); b.Loop(); k *= 2 {
		if k >= 100_000 {
			k = 1
		}
		if e.peer(k).index != k {
			b.Fatal(k)
		}
	}
}

// BenchmarkDirectory is what finding the sender of a packet costs where every packet comes
// from another proc.
func BenchmarkDirectory(b *testing.B) {
	d := jobOf(b, 100_000)
	for i := 0; b.Loop(); i++ {
		if p, known := d.Find(d.Proc(Peer(i * 7919 % 100_000))); !known || int(p) != i*7919%100_000 {
			b.Fatal(i)
		}
	}
}
