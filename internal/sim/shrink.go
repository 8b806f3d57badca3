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

// rapidSeed is rapid's for a seed: its 0 is any.
func rapidSeed(seed uint64) int { return int(seed + 1) }

// tries is how many seeds a smaller case is run with: it takes other ways
// through chance than the case it was made from.
const tries = 2

// Shrink makes a failing case smaller, as long as the same oracle finds fault with it, until
// nothing helps or time is over: first, if it is that of its seed with the limits l, by what was
// drawn for it, and then by leaving out lines and values of its text. It gives the smallest case
// that it has found, which may be c, and how many it has run. It sets flags of rapid: one
// Shrink at a time.
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
	enough   func(runs, share int) bool // whether this share of what may be spent is: half of it is 2
	fails    func(c *Case) bool
	known    map[string]*Case // by text: with which seed they fail; nil: they do not
}

// by looks for a failing case among so many that are drawn, and for the smallest draws.
func (s *shrinker) by(drawn *rapid.Generator[*Case], checks, share int) {
	if !flag.Parsed() { // as in a command: rapid asks package testing how to work
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
	go func() { // which ends in the middle of rapid
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

// reduced draws a case that lacks some lines of another one's text, or some values, and what
// does without them not make sense any more. It gives nil where that is no case.
func reduced(c *Case, words bool) *rapid.Generator[*Case] {
	text := c.String()
	return rapid.Custom(func(t *rapid.T) *Case {
		out := func() (out bool) { // rarely, but zeros mean that it is left out
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

// forget leaves out the last worlds if nobody spawns them any more.
func (c *Case) forget() {
	p := c.Program
	for w := len(p.Worlds) - 1; w > 1; w-- {
		if _, spawned := p.Spawned(w); spawned || len(c.sitesOf(w)) > 0 {
			return
		}
		p.Procs, p.Worlds = p.Procs-p.Worlds[w], p.Worlds[:w]
	}
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
