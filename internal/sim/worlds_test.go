package sim

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/sim/script"
)

// TestWorldsSeeds runs seeds of jobs that meet, some of them twice; everything must have happened.
func TestWorldsSeeds(t *testing.T) {
	s := Sweep{Count: 200, Workers: runtime.GOMAXPROCS(0), Twice: 16, Limits: Limits{Worlds: true}}
	if testing.Short() {
		s.Count = 20
	}
	tally := s.Run(t.Context())
	for _, f := range tally.Findings {
		t.Errorf("impi-sim -worlds -seed %d: %v", f.Seed, f.Failure)
	}
	if tally.Seeds != s.Count || tally.Repeated == 0 {
		t.Errorf("%d seeds, %d of them twice", tally.Seeds, tally.Repeated)
	}
	for _, name := range tally.Coverage.Missing(WorldsCounters) {
		if !strings.HasPrefix(name, "deaths ") && !testing.Short() {
			t.Errorf("none of the seeds has %q", name)
		}
	}
}

// TestDeaths: a root dies in each step, on each side, and the others go on.
func TestDeaths(t *testing.T) {
	s := Sweep{Count: 400, Workers: runtime.GOMAXPROCS(0), Limits: Limits{Worlds: true, deaths: true}}
	tally := s.Run(t.Context())
	for _, f := range tally.Findings {
		t.Errorf("seed %d: %v\n%v", f.Seed, f.Failure, Generate(f.Seed, s.Limits))
	}
	for _, name := range tally.Coverage.Missing(WorldsCounters) {
		if strings.HasPrefix(name, "deaths ") {
			t.Errorf("there are no %s", name)
		}
	}
}

// TestWorldsText: a case of jobs that meet behaves the same after it was formatted and parsed.
func TestWorldsText(t *testing.T) {
	for seed := range uint64(60) {
		c := Generate(seed, Limits{Worlds: true})
		d, err := Parse(c.String())
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, c)
		}
		if d.String() != c.String() {
			t.Fatalf("seed %d: written as\n%v\nand read as\n%v", seed, c, d)
		}
		if seed%10 == 0 && Run(c, Options{}).Digest != Run(d, Options{}).Digest {
			t.Errorf("seed %d does something else when it was written and read", seed)
		}
	}
	if small := Generate(4, Limits{Procs: 2, Steps: 1, Worlds: true, NoFaults: true}); len(small.Program.Worlds) != 2 || small.Procs() != 2 {
		t.Errorf("two procs:\n%v", small)
	}
}

// TestWorldsOracles: each of them finds what is wrong.
func TestWorldsOracles(t *testing.T) {
	seed := uint64(1)
	for c := Generate(seed, Limits{Worlds: true, NoFaults: true}); len(c.Program.Messages) == 0; c = Generate(seed, Limits{Worlds: true, NoFaults: true}) {
		seed++
	}
	c := Generate(seed, Limits{Worlds: true, NoFaults: true})
	for name, program := range map[string]func(p player, rec *script.Record) error{
		"": func(p player, rec *script.Record) error { return script.Run(c.Program, p, rec) },
		"contexts": func(p player, rec *script.Record) error {
			err := script.Run(c.Program, p, rec)
			again := rec.Comms[len(rec.Comms)-1]
			again.Name = "again"
			rec.Comms = append(rec.Comms, again)
			return err
		},
		"leak": func(p player, rec *script.Record) error {
			if _, err := p.MPI().OpenPort(nil); err != nil {
				t.Error(err)
			}
			return script.Run(c.Program, p, rec)
		},
		"result": func(p player, rec *script.Record) error {
			err := script.Run(c.Program, p, rec)
			rec.Deliveries = nil
			return err
		},
		"order": func(p player, rec *script.Record) error { return fmt.Errorf("%w: no", script.ErrMPI) },
	} {
		v := runTwisted(c, 0, func(x *execution) {
			x.program = func(e script.Env) error { return program(e.(player), x.records[e.(player).number]) }
		})
		if v.Failure == nil && name != "" || v.Failure != nil && v.Failure.Oracle != name {
			t.Errorf("%s is found by %v", name, v.Failure)
		}
	}
}
