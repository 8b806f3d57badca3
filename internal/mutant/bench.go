package mutant

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
)

// Harness has programs with all faults of a list, and tries one fault after the other.
// Faults have numbers, from 1; number 0 is none.
type Harness struct {
	Root     string // of the module; empty: the one of the working directory
	Faults   []Mutant
	Programs []string  // packages of the programs, as in ./cmd/impi-sim
	Tests    string    // a package whose tests are built as well, as the program "tests"; empty: none
	Workers  int       // how many faults are tried at a time
	Report   io.Writer // progress messages

	dir string // folder of the programs that were built
}

// Build builds the programs; done removes them. It takes as long as the compiler does.
func (b *Harness) Build(ctx context.Context) (done func(), err error) {
	root := b.Root
	if root == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
		if err != nil {
			return nil, fmt.Errorf("where is the module? %w", err)
		}
		root = strings.TrimSpace(string(out))
	}
	if b.dir, err = os.MkdirTemp("", "mutants-"); err != nil {
		return nil, err
	}
	done = func() { _ = os.RemoveAll(b.dir) }
	if err := build(ctx, root, b.dir, b.Faults, b.Programs, b.Tests); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// Command returns a command that runs a program that was built, named by the last part of its
// package, with a fault.
func (b *Harness) Command(ctx context.Context, number int, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, program), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", Switch, number))
	return cmd
}

// Choose returns the numbers of the faults whose names match.
func (b *Harness) Choose(only *regexp.Regexp) (numbers []int) {
	for i := range b.Faults {
		if only.MatchString(b.Faults[i].Name) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// Each calls try for each number, for as many at a time as there are workers, until all are tried
// or ctx ends. It reports the line that try returns.
func (b *Harness) Each(ctx context.Context, numbers []int, try func(number int) string) {
	next := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	tried := 0
	for range b.Workers {
		wg.Go(func() {
			for number := range next {
				if ctx.Err() != nil {
					continue // it ended while this one waited for a worker
				}
				line := try(number)
				mu.Lock()
				tried++
				fmt.Fprintf(b.Report, "[%d/%d] %s: %s\n", tried, len(numbers), b.Faults[number-1].Name, line)
				mu.Unlock()
			}
		})
	}
	for _, number := range numbers {
		if ctx.Err() == nil {
			next <- number
		}
	}
	close(next)
	wg.Wait()
}
