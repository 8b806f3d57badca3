package check

import (
	"math/rand/v2"
	"testing"
)

func TestMemory(t *testing.T) {
	const chunk = 1000
	const perLink = 8*chunk + HeaderSize + testDatalen
	held := int64(HeaderSize + 8)
	for _, test := range []struct {
		name           string
		queued, memory int64
		want           Rule
	}{
		{"what it has read", held, chunk, ""},
		{"two FINIs more", held + 2*HeaderSize, chunk, ""},
		{"more than it has read", held + 2*HeaderSize + 1, chunk, RuleMemory},
		{"nothing", 0, 0, ""},
		{"much for little", held, 2*held + 4*perLink, ""},
		{"too much", held, 2*held + 4*perLink + 1, RuleMemory},
		{"a leak", 0, 4*perLink + 1, RuleMemory},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.hop(ProcEnd(0), AgentEnd(0), msg(0, 3, 8).bytes())
			r.must()
			if n := r.c.Held(0); n != held {
				t.Errorf("agent 0 holds %d bytes, want %d", n, held)
			}
			r.note(r.c.Memory(0, test.queued, test.memory, chunk, 0))
			wants(t, r.err, test.want)
		})
	}
}

// An agent that keeps bytes that will never be read has not ended in order.
func TestNothingIsQueuedInTheEnd(t *testing.T) {
	for _, queued := range []int64{0, 1} {
		r := newRig(t)
		r.carry(msg(0, 3, 8), msg(0, 3, 8), ack(3, 0))
		r.note(r.c.Memory(1, 2*HeaderSize, 1000, 1000, 0))
		r.note(r.c.Memory(1, queued, 1000, 1000, 0))
		r.end()
		want := Rule("")
		if queued > 0 {
			want = RuleMemory
		}
		wants(t, r.err, want)
	}
}

// Bytes that pass through, and bytes that agents send or receive themselves, are not held.
func TestHeldIsNothingInTheEnd(t *testing.T) {
	r := newRig(t)
	r.carry(msg(0, 3, 8), msg(0, 3, 8), ack(3, 0), msg(4, 1, 1), sync(1, 4, 3, 3), syncAck(4, 1, 3, 0), ack(1, 4))
	r.end()
	r.must()
	for h := range 2 {
		if n := r.c.Held(h); n != 0 {
			t.Errorf("agent %d holds %d bytes", h, n)
		}
	}
}

// Senders that respect the windows cannot make an agent hold more than the bound, but can make it
// hold all of it except incomplete headers and PROTOACKs.
func TestBoundIsReached(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewPCG(1, 2))
	sent := map[[2]int]int{}
	pairs := [][2]int{{0, 2}, {0, 3}, {1, 2}, {1, 3}, {0, 1}, {1, 0}}
	for range 1000 {
		p := pairs[rng.IntN(len(pairs))]
		if sent[p] == testHiWater {
			continue
		}
		sent[p]++
		r.hop(ProcEnd(p[0]), AgentEnd(0), msg(p[0], p[1], testDatalen).bytes())
		if held, bound := r.c.Held(0), r.c.Bound(0); held > bound {
			t.Fatalf("held %d, bound %d", held, bound)
		}
	}
	r.must()
	want := int64(len(pairs) * testHiWater * (HeaderSize + testDatalen))
	slack := int64(len(pairs)*testHiWater/testAckMark*HeaderSize + 4*2*HeaderSize)
	if held, bound := r.c.Held(0), r.c.Bound(0); held != want || bound != want+slack {
		t.Errorf("held %d, bound %d, want %d and %d", held, bound, want, want+slack)
	}
}
