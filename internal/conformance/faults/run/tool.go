package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/conformance/faults"
	"github.com/openimpi/impi/internal/sim/mutant"
)

// tool tries faults.
type tool struct {
	patience time.Duration
	workers  int
	report   io.Writer // how far it is

	dir    string // of what is built
	faults []faults.Fault
	chosen []int // indexes of faults
}

// prepare builds everything; done takes it away.
func (t *tool) prepare(ctx context.Context, match *regexp.Regexp) (done func(), err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("where is the module? %w", err)
	}
	if t.faults, err = faults.All(); err != nil {
		return nil, err
	}
	for i := range t.faults {
		if match.MatchString(t.faults[i].Name) {
			t.chosen = append(t.chosen, i)
		}
	}
	if len(t.chosen) == 0 {
		return nil, errors.New("no fault is chosen")
	}
	if t.dir, err = os.MkdirTemp("", "conform-mutants-"); err != nil {
		return nil, err
	}
	done = func() { _ = os.RemoveAll(t.dir) }
	err = mutant.Build(ctx, strings.TrimSpace(string(root)), t.dir, faults.Mutants(t.faults),
		"./cmd/impi-node", "./cmd/impi-server", "./cmd/impi-conform")
	if err != nil {
		done()
	}
	return done, err
}

// verdict is what the tester says of a case.
type verdict struct{ ID, Verdict, Reason string }

// verdicts plays cases with fault number n, 0 being none, and gives the verdict of each.
func (t *tool) verdicts(ctx context.Context, n int, patience time.Duration, cases []string) (map[string]verdict, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.dir, "impi-conform"), "protocol", "-iut", "impi", "-q", "-json",
		"-patience", patience.String(), "-run", "^("+strings.Join(cases, "|")+")$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", mutant.Switch, n))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	failed := cmd.Run()
	var report struct {
		Results []verdict
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Results) == 0 {
		return nil, fmt.Errorf("impi-conform: %w: %s", errors.Join(err, failed), said.String())
	}
	found := map[string]verdict{}
	for _, r := range report.Results {
		found[r.ID] = r
	}
	return found, nil
}

// baseline wants all cases to pass as things are.
func (t *tool) baseline(ctx context.Context) error {
	var cases []string
	for _, i := range t.chosen {
		cases = append(cases, t.faults[i].Cases...)
	}
	slices.Sort(cases)
	cases = slices.Compact(cases)
	found, err := t.verdicts(ctx, 0, 10*time.Second, cases)
	if err != nil {
		return err
	}
	for _, id := range cases {
		if v := found[id]; v.Verdict != "pass" {
			return fmt.Errorf("without any fault, %s: %s %s", id, v.Verdict, v.Reason)
		}
	}
	fmt.Fprintf(t.report, "without any fault, %d cases pass\n", len(cases))
	return nil
}

// all tries the chosen faults and gives a line for each that a case has missed.
func (t *tool) all(ctx context.Context) (missed []string) {
	next := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	tried := 0
	for range t.workers {
		wg.Go(func() {
			for i := range next {
				how, text := t.try(ctx, i)
				mu.Lock()
				tried++
				if text != "" {
					missed = append(missed, t.faults[i].Name+": "+text)
					how = text
				}
				fmt.Fprintf(t.report, "[%d/%d] %s: %s\n", tried, len(t.chosen), t.faults[i].Name, how)
				mu.Unlock()
			}
		})
	}
	for _, i := range t.chosen {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return missed
}

// try plays the cases of one fault. It says by which it is noticed and how, or else
// which have missed it.
func (t *tool) try(ctx context.Context, i int) (how, missed string) {
	found, err := t.verdicts(ctx, i+1, t.patience, t.faults[i].Cases)
	if err != nil {
		return "", err.Error()
	}
	var noticed, not []string
	for _, id := range t.faults[i].Cases {
		if v := found[id]; v.Verdict == "fail" {
			noticed = append(noticed, fmt.Sprintf("%s (%s)", id, v.Reason))
		} else {
			not = append(not, id)
		}
	}
	if len(not) > 0 {
		return "", "NOT NOTICED by " + strings.Join(not, " ")
	}
	return "noticed by " + strings.Join(noticed, ", "), ""
}
