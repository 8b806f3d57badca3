package job

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// somewhere returns a fault at a random event of a job, known from a run without it.
func somewhere(t *testing.T, seed uint64, kind FaultKind, cfg Config) Fault {
	t.Helper()
	r := simulate(t, seed, cfg)
	clean(t, seed, r)
	rng := rand.New(rand.NewPCG(seed, 7))
	return Fault{Kind: kind, Event: 1 + rng.Uint64N(r.World.k.Events()), Target: rng.IntN(64)}
}

// TestFaults: wherever a part of the job dies, all that is left ends, soon and with the same
// result. simulate checks that by Result.Err.
func TestFaults(t *testing.T) {
	for _, kind := range []FaultKind{CrashProc, CrashNode, CrashServer, CutLink, HalfClose} {
		t.Run(string(kind), func(t *testing.T) {
			deadly, lived := uint64(0), 0
			tries := max(seeds(100), 100) // with fewer, too many half-closes might hit links that are not needed any more
			for seed := range tries {
				cfg := twoSites(ring)
				cfg.Direct = seed%3 > 0
				r := simulate(t, seed, cfg, somewhere(t, seed, kind, cfg))
				if r.Server() == nil && r.World.server.lost == 0 { // the node of a site that is lost may be dead
					clean(t, seed, r)
					lived++
				}
				for _, h := range r.Hits {
					if h.Deadly {
						deadly++
					}
				}
			}
			if deadly < tries/5 {
				t.Errorf("only %d of %d were deadly, %d jobs lived", deadly, tries, lived)
			}
		})
	}
}

func TestHarmlessFaults(t *testing.T) {
	for _, kind := range []FaultKind{PluginCrash, Stall} {
		for seed := range seeds(60) {
			cfg := twoSites(ring)
			r := simulate(t, seed, cfg, somewhere(t, seed, kind, cfg), Fault{Kind: kind, At: time.Millisecond, Target: int(seed)})
			clean(t, seed, r)
			if r.Faults()[kind] == 0 {
				t.Errorf("seed %d: no %s", seed, kind)
			}
		}
	}
}

func TestParseFault(t *testing.T) {
	for _, text := range []string{"cut 1.5ms 3", "half-close #1234 0", "crash-server 0s 0", "crash-plugin 2h0m0s 17"} {
		f, err := ParseFault(text)
		if err != nil || f.String() != text {
			t.Errorf("%q became %q: %v", text, f, err)
		}
	}
	for _, text := range []string{
		"", "cut", "cut 1ms", "cut 1ms 1 1", "cut 1 1", "cut -1ms 1", "cut 1ms -1", "cut 1ms x", "burn 1ms 1", "cut #0 1", "cut #x 1", "cut #-1 1",
	} {
		if f, err := ParseFault(text); !errors.Is(err, ErrFault) {
			t.Errorf("%q became %v: %v", text, f, err)
		}
	}
}

// TestFaultAtEvent: a fault happens before the event with its number, and again in the same way.
func TestFaultAtEvent(t *testing.T) {
	for range 2 {
		r := simulate(t, 3, twoSites(ring), Fault{Kind: CrashNode, Event: 333, Target: 1})
		if len(r.Hits) != 1 || r.Hits[0].Event != 333 || r.Hits[0].What != "the node of site 1" || !r.Hits[0].Deadly {
			t.Errorf("%+v", r.Hits)
		}
	}
}
