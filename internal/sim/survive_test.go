package sim

import (
	"errors"
	"runtime"
	"testing"

	"github.com/openimpi/impi/internal/sim/job"
	"github.com/openimpi/impi/internal/sim/script"
)

// TestSurviveSeeds runs seeds of jobs that meet and go on without lost procs, some of them twice;
// everything must have happened.
func TestSurviveSeeds(t *testing.T) {
	s := Sweep{Count: 400, Workers: runtime.GOMAXPROCS(0), Twice: 16, Limits: Limits{Survive: true}}
	if testing.Short() {
		s.Count = 40
	}
	tally := s.Run(t.Context())
	for _, f := range tally.Findings {
		t.Errorf("impi-sim -survive -seed %d: %v", f.Seed, f.Failure)
	}
	if tally.Seeds != s.Count || tally.Repeated == 0 {
		t.Errorf("%d seeds, %d of them twice", tally.Seeds, tally.Repeated)
	}
	for _, name := range tally.Coverage.Missing(SurviveCounters) {
		t.Errorf("none of the seeds has %q", name)
	}
}

// TestSurviveText: such a case behaves the same after it was formatted and parsed.
func TestSurviveText(t *testing.T) {
	for seed := range uint64(20) {
		c := Generate(seed, Limits{Survive: true})
		d, err := Parse(c.String())
		if err != nil || d.String() != c.String() {
			t.Fatalf("seed %d: %v\n%v\nand read as\n%v", seed, err, c, d)
		}
		if Run(c, Options{}).Digest != Run(d, Options{}).Digest {
			t.Errorf("seed %d does something else when it was written and read", seed)
		}
	}
}

// TestSurviveOracles: each of them finds what is wrong.
func TestSurviveOracles(t *testing.T) {
	c, err := Parse("seed 1\njob direct=yes chunk=4096\nlink worlds delay=1ms\nsite hosts=2\nsite hosts=2\nfault crash-proc #40 1\nprocs 2 2\nrecover steps=3\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]func(p player, rec *script.Record) error{
		"": func(p player, rec *script.Record) error { return script.Run(c.Program, p, rec) },
		"result": func(p player, rec *script.Record) error {
			err := script.Run(c.Program, p, rec)
			if p.number == 0 {
				rec.Said = append(rec.Said, "more")
			}
			return err
		},
		"survivors": func(p player, rec *script.Record) error {
			return errors.Join(script.Run(c.Program, p, rec), errors.New("no"))
		},
	} {
		v := runTwisted(c, 0, func(x *execution) {
			x.program = func(e script.Env) error { return program(e.(player), x.records[e.(player).number]) }
		})
		if v.Failure == nil && name != "" || v.Failure != nil && v.Failure.Oracle != name {
			t.Errorf("%q is found by %v", name, v.Failure)
		}
	}
	for _, f := range []job.Fault{{Kind: job.CrashServer, Event: 5}, {Kind: job.CrashProc}} {
		d := *c
		d.Faults = []job.Fault{f}
		if err := d.Check(); !errors.Is(err, ErrCase) {
			t.Errorf("%v: %v", f, err)
		}
	}
}
