package sim

import (
	"runtime"
	"strings"
	"testing"
)

// TestWorldsSeeds runs seeds of jobs that meet, some of them twice.
func TestWorldsSeeds(t *testing.T) {
	s := Sweep{Count: 200, Workers: runtime.GOMAXPROCS(0), Twice: 16, Worlds: true}
	if testing.Short() {
		s.Count = 20
	}
	tally := s.Run(t.Context())
	for _, f := range tally.Findings {
		t.Errorf("impi-sim -worlds -seed %d: %v", f.Seed, f.Failure)
	}
	if tally.Seeds != s.Count || tally.Repeated == 0 || tally.Coverage["messages between worlds"] == 0 {
		t.Errorf("%d seeds, %d of them twice, covered %v", tally.Seeds, tally.Repeated, tally.Coverage)
	}
}

func TestDescribeWorlds(t *testing.T) {
	for seed, want := range map[uint64]string{4: "worlds of", 7: "dies"} {
		if text := DescribeWorlds(seed, Limits{}); !strings.Contains(text, want) {
			t.Errorf("seed %d: no %q in %q", seed, want, text)
		}
	}
	if small := DescribeWorlds(4, Limits{Procs: 2, Steps: 1}); !strings.Contains(small, "worlds of [1 1] procs") {
		t.Errorf("two procs: %s", small)
	}
}
