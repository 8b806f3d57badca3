package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

func parsed(t *testing.T, text string) *Case {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRunIsRepeatable(t *testing.T) {
	c := Generate(6, Limits{}) // one that lives long enough for a trace of 50 lines
	v := Run(c, Options{Trace: 50, Twice: true})
	if v.Failure != nil || v.Events == 0 || v.Time == 0 || v.Digest == 0 || strings.Count(v.Trace, "\n") != 50 {
		t.Errorf("%v, %d events, %v\n%s", v.Failure, v.Events, v.Time, v.Trace)
	}
	c.Seed++
	if Run(c, Options{}).Digest == v.Digest {
		t.Error("another seed does the same")
	}
}

// TestTraceChangesNothing: a failing seed is run again with a trace.
func TestTraceChangesNothing(t *testing.T) {
	for seed := range uint64(5) {
		c := Generate(seed, Limits{})
		if Run(c, Options{}).Digest != Run(c, Options{Trace: 10}).Digest {
			t.Errorf("seed %d", seed)
		}
	}
}

func TestTraceHasPackets(t *testing.T) {
	c := parsed(t, strings.Replace(small, "fault cut #12 3\n", "", 1))
	v := Run(c, Options{Trace: 1000})
	if want := "proc 0 -> agent 0: 0->1 DATA len=12 "; v.Failure != nil || !strings.Contains(v.Trace, want) {
		t.Errorf("%v: no %q in\n%s", v.Failure, want, v.Trace)
	}
}

func TestCaseThatCannotBeRun(t *testing.T) {
	c := parsed(t, small)
	c.Sites = c.Sites[:1]
	if v := Run(c, Options{}); v.Failure == nil || v.Failure.Oracle != "case" || !errors.Is(v.Failure, ErrCase) {
		t.Errorf("%v", v.Failure)
	}
}

// TestJudge judges outcomes that no correct implementation has.
func TestJudge(t *testing.T) {
	clean := strings.Replace(small, "fault cut #12 3\n", "", 1)
	for _, test := range []struct {
		name, oracle string
		twist        func(x *execution)
	}{
		{"as it is", "", func(*execution) {}},
		{"a proc fails", "order", func(x *execution) {
			x.program = func(e script.Env) error { return errors.New("no") }
		}},
		{"wrong result", "result", func(x *execution) {
			x.program = func(e script.Env) error { return fmt.Errorf("%w: 1 is not 2", script.ErrMismatch) }
		}},
		{"nothing done", "result", func(x *execution) {
			x.program = func(e script.Env) error { return nil }
		}},
		{"lost delivery", "result", func(x *execution) {
			x.program = x.forget
		}},
		{"panic", "panic", func(x *execution) {
			x.program = func(e script.Env) error { panic("oh") }
		}},
		{"stuck", "liveness", func(x *execution) {
			x.program = func(e script.Env) error {
				for {
					e.Pause(time.Hour)
				}
			}
		}},
		{"other parameters", "startup", func(x *execution) { x.watches[0].want.Datalen++ }},
		{"other identities", "startup", func(x *execution) { x.watches[0].want.Procs[1].Identity[0]++ }},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := runTwisted(parsed(t, clean), 0, test.twist)
			if got := v.Failure; (got == nil) != (test.oracle == "") || got != nil && got.Oracle != test.oracle {
				t.Errorf("%v", got)
			}
		})
	}
}

// forget is the program of a rank that loses what it received.
func (x *execution) forget(e script.Env) error {
	rec := x.records[e.World().Rank()]
	err := script.Run(x.c.Program, e, rec)
	rec.Deliveries = nil
	return err
}

// TestShrink: only the part of a case that fails is left, with what that needs.
func TestShrink(t *testing.T) {
	for name, test := range map[string]struct {
		fails func(c *Case) bool
		most  int // steps that are left
	}{
		"the server crashes": {func(c *Case) bool {
			return slices.ContainsFunc(c.Faults, func(f job.Fault) bool { return f.Kind == job.CrashServer })
		}, 4},
		"a long synchronous message": {func(c *Case) bool {
			return slices.ContainsFunc(c.Program.Messages, func(m script.Message) bool {
				return m.Mode == script.Synchronous && m.Len*m.Kind.Size() > 40
			})
		}, 8},
		"a reduction between three": {func(c *Case) bool {
			return c.Procs() >= 3 && slices.ContainsFunc(c.Program.Steps, func(s script.Step) bool {
				x, ok := s.(script.Collective)
				return ok && x.Call == script.Allreduce && x.Counts[0] > 2
			})
		}, 4},
	} {
		seed, few := uint64(1), Limits{Procs: 3, Steps: 4}
		for !test.fails(Generate(seed, few)) {
			seed++
		}
		large := Generate(seed, few).String()
		c, runs := shrink(Generate(seed, few), &few, func(runs, share int) bool { return runs > 800/share }, test.fails)
		if !test.fails(c) || c.Check() != nil || runs == 0 || len(c.Program.Steps) > test.most || c.Key || c.Procs() > 4 || len(c.Faults) > 1 {
			t.Errorf("%s, seed %d, %d runs:\n%v", name, seed, runs, c)
		}
		if Generate(seed, few).String() != large {
			t.Errorf("%s: the seed gives another case", name)
		}
		c, runs = shrink(parsed(t, large), nil, func(runs, share int) bool { return runs > 800/share }, test.fails)
		if !test.fails(c) || c.Check() != nil || runs == 0 || len(c.Program.Steps) > test.most || c.Key || len(c.Faults) > 1 {
			t.Errorf("%s, in a file, %d runs:\n%vof\n%s", name, runs, c, large)
		}
	}
}

func TestShrinkTakesItsTime(t *testing.T) {
	for _, budget := range []time.Duration{0, time.Hour} { // in these nothing fails
		if c, runs := Shrink(Generate(4, Limits{}), &Limits{}, "x", budget); c.String() != Generate(4, Limits{}).String() || runs > 400*tries {
			t.Errorf("%d runs:\n%v", runs, c)
		}
	}
}

// TestShrinkWorlds: cases of several worlds are made smaller in both ways, too.
func TestShrinkWorlds(t *testing.T) {
	l := Limits{Worlds: true, NoFaults: true}
	fails := func(c *Case) bool {
		return slices.ContainsFunc(c.Program.Steps, func(s script.Step) bool { _, ok := s.(script.Merge); return ok })
	}
	seed := uint64(1)
	for n := 0; n < 15 || n > 30; seed++ {
		if n = 0; fails(Generate(seed, l)) {
			n = len(Generate(seed, l).Program.Steps)
		}
	}
	seed--
	large := Generate(seed, l)
	for name, limits := range map[string]*Limits{"seed": &l, "file": nil} {
		c, runs := shrink(large, limits, func(runs, share int) bool { return runs > 300/share }, fails)
		if !fails(c) || c.Check() != nil || runs == 0 || len(c.Program.Steps) > 12 {
			t.Errorf("%s %d, %d runs:\n%v", name, seed, runs, c)
		}
	}
}

// TestSweepFindsTheSameOnAllCores: which seeds fail does not depend on the number of workers.
func TestSweepFindsTheSameOnAllCores(t *testing.T) {
	failing := func(seed uint64, s Sweep) result {
		v := &Verdict{Coverage: Coverage{"jobs": 1}, Events: seed}
		if seed%10 == 3 {
			v.Failure = failure("x", errors.New("oh"))
		}
		return result{seed, v, false}
	}
	for _, workers := range []int{1, 4} {
		shown := 0
		s := Sweep{First: 100, Count: 50, Workers: workers, Progress: func(Tally) { shown++ }, one: failing}
		tally := s.Run(t.Context())
		var seeds []uint64
		for _, f := range tally.Findings {
			seeds = append(seeds, f.Seed)
		}
		if slices.Sort(seeds); !slices.Equal(seeds, []uint64{103, 113, 123, 133, 143}) || tally.Seeds != 50 || tally.Coverage["jobs"] != 50 || shown != 50 {
			t.Errorf("%d workers: %v, %v, shown %d times", workers, seeds, tally, shown)
		}
		s.Failures = 2
		if n := len(s.Run(t.Context()).Findings); n < 2 || n > 2+workers {
			t.Errorf("%d workers: %d failures, 2 are enough", workers, n)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if tally := s.Run(ctx); tally.Seeds > uint64(workers) {
			t.Errorf("%d seeds after the end", tally.Seeds)
		}
	}
}

func TestCoverageSaysWhatIsMissing(t *testing.T) {
	c := Coverage{}
	if len(c.Missing(Counters)) != len(Counters) {
		t.Error("something is there from the start")
	}
	for _, name := range Counters {
		c.Add(Coverage{name: 2})
	}
	if m := c.Missing(Counters); len(m) > 0 {
		t.Errorf("%q are missing", m)
	}
	c["packets FINI"] = 3
	if s := c.String(); !strings.Contains(s, " FINI 1500\n") || !strings.Contains(s, "DATA 1000;") {
		t.Errorf("%s", s)
	}
}
