package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/mutant"
)

type sweeper struct {
	command      mutant.Command
	first, seeds uint64
	limit        time.Duration // for the seeds of one fault
	hang         time.Duration // maximum time of the last seed after limit has passed
	asJSON       bool

	numbers []int    // of the faults that are tried
	results []result // by number less 1
}

type result struct {
	Name    string  `json:"name"`
	File    string  `json:"file"`
	What    string  `json:"what"`
	Caught  bool    `json:"caught"`
	By      string  `json:"by"`    // the checker that found it, "panic", "crash" or "hang"
	Seeds   uint64  `json:"seeds"` // number of seeds that were run until then; 0: not known
	Text    string  `json:"text"`  // the checker's message, in one line
	Seconds float64 `json:"seconds"`
}

func newSweeper(all []mutant.Mutant) *sweeper {
	s := &sweeper{hang: 30 * time.Second, results: make([]result, len(all))}
	s.command = mutant.Command{
		Name:  "sim-mutants",
		Bench: mutant.Harness{Faults: all, Programs: []string{"./cmd/impi-sim"}, Workers: 2},
		Flags: func(fs *flag.FlagSet) {
			fs.Uint64Var(&s.first, "first", 0, "the first seed")
			fs.Uint64Var(&s.seeds, "seeds", 4000, "how many seeds a fault may survive at most")
			fs.DurationVar(&s.limit, "time", 5*time.Minute, "how long the seeds of a fault may take")
			fs.BoolVar(&s.asJSON, "json", false, "print the table as JSON")
		},
		Check: func() error {
			if s.seeds < 1 {
				return errors.New("-seeds 0: at least one seed is run")
			}
			return nil
		},
		Baseline: s.baseline, Conclude: s.conclude,
		Try: func(ctx context.Context, number int) string {
			s.results[number-1] = s.sweep(ctx, number)
			return s.results[number-1].line()
		},
	}
	return s
}

// prefixes begin the names of faults that are looked for in other jobs than single ones, as flags
// of impi-sim say: in jobs that meet, and in those that go on without lost procs.
var prefixes = map[string]string{"worlds-": "-worlds", "survive-": "-survive"}

// kindOf returns the flag of impi-sim for the jobs in which a fault is looked for; "": single ones.
func (s *sweeper) kindOf(number int) string {
	for prefix, flag := range prefixes {
		if strings.HasPrefix(s.command.Bench.Faults[number-1].Name, prefix) {
			return flag
		}
	}
	return ""
}

// baseline checks that no seed fails without a fault, for the kinds of jobs in which faults are
// looked for.
func (s *sweeper) baseline(ctx context.Context, numbers []int) error {
	s.numbers = numbers
	for _, kind := range []string{"", "-worlds", "-survive"} {
		if !slices.ContainsFunc(numbers, func(n int) bool { return s.kindOf(n) == kind }) {
			continue
		}
		r := s.run(ctx, 0, kind)
		if r.Caught || r.By != "" {
			return fmt.Errorf("%s fails: %s", r.By, r.Text)
		}
		fmt.Fprintf(s.command.Bench.Report, "without any fault, %d seeds are good\n", r.Seeds)
	}
	return nil
}

func (s *sweeper) conclude(out io.Writer, took time.Duration) (all bool) {
	sum := summary{Seconds: took.Seconds()}
	for _, n := range s.numbers {
		sum.Results = append(sum.Results, s.results[n-1])
	}
	if s.asJSON {
		sum.json(out)
	} else {
		sum.table(out)
	}
	return sum.caught() == len(sum.Results)
}

func (s *sweeper) sweep(ctx context.Context, number int) result {
	return s.run(ctx, number, s.kindOf(number))
}

// run is sweep for seeds of one kind of jobs. Number 0 is no fault:
// then all seeds are run, however long that takes.
func (s *sweeper) run(ctx context.Context, number int, kind string) (r result) {
	args := []string{
		"-seeds", fmt.Sprintf("%d:%d", s.first, s.first+s.seeds),
		"-json", "-failures", "1", "-shrink=false", "-trace", "0",
	}
	if kind != "" {
		args = append(args, kind)
	}
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	if number > 0 {
		args = append(args, "-j", "1", "-time", s.limit.String())
		bounded, stop = context.WithTimeout(ctx, s.limit+s.hang)
		defer stop()
	}
	begin := time.Now()
	cmd := s.command.Bench.Command(bounded, number, "impi-sim", args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if bounded.Err() != nil {
		r = result{Caught: true, By: "hang", Text: fmt.Sprintf("not over %v after the last seed was begun", s.hang)}
	} else {
		r = s.read(out.Bytes(), said.String(), err)
	}
	if number > 0 {
		m := &s.command.Bench.Faults[number-1]
		r.Name, r.File, r.What = m.Name, m.File, m.What
	}
	r.Seconds = time.Since(begin).Seconds()
	return r
}

func (s *sweeper) read(out []byte, said string, err error) result {
	var sim struct {
		Seeds  uint64 `json:"seeds"`
		Failed []struct {
			Seed   uint64 `json:"seed"`
			Oracle string `json:"oracle"`
			Text   string `json:"text"`
		} `json:"failed"`
	}
	switch bad := json.Unmarshal(out, &sim); {
	case bad != nil:
		return result{Caught: true, By: "crash", Text: crash(said, err)}
	case len(sim.Failed) > 0:
		f := sim.Failed[0]
		return result{Caught: true, By: f.Oracle, Seeds: f.Seed - s.first + 1, Text: firstLine(f.Text)}
	case err != nil:
		return result{By: "not run", Text: err.Error()}
	}
	return result{Seeds: sim.Seeds}
}

func crash(said string, err error) string {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.TrimSpace(line)
		}
	}
	return fmt.Sprintf("%v, %s", err, firstLine(said))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
