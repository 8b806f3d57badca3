package sim

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rapidSeed is rapid's for a seed: its 0 is any.
func rapidSeed(seed uint64) int { return int(seed + 1) }

// tries is how many seeds a smaller case is run with: it takes other ways
// through chance than the case it was made from.
const tries = 2

// Shrink makes the failing case of a seed smaller, as long as the same oracle finds fault
// with it, until nothing helps or time is over. It gives the smallest one that it has
// found, which may be that of the seed, and how many it has run. It sets flags of
// rapid: one Shrink at a time.
func Shrink(seed uint64, l Limits, oracle string, budget time.Duration) (smallest *Case, runs int) {
	end := time.Now().Add(budget)
	return shrink(seed, l, func(int) bool { return !time.Now().Before(end) }, func(c *Case) bool {
		f := Run(c, Options{Twice: oracle == "repeat"}).Failure
		return f != nil && f.Oracle == oracle
	})
}

func shrink(seed uint64, l Limits, enough func(runs int) bool, fails func(c *Case) bool) (smallest *Case, runs int) {
	smallest = Generate(seed, l)
	known := map[string]*Case{} // by text: with which seed they fail; nil: they do not
	if !flag.Parsed() {         // as in a command: rapid asks package testing how to work
		testing.Init()
		_ = flag.CommandLine.Parse(nil)
	}
	for name, value := range map[string]string{
		"seed": strconv.FormatUint(uint64(rapidSeed(seed)), 10), "shrinktime": "24h", "nofailfile": "true", "checks": "5",
	} {
		defer flag.Set("rapid."+name, flag.Lookup("rapid."+name).Value.String())
		_ = flag.Set("rapid."+name, value)
	}
	done := make(chan struct{})
	go func() { // which ends in the middle of rapid
		defer close(done)
		rapid.Check(&quiet{}, func(t *rapid.T) {
			if enough(runs) {
				runtime.Goexit()
			}
			c := drawn(seed, l).Draw(t, "")
			text := c.String()
			failing, ok := known[text]
			for i := uint64(0); !ok && i < tries && failing == nil; i++ {
				runs++
				if c.Seed = seed + i; fails(c) {
					failing = c
				}
			}
			if known[text] = failing; failing != nil {
				smallest = failing
				t.Fatal("it fails")
			}
		})
	}()
	<-done
	return smallest, runs
}

// quiet is a test of which nobody reads what it prints.
type quiet struct {
	rapid.TB // nothing else is called
	failed   bool
}

func (*quiet) Helper()                 {}
func (*quiet) Name() string            { return "impi-sim" }
func (*quiet) Logf(string, ...any)     {}
func (q *quiet) Errorf(string, ...any) { q.failed = true }
func (q *quiet) Failed() bool          { return q.failed }
func (*quiet) FailNow()                { runtime.Goexit() }
