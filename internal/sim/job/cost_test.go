package job

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/sim/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// BenchmarkRing is a whole job of five ranks, startup and end included.
func BenchmarkRing(b *testing.B) {
	b.ReportAllocs()
	var events uint64
	for seed := range uint64(b.N) {
		k := kernel.New(seed)
		cfg := twoSites(ring)
		cfg.Quiet = true
		w, err := New(k, cfg)
		if err != nil {
			b.Fatal(err)
		}
		if r := w.Run(bounds); r.Err != nil {
			b.Fatal(r.Err)
		}
		events += k.Events()
	}
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

// TestNothingIsLeft: when a job is over, whatever happened to it, its procs have ended and no
// coroutine is left; and it has taken little memory.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	var most uint64
	for seed := range seeds(40) {
		cfg := twoSites(ring)
		cfg.Quiet = true
		var faults []Fault
		if seed%2 == 0 {
			faults = append(faults, Fault{Kind: Kinds[int(seed/2)%len(Kinds)], At: time.Duration(seed) * time.Millisecond, Target: int(seed)})
		}
		r := simulate(t, seed, cfg, faults...)
		most = max(most, r.World.k.Events())
		for _, p := range r.World.procs {
			if p != nil && !p.task.Ended() {
				t.Errorf("seed %d: rank %d lives", seed, p.rank)
			}
		}
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines became %d", before, n)
	}
	if most > 5000 {
		t.Errorf("a ring of five ranks takes %d events", most)
	}
}

// TestCost: a whole job of five ranks takes less memory than a picture of it.
func TestCost(t *testing.T) {
	cfg := twoSites(ring)
	cfg.Quiet = true
	if n := allocs.BytesExact(func() { simulate(t, 1, cfg) }); n > 2<<20 {
		t.Errorf("it allocates %d bytes", n)
	}
}
