package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/openimpi/impi/internal/sim"
)

// runOneWorlds runs a seed of jobs that meet, and prints what came of it.
func (o *options) runOneWorlds(out, report io.Writer) int {
	if o.print {
		fmt.Fprint(out, sim.DescribeWorlds(o.first, o.limits))
		return exitOK
	}
	begin := time.Now()
	v := sim.RunWorlds(o.first, o.limits, o.trace)
	t := sim.Tally{Seeds: 1, Events: v.Events, Time: v.Time, Took: time.Since(begin), Coverage: v.Coverage}
	if v.Failure == nil {
		if o.traceSet {
			fmt.Fprint(report, v.Trace)
		}
	} else {
		t.Findings = []sim.Finding{{Seed: o.first, Failure: v.Failure}}
		o.explainWorlds(o.first, v, report)
	}
	return o.end(t, fmt.Sprintf("digest %016x", v.Digest), out, report)
}

// explainWorlds is explain for jobs that meet, whose cases are not made smaller.
func (o *options) explainWorlds(seed uint64, v *sim.Verdict, w io.Writer) {
	fmt.Fprintf(w, "\nFAIL seed %d: %v\n\n%s", seed, v.Failure, sim.DescribeWorlds(seed, o.limits))
	if o.trace > 0 {
		fmt.Fprintf(w, "\nthe last events, times in microseconds:\n%s", v.Trace)
	}
	fmt.Fprintf(w, "\nagain: %s\n", o.again(seed))
}

// coverageOfWorlds prints what runs of jobs that meet have counted.
func coverageOfWorlds(c sim.Coverage, w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(w, "  %s: %d\n", name, c[name])
	}
}
