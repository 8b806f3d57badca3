package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/launch/engine"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/netns"
	"github.com/openimpi/impi/internal/skips"
)

// The ways to reach machines that -on makes.
const (
	bySSH   = "ssh"
	bySlurm = "slurm"
)

const procsPerMachine = 2

// testbed makes machines. It is the testing.TB of the packages that make them for tests.
type testbed struct {
	ctx     context.Context
	cleanup []func()
}

// cannot is what a testbed panics with: why machines cannot be made.
type cannot string

func (b *testbed) Helper()                        {}
func (b *testbed) Logf(string, ...any)            {}
func (b *testbed) Failed() bool                   { return false }
func (b *testbed) Context() context.Context       { return b.ctx }
func (b *testbed) Cleanup(f func())               { b.cleanup = append(b.cleanup, f) }
func (b *testbed) Skip(why ...any)                { panic(cannot(fmt.Sprint(why...))) }
func (b *testbed) Fatal(why ...any)               { panic(cannot(fmt.Sprint(why...))) }
func (b *testbed) Fatalf(format string, a ...any) { panic(cannot(fmt.Sprintf(format, a...))) }

func (b *testbed) TempDir() string {
	dir, err := os.MkdirTemp("", "impi-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (b *testbed) close() {
	for _, f := range slices.Backward(b.cleanup) {
		f()
	}
}

// errNoTestbed is wrapped if this computer cannot make machines of a kind.
var errNoTestbed = errors.New("cannot be measured here")

func (b *testbed) make(way string, counts []int) (m *onMachines, err error) {
	defer func() {
		if why, ok := recover().(cannot); ok {
			err = fmt.Errorf("start by %s %w: %s", way, errNoTestbed, strings.TrimSpace(string(why)))
		}
	}()
	if way == bySSH {
		return b.sshMachines(counts), nil
	}
	return b.slurmMachines(counts), nil
}

// sshMachines makes network namespaces with an sshd in each. Launchers run on the first one, and
// find an ssh that knows the keys.
func (b *testbed) sshMachines(counts []int) *onMachines {
	machines := netns.New(b, slices.Max(counts))
	config := sshtest.StartOn(b, machines)
	m := &onMachines{counts: counts, way: bySSH, command: machines[0].Command}
	for _, x := range machines {
		m.all = append(m.all, engine.Machine{Name: x.Address, Tasks: procsPerMachine})
	}
	bin := b.TempDir()
	ssh := fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", skips.ProgramOf(b, "ssh", "openssh-client"), config)
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(ssh), 0o755); err != nil { //nolint:gosec // a script
		b.Fatal(err)
	}
	m.environ = func(int) []string { return append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")) }
	return m
}

// slurmMachines starts a Slurm, and gets a job of it for each number of nodes. Launchers run as a
// batch script does on the job's first node.
func (b *testbed) slurmMachines(counts []int) *onMachines {
	most := slices.Max(counts)
	c := slurmtest.Start(b, most)
	m := &onMachines{counts: counts, way: bySlurm}
	for n := range most {
		m.all = append(m.all, engine.Machine{Name: fmt.Sprintf("n%d", n+1), Tasks: procsPerMachine})
	}
	environs := map[int][]string{}
	for _, n := range counts {
		environs[n] = c.Allocate(b, fmt.Sprintf("--nodes=%d", n), fmt.Sprintf("--ntasks-per-node=%d", procsPerMachine), "--oversubscribe")
	}
	m.environ = func(n int) []string { return environs[n] }
	return m
}

func (o options) compareTestbeds(ctx context.Context, w io.Writer) (results []result, err error) {
	for _, way := range o.on {
		list, err := o.compareTestbed(ctx, way, w)
		if errors.Is(err, errNoTestbed) && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "impi-bench: %v\n", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		results = append(results, list...)
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("start on %s %w", strings.Join(o.on, " and "), errNoTestbed)
	}
	return results, nil
}

func (o options) compareTestbed(ctx context.Context, way string, w io.Writer) ([]result, error) {
	b := &testbed{ctx: ctx}
	defer b.close()
	o.progress("start: making machines for %s", way)
	m, err := b.make(way, o.counts)
	if err != nil {
		return nil, err
	}
	o.machines = m
	return o.compareOnce(ctx, w)
}
