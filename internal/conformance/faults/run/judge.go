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
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/conformance/faults"
	"github.com/openimpi/impi/internal/mutant"
)

type judge struct {
	command  mutant.Command
	faults   []faults.Fault
	patience time.Duration

	numbers []int    // faults that are tried
	missed  []string // by number less 1: cases that missed the fault, if any
}

func newJudge(all []faults.Fault) *judge {
	j := &judge{faults: all, patience: 4 * time.Second, missed: make([]string, len(all))}
	j.command = mutant.Command{
		Name: "conform-mutants",
		Bench: mutant.Harness{
			Faults: faults.Mutants(all), Workers: 3,
			Programs: []string{"./cmd/impi-node", "./cmd/impi-server", "./cmd/impi-conform"},
		},
		Flags: func(fs *flag.FlagSet) {
			fs.DurationVar(&j.patience, "patience", j.patience, "how long a case with a fault waits for any step")
		},
		Baseline: j.baseline, Try: j.try, Conclude: j.conclude,
	}
	return j
}

type verdict struct{ ID, Verdict, Reason string }

func (j *judge) verdicts(ctx context.Context, number, parallel int, patience time.Duration, cases []string) (map[string]verdict, error) {
	cmd := j.command.Bench.Command(ctx, number, "impi-conform", "protocol", "-iut", "impi", "-q", "-json",
		"-patience", patience.String(), "-parallel", strconv.Itoa(parallel), "-run", "^("+strings.Join(cases, "|")+")$")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	failed := cmd.Run()
	var report struct{ Results []verdict }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Results) == 0 {
		return nil, fmt.Errorf("impi-conform: %w: %s", errors.Join(err, failed), said.String())
	}
	found := map[string]verdict{}
	for _, r := range report.Results {
		found[r.ID] = r
	}
	return found, nil
}

func (j *judge) baseline(ctx context.Context, numbers []int) error {
	j.numbers = numbers
	var cases []string
	for _, n := range numbers {
		cases = append(cases, j.faults[n-1].Cases...)
	}
	slices.Sort(cases)
	cases = slices.Compact(cases)
	found, err := j.verdicts(ctx, 0, j.command.Bench.Workers, 10*time.Second, cases)
	if err != nil {
		return err
	}
	for _, id := range cases {
		if v := found[id]; v.Verdict != "pass" {
			return fmt.Errorf("%s: %s %s", id, v.Verdict, v.Reason)
		}
	}
	fmt.Fprintf(j.command.Bench.Report, "without any fault, %d cases pass\n", len(cases))
	return nil
}

// try plays the cases of one fault. It says by which it is noticed and how, or else
// which have missed it.
func (j *judge) try(ctx context.Context, number int) string {
	cases := j.faults[number-1].Cases
	found, err := j.verdicts(ctx, number, 1, j.patience, cases)
	if err != nil {
		j.missed[number-1] = err.Error()
		return err.Error()
	}
	var noticed, not []string
	for _, id := range cases {
		if v := found[id]; v.Verdict == "fail" {
			noticed = append(noticed, fmt.Sprintf("%s (%s)", id, v.Reason))
		} else {
			not = append(not, id)
		}
	}
	if len(not) > 0 {
		j.missed[number-1] = "NOT NOTICED by " + strings.Join(not, " ")
		return j.missed[number-1]
	}
	return "noticed by " + strings.Join(noticed, ", ")
}

// conclude prints the faults that were missed, and how many were not.
func (j *judge) conclude(out io.Writer, took time.Duration) (all bool) {
	caught := len(j.numbers)
	for _, n := range j.numbers {
		if j.missed[n-1] != "" {
			caught--
			fmt.Fprintf(out, "%s: %s\n", j.faults[n-1].Name, j.missed[n-1])
		}
	}
	fmt.Fprintf(out, "%d of %d faults are noticed by all cases that are named for them, in %.0f s\n", caught, len(j.numbers), took.Seconds())
	return caught == len(j.numbers)
}
