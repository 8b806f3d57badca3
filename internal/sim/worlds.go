package sim

import (
	"fmt"

	"github.com/openimpi/impi/internal/sim/worlds"
)

// runWorlds is what a sweep of Worlds does with a seed.
func runWorlds(seed uint64, s Sweep) result {
	twice := s.Options.Twice || s.Twice > 0 && seed%s.Twice == 0
	v := RunWorlds(seed, s.Limits, s.Options.Trace)
	if twice && v.Failure == nil {
		if again := RunWorlds(seed, s.Limits, 0); again.Digest != v.Digest || again.Events != v.Events {
			v.Failure = failure("repeat", fmt.Errorf("two runs differ: %d events and digest %016x, %d and %016x", v.Events, v.Digest, again.Events, again.Digest))
		}
	}
	return result{seed, v, twice}
}

// RunWorlds runs what a seed decides about jobs that meet.
func RunWorlds(seed uint64, l Limits, trace int) *Verdict {
	w := worlds.RunSeed(seed, worldsLimits(l), trace)
	v := &Verdict{Trace: w.Trace, Events: w.Events, Time: w.Time, Digest: w.Digest, Coverage: Coverage(w.Covered)}
	if w.Oracle != "" {
		v.Failure = failure(w.Oracle, w.Err)
	}
	return v
}

// DescribeWorlds is what RunWorlds runs, as text.
func DescribeWorlds(seed uint64, l Limits) string { return worlds.Describe(seed, worldsLimits(l)) }

// worldsLimits leaves what nobody has set to the worlds: programs of theirs are shorter.
func worldsLimits(l Limits) worlds.Limits {
	w := worlds.Limits{Procs: worlds.DefaultProcs, Steps: worlds.DefaultSteps, NoFaults: l.NoFaults}
	if l.Procs > 0 && l.Procs != DefaultProcs {
		w.Procs = max(2, min(l.Procs, worlds.MostProcs))
	}
	if l.Steps > 0 && l.Steps != DefaultSteps {
		w.Steps = l.Steps
	}
	return w
}
