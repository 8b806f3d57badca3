package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/sim/mutant"
)

// tool tries faults.
type tool struct {
	first, seeds uint64
	limit        time.Duration
	workers      int
	report       io.Writer // how far it is

	root string // of the module
	dir  string // for what is built
}

// hang is how long a run may go on after the time in which seeds are begun.
const hang = 30 * time.Second

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

// prepare finds the module and makes room for programs; done takes it away.
func (t *tool) prepare(ctx context.Context) (done func(), err error) {
	b, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("where is the module? %w", err)
	}
	t.root = strings.TrimSpace(string(b))
	if t.dir, err = os.MkdirTemp("", "sim-mutants-"); err != nil {
		return nil, err
	}
	return func() { _ = os.RemoveAll(t.dir) }, nil
}

// baseline wants no seed to fail as things are: one that does proves nothing of
// a fault.
func (t *tool) baseline(ctx context.Context) error {
	program, err := t.build(ctx, "", "")
	if err != nil {
		return err
	}
	r := t.sweep(ctx, program, 0, t.workers)
	if r.Caught {
		return fmt.Errorf("without any fault, %s fails: %s", r.By, r.Text)
	}
	fmt.Fprintf(t.report, "without any fault, %d seeds are good\n", t.seeds)
	return nil
}

// all tries the faults and gives the results in their order.
func (t *tool) all(ctx context.Context, faults []mutant.Mutant) []result {
	results := make([]result, len(faults))
	next := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	tried := 0
	for range t.workers {
		wg.Go(func() {
			for i := range next {
				r := t.try(ctx, &faults[i])
				mu.Lock()
				results[i] = r
				tried++
				fmt.Fprintf(t.report, "[%d/%d] %s\n", tried, len(faults), r.line())
				mu.Unlock()
			}
		})
	}
	for i := range faults {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return results
}

// try builds a fault and runs it.
func (t *tool) try(ctx context.Context, m *mutant.Mutant) (r result) {
	program, err := t.mutate(ctx, m)
	if err == nil {
		r = t.sweep(ctx, program, t.limit, 1)
		_ = os.Remove(program)
	} else {
		r = result{By: "not built", Text: err.Error()}
	}
	r.Name, r.File, r.What = m.Name, m.File, m.What
	return r
}

// mutate builds impi-sim with a fault.
func (t *tool) mutate(ctx context.Context, m *mutant.Mutant) (program string, err error) {
	path := filepath.Join(t.root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if source, err = m.Apply(source); err != nil {
		return "", err
	}
	other := filepath.Join(t.dir, m.Name+".go")
	if err := os.WriteFile(other, source, 0o666); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: other}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(t.dir, m.Name+".json")
	if err := os.WriteFile(list, overlay, 0o666); err != nil {
		return "", err
	}
	return t.build(ctx, m.Name, list)
}

// build makes a program of cmd/impi-sim, with an overlay if there is one.
func (t *tool) build(ctx context.Context, name, overlay string) (program string, err error) {
	program = filepath.Join(t.dir, "impi-sim-"+name)
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-ldflags=-s -w", "-o", program, "./cmd/impi-sim")
	cmd.Dir = t.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return program, nil
}
