package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/launch/engine"
)

// onMachines has each implementation's own launcher start a program that does nothing on machines:
// those of -hostfile, the first so many of them at a time.
type onMachines struct {
	all    []engine.Machine
	counts []int
	dir    string // for the files of hosts
}

// usualMachines are the numbers of machines that are measured if -machines does not say.
var usualMachines = []int{2, 4, 8}

// readMachines reads the file of hosts and the numbers of -machines.
func readMachines(file, counts string) (*onMachines, error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("-hostfile: %w", err)
	}
	defer text.Close()
	m := &onMachines{}
	if m.all, err = engine.ParseHostFile(file, text); err != nil {
		return nil, fmt.Errorf("-hostfile: %w", err)
	}
	if counts == "" {
		m.counts = slices.DeleteFunc(slices.Clone(usualMachines), func(n int) bool { return n > len(m.all) })
		if len(m.counts) == 0 {
			m.counts = []int{len(m.all)}
		}
		return m, nil
	}
	for word := range strings.SplitSeq(counts, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(m.all) {
			return nil, fmt.Errorf("-machines: %q: write numbers from 1 to the %d machines of %s, as 2,4", word, len(m.all), file)
		}
		m.counts = append(m.counts, n)
	}
	return m, nil
}

// checkMachines checks what does not go with -hostfile.
func (o *options) checkMachines() error {
	switch {
	case o.machines == nil:
		return nil
	case !slices.Equal(o.benches, []string{"start"}):
		return errors.New("-hostfile is for start: it measures how long launchers take")
	case o.floor || len(o.beside) > 0 || len(o.sizes) > 0:
		return errors.New("-hostfile: -floor, -beside and -sizes do not go with it; the file says how many procs a machine has")
	}
	return nil
}

// hosts writes a file of the first machines, in the form of Open MPI or MPICH, and counts their procs.
func (m *onMachines) hosts(form string, count int) (file string, procs int, err error) {
	var b strings.Builder
	for _, x := range m.all[:count] {
		n := max(x.Tasks, 1)
		procs += n
		name := x.Name
		if x.User != "" {
			name = x.User + "@" + name
		}
		fmt.Fprintf(&b, form, name, n)
	}
	file = filepath.Join(m.dir, "hosts")
	return file, procs, os.WriteFile(file, []byte(b.String()), 0o600)
}

// procs counts those of all machines in the largest run.
func (m *onMachines) procs() (n int) {
	for _, x := range m.all[:slices.Max(m.counts)] {
		n += max(x.Tasks, 1)
	}
	return n
}

// The forms of a line with a machine and its procs.
const (
	colonForm = "%s:%d\n"
	slotsForm = "%s slots=%d\n"
)

// start measures a launcher on each number of machines. Its words come before those that say where and
// how many.
func (m *onMachines) start(ctx context.Context, form, option string, launcher []string, program []string) (list []figure, err error) {
	for _, n := range m.counts {
		file, procs, err := m.hosts(form, n)
		if err != nil {
			return nil, err
		}
		args := append(slices.Clone(launcher[1:]), option, file, "-n", strconv.Itoa(procs))
		one, err := timedRun("start", exec.CommandContext(ctx, launcher[0], append(args, program...)...))
		if err != nil {
			return nil, fmt.Errorf("on %d machines: %w", n, err)
		}
		one[0].Size = n
		list = append(list, one[0])
	}
	return list, nil
}

// impiexec is how ours is measured. It is beside impi-node.
func (m *onMachines) impiexec(node string, program ...string) measurement {
	return func(ctx context.Context, _ string, _ []int) ([]figure, error) {
		return m.start(ctx, slotsForm, "-hostfile", []string{filepath.Join(filepath.Dir(node), "impiexec")}, program)
	}
}

// peer is how it is done with another implementation.
func (m *onMachines) peer(p *peer) measurement {
	return func(ctx context.Context, bench string, _ []int) ([]figure, error) {
		program := loopsOf(bench, p.o.seconds, []int{0}, p.usual.program)
		if p.name == "mpich" {
			return m.start(ctx, colonForm, "-f", []string{p.usual.launcher}, program)
		}
		launcher := []string{p.usual.launcher}
		if os.Geteuid() == 0 {
			launcher = append(launcher, "--allow-run-as-root")
		}
		return m.start(ctx, slotsForm, "--hostfile", launcher, program)
	}
}
