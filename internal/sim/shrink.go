package sim

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/internal/sim/script"
)

// rapidSeed returns rapid's seed for a seed: rapid takes 0 for a random one.
func rapidSeed(seed uint64) int { return int(seed + 1) }

// tries is how many seeds a smaller case is run with, since chance takes another course in it than
// in the case that it was made from.
const tries = 2

// Shrink makes a failing case smaller as long as the same oracle fails, until nothing helps or the
// budget is spent. If c is the case of its seed within l, it first tries smaller draws; then it
// leaves out lines and values of the text. It returns the smallest failing case, which may be c,
// and how many cases it ran. It sets flags of rapid, so only one Shrink may run at a time.
func Shrink(c *Case, l *Limits, oracle string, budget time.Duration) (smallest *Case, runs int) {
	begun := time.Now()
	return shrink(c, l, func(_, share int) bool { return time.Since(begun) >= budget/time.Duration(share) }, func(c *Case) bool {
		f := Run(c, Options{Twice: oracle == "repeat"}).Failure
		return f != nil && f.Oracle == oracle
	})
}

func shrink(c *Case, l *Limits, enough func(runs, share int) bool, fails func(c *Case) bool) (*Case, int) {
	s := &shrinker{smallest: c, seed: c.Seed, enough: enough, fails: fails, known: map[string]*Case{}}
	if l != nil {
		s.by(drawn(c.Seed, *l), 5, 2)
	}
	for _, words := range []bool{false, true, false} {
		s.by(reduced(s.smallest, words), 100, 1)
	}
	return s.smallest, s.runs
}

type shrinker struct {
	smallest *Case
	runs     int
	seed     uint64
	enough   func(runs, share int) bool // reports whether this share of the budget is spent; 2 means half
	fails    func(c *Case) bool
	known    map[string]*Case // by text: the failing case, with its seed; nil: the case does not fail
}

// by looks for a failing case among so many draws, and for the smallest draws that fail.
func (s *shrinker) by(drawn *rapid.Generator[*Case], checks, share int) {
	if !flag.Parsed() { // outside of tests: rapid reads flags of package testing
		testing.Init()
		_ = flag.CommandLine.Parse(nil)
	}
	for name, value := range map[string]string{
		"seed": strconv.Itoa(rapidSeed(s.seed)), "shrinktime": "24h", "nofailfile": "true", "checks": strconv.Itoa(checks),
	} {
		before := flag.Lookup("rapid." + name).Value.String()
		defer func() { _ = flag.Set("rapid."+name, before) }()
		_ = flag.Set("rapid."+name, value)
	}
	done := make(chan struct{})
	go func() { // Goexit below ends it
		defer close(done)
		rapid.Check(&quiet{}, func(t *rapid.T) {
			if s.enough(s.runs, share) {
				runtime.Goexit()
			}
			if c := drawn.Draw(t, ""); c != nil && s.failing(c) {
				t.Fatal("it fails")
			}
		})
	}()
	<-done
}

func (s *shrinker) failing(c *Case) bool {
	c.Seed = s.seed
	text := c.String()
	failing, ok := s.known[text]
	for i := uint64(0); !ok && i < tries && failing == nil; i++ {
		s.runs++
		if c.Seed = s.seed + i; s.fails(c) {
			failing = c
		}
	}
	if s.known[text] = failing; failing != nil {
		s.smallest = failing
	}
	return failing != nil
}

// reduced draws a case that lacks some lines or values of another one's text, and whatever needs
// them. It returns nil if that is no case.
func reduced(c *Case, words bool) *rapid.Generator[*Case] {
	text := c.String()
	return rapid.Custom(func(t *rapid.T) *Case {
		out := func() (out bool) { // rarely true; rapid shrinks to zeros, which leave things out
			out = true
			for range 8 {
				out = !script.Bit.Draw(t, "") && out
			}
			return out
		}
		var b strings.Builder
		for l := range strings.Lines(text) {
			switch {
			case words:
				fields := strings.Fields(l)
				fields = slices.DeleteFunc(fields, func(w string) bool { return strings.Contains(w, "=") && out() })
				fmt.Fprintln(&b, strings.Join(fields, " "))
			case !out():
				b.WriteString(l)
			}
		}
		c, err := read(b.String())
		if err != nil {
			return nil
		}
		c.Program.Prune()
		c.forget()
		if c.Check() != nil {
			return nil
		}
		return c
	})
}

func (c *Case) forget() {
	p := c.Program
	for w := len(p.Worlds) - 1; w > 1; w-- {
		if _, spawned := p.Spawned(w); spawned || len(c.sitesOf(w)) > 0 {
			return
		}
		p.Procs, p.Worlds = p.Procs-p.Worlds[w], p.Worlds[:w]
	}
}

type quiet struct {
	rapid.TB // no other method is called
	failed   bool
}

func (*quiet) Helper()                 {}
func (*quiet) Name() string            { return "impi-sim" }
func (*quiet) Logf(string, ...any)     {}
func (q *quiet) Errorf(string, ...any) { q.failed = true }
func (q *quiet) Failed() bool          { return q.failed }
func (*quiet) FailNow()                { runtime.Goexit() }
