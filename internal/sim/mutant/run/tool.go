package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/sim/mutant"
)

// tool tries faults.
type tool struct {
	first, seeds uint64
	limit        time.Duration // for the seeds of one fault
	hang         time.Duration // how long the last of them may take then
	workers      int
	report       io.Writer // how far it is

	root   string // of the module
	dir    string // for what is built
	faults []mutant.Mutant
}

// result is what became of a fault.
type result struct {
	Name    string  `json:"name"`
	File    string  `json:"file"`
	What    string  `json:"what"`
	Caught  bool    `json:"caught"`
	By      string  `json:"by"`    // the checker that found it, "panic", "crash" or "hang"
	Seeds   uint64  `json:"seeds"` // how many were run until then; 0: not known
	Text    string  `json:"text"`  // what the checker said, in one line
	Seconds float64 `json:"seconds"`
}

// prepare finds the module and builds impi-sim with all faults; done takes it away.
func (t *tool) prepare(ctx context.Context) (done func(), err error) {
	b, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("where is the module? %w", err)
	}
	t.root = strings.TrimSpace(string(b))
	if t.dir, err = os.MkdirTemp("", "sim-mutants-"); err != nil {
		return nil, err
	}
	done = func() { _ = os.RemoveAll(t.dir) }
	if t.faults, err = mutant.All(); err == nil {
		err = t.build(ctx)
	}
	if err != nil {
		done()
	}
	return done, err
}

// build makes a program of cmd/impi-sim that has all faults, with a switch.
func (t *tool) build(ctx context.Context) error {
	return mutant.Build(ctx, t.root, t.dir, t.faults, "./cmd/impi-sim")
}

func (t *tool) program() string { return filepath.Join(t.dir, "impi-sim") }

// baseline wants no seed to fail as things are: one that does proves nothing of
// a fault.
func (t *tool) baseline(ctx context.Context) error {
	r := t.sweep(ctx, 0)
	if !r.Caught && r.By == "" {
		fmt.Fprintf(t.report, "without any fault, %d seeds are good\n", r.Seeds)
		return nil
	}
	return fmt.Errorf("without any fault, %s fails: %s", r.By, r.Text)
}

// all tries the faults whose names match and gives the results in their order.
func (t *tool) all(ctx context.Context, only *regexp.Regexp) []result {
	var numbers []int // from 1
	for i := range t.faults {
		if only.MatchString(t.faults[i].Name) {
			numbers = append(numbers, i+1)
		}
	}
	results := make([]result, len(numbers))
	next := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	tried := 0
	for range t.workers {
		wg.Go(func() {
			for i := range next {
				r := t.sweep(ctx, numbers[i])
				mu.Lock()
				results[i] = r
				tried++
				fmt.Fprintf(t.report, "[%d/%d] %s\n", tried, len(results), r.line())
				mu.Unlock()
			}
		})
	}
	for i := range numbers {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return results
}
