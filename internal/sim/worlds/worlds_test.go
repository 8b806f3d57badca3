package worlds

import (
	"flag"
	"maps"
	"slices"
	"testing"
)

var (
	factor = flag.Uint64("factor", 1, "run so many times as many seeds")
	only   = flag.Uint64("seed", 0, "run this seed only, with its trace")
)

var limits = Limits{Procs: DefaultProcs, Steps: DefaultSteps}

// TestSeeds runs seeds and wants everything as it must be, and nothing left out.
func TestSeeds(t *testing.T) {
	if *only > 0 {
		c := Generate(*only, limits)
		v := Run(c, 2000)
		t.Logf("%v%s\n%s: %v", c, v.Trace, v.Oracle, v.Err)
		return
	}
	covered := map[string]int64{}
	for seed := uint64(1); seed <= 200**factor; seed++ {
		v := Run(Generate(seed, limits), 0)
		if v.Oracle != "" {
			t.Errorf("seed %d: %s: %v", seed, v.Oracle, v.Err)
		}
		for name, n := range v.Covered {
			covered[name] += n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		t.Logf("%s: %d", name, covered[name])
	}
	for k := range kinds {
		if covered["ops "+k.String()] == 0 {
			t.Errorf("nobody does %v", k)
		}
	}
	for _, name := range []string{"agreed contexts", "private contexts", "ties", "calls that waited", "messages between worlds"} {
		if covered[name] == 0 {
			t.Errorf("there are no %s", name)
		}
	}
}

// TestRepeat runs cases twice: the same seed does the same.
func TestRepeat(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		v, w := Run(Generate(seed, limits), 100), Run(Generate(seed, limits), 0)
		if v.Digest != w.Digest || v.Events != w.Events || v.Time != w.Time {
			t.Errorf("seed %d: %d events in %v, then %d in %v", seed, v.Events, v.Time, w.Events, w.Time)
		}
		d, e := NewDeath(seed).Run(0), NewDeath(seed).Run(0)
		if d.Digest != e.Digest || d.Events != e.Events {
			t.Errorf("death %d: %d events in %v, then %d in %v", seed, d.Events, d.Time, e.Events, e.Time)
		}
	}
}

// TestOracles wants each of them to see what is wrong.
func TestOracles(t *testing.T) {
	c := Generate(3, limits)
	for name, spoil := range map[string]func(x *execution){
		"contexts": func(x *execution) { x.twist = func(r *rank) { r.had = append(r.had, span{4, 1 << 63, -1}) } },
		"leak": func(x *execution) {
			x.twist = func(r *rank) {
				if _, err := r.mpi.OpenPort(nil); err != nil {
					t.Error(err)
				}
			}
		},
		"result": func(x *execution) {
			for _, g := range x.groups {
				slices.Reverse(g.members)
			}
		},
	} {
		if v := runWith(c, 0, spoil); v.Oracle != name {
			t.Errorf("%s is found by %q: %v", name, v.Oracle, v.Err)
		}
	}
}
