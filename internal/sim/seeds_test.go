package sim

import (
	"runtime"
	"testing"
)

// seeds is how many seeds continuous integration runs. With the race detector a
// world is about ten times slower, and still these take no longer than the
// slowest of the other packages' tests; `make sim` runs 2,000 without it.
const seeds = 500

// TestSeeds runs the seeds; all must be right, and everything must have happened.
func TestSeeds(t *testing.T) {
	s := Sweep{Count: seeds, Workers: runtime.GOMAXPROCS(0), Twice: 16}
	if testing.Short() {
		s.Count = seeds / 10
	}
	tally := s.Run(t.Context())
	for _, f := range tally.Findings {
		t.Errorf("impi-sim -seed %d: %v", f.Seed, f.Failure)
	}
	t.Logf("%d events; per 1000 jobs:\n%v", tally.Events, tally.Coverage)
	if missing := tally.Coverage.Missing(Counters); !testing.Short() && len(missing) > 0 {
		t.Errorf("none of the seeds has %q", missing)
	}
}
