package job

import (
	"math/rand/v2"
	"testing"
	"time"
)

// somewhere gives a fault at any event of a job's life, found by a run without.
func somewhere(t *testing.T, seed uint64, kind FaultKind, cfg Config) Fault {
	t.Helper()
	r := simulate(t, seed, cfg)
	clean(t, seed, r)
	rng := rand.New(rand.NewPCG(seed, 7))
	return Fault{Kind: kind, Event: 1 + rng.Uint64N(r.World.k.Events()), Target: rng.IntN(64)}
}

// TestFaults: wherever a part of the job dies, all that is left ends, soon and
// in agreement. simulate looks at Result.Err, which says so.
func TestFaults(t *testing.T) {
	for _, kind := range []FaultKind{CrashProc, CrashNode, CrashServer, CutLink, HalfClose} {
		t.Run(string(kind), func(t *testing.T) {
			const seeds = 150
			deadly, lived := 0, 0
			for seed := range uint64(seeds) {
				cfg := twoSites(ring)
				cfg.Direct = seed%3 > 0
				r := simulate(t, seed, cfg, somewhere(t, seed, kind, cfg))
				if r.Server() == nil {
					clean(t, seed, r)
					lived++
				}
				for _, h := range r.Hits {
					if h.Deadly {
						deadly++
					}
				}
			}
			if deadly < seeds/5 {
				t.Errorf("only %d of %d were deadly, %d jobs lived", deadly, seeds, lived)
			}
		})
	}
}

func TestHarmlessFaults(t *testing.T) {
	for _, kind := range []FaultKind{PluginCrash, Stall} {
		for seed := range uint64(60) {
			cfg := twoSites(ring)
			r := simulate(t, seed, cfg, somewhere(t, seed, kind, cfg), Fault{Kind: kind, At: time.Millisecond, Target: int(seed)})
			clean(t, seed, r)
			if r.Faults()[kind] == 0 {
				t.Errorf("seed %d: no %s", seed, kind)
			}
		}
	}
}
