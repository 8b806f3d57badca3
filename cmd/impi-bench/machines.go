package main

import (
	"cmp"
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

// onMachines measures how long each implementation's own launcher takes to start a program that
// does nothing on machines: the first so many of those in -hostfile, or of those that -on has made.
type onMachines struct {
	all    []engine.Machine
	counts []int
	dir    string // for the files of hosts
	way    string // how machines made by -on are reached; empty: not made

	// How to run a launcher, and its environment for a number of machines; nil: the defaults.
	command func(ctx context.Context, name string, args ...string) *exec.Cmd
	environ func(machines int) []string
}

const maxMade = 64

// usualMachines are the numbers of machines that are measured without -machines.
var usualMachines = []int{2, 4, 8}

func readMachines(file, counts string) (*onMachines, error) {
	m := &onMachines{}
	var err error
	if m.all, err = engine.ReadHostFile(file); err != nil {
		return nil, fmt.Errorf("-hostfile: %w", err)
	}
	m.counts, err = readCounts(counts, len(m.all))
	return m, err
}

func readCounts(counts string, most int) (list []int, err error) {
	if counts == "" {
		list = slices.DeleteFunc(slices.Clone(usualMachines), func(n int) bool { return n > most })
		if len(list) == 0 {
			list = []int{most}
		}
		return list, nil
	}
	for word := range strings.SplitSeq(counts, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("-machines: %q: write numbers from 1 to %d, which is how many machines there are, such as 2,4", word, most)
		}
		list = append(list, n)
	}
	return list, nil
}

// checkMachines rejects what cannot be combined with -hostfile or -on.
func (o *options) checkMachines() error {
	switch {
	case o.machines == nil && len(o.on) == 0:
		return nil
	case o.machines != nil && len(o.on) > 0:
		return errors.New("-hostfile names machines and -on makes some: use only one of the two")
	case !slices.Equal(o.benches, []string{"start"}):
		return errors.New("-hostfile and -on are for start: they measure how long launchers take")
	case o.floor || len(o.beside) > 0 || len(o.sizes) > 0:
		return errors.New("-floor, -beside and -sizes cannot be used with -hostfile or -on; the file says how many procs a machine has, and the machines of -on have two")
	}
	for _, way := range o.on {
		if way != bySSH && way != bySlurm {
			return fmt.Errorf("-on %s: write ssh, slurm or both", way)
		}
	}
	return nil
}

// hosts writes a file of the first machines, in the form of Open MPI or MPICH, and counts their
// procs.
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

// procs returns how many procs the largest run has.
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

type launcher struct {
	words   []string // command line up to the machines and number of procs
	option  string   // for the file of machines; empty, or in a job of Slurm: the launcher chooses machines
	form    string   // format of a line in that file
	outside bool     // in a job of Slurm: run on another machine than the job's first node, as by salloc
}

func (m *onMachines) start(l launcher, program ...string) measurement {
	return func(ctx context.Context, _ string, _ []int) (list []figure, err error) {
		for _, n := range m.counts {
			cmd, err := m.starts(ctx, l, n, program)
			if err != nil {
				return nil, err
			}
			one, err := timedRun("start", cmd)
			if err != nil {
				return nil, fmt.Errorf("on %d machines: %w", n, err)
			}
			one[0].Size = n
			list = append(list, one[0])
		}
		return list, nil
	}
}

func (m *onMachines) starts(ctx context.Context, l launcher, n int, program []string) (*exec.Cmd, error) {
	file, procs, err := m.hosts(cmp.Or(l.form, slotsForm), n)
	if err != nil {
		return nil, err
	}
	args := slices.Clone(l.words[1:])
	if l.option != "" && m.way != bySlurm {
		args = append(args, l.option, file)
	}
	args = append(append(args, "-n", strconv.Itoa(procs)), program...)
	cmd := exec.CommandContext(ctx, l.words[0], args...)
	if m.command != nil {
		cmd = m.command(ctx, l.words[0], args...)
	}
	if m.environ != nil {
		cmd.Env = m.environ(n)
	}
	if m.way == bySlurm && !l.outside { // runs on the first node, like a batch script
		cmd.Env = append(slices.Clone(cmd.Env), "SLURMD_NODENAME="+m.all[0].Name)
	}
	return cmd, nil
}

// The peer columns and ours that Slurm's own launcher starts, and ours from where salloc was
// called.
const (
	oursOutside = "impi by salloc"
	oursBySrun  = "impi by srun"
	mpichBySrun = "mpich by srun"
)

// contenders returns ours, the impiexec beside impi-node, and the peers; under Slurm also what srun
// starts.
func (m *onMachines) contenders(ctx context.Context, o *options, own *own) (list []contender, err error) {
	add := func(name string, l launcher, program []string) {
		list = append(list, contender{name: name, run: m.start(l, program...)})
	}
	loops := func(start ...string) []string { return loopsOf("start", o.seconds, []int{0}, start...) }
	impiexec := launcher{words: []string{filepath.Join(filepath.Dir(own.node), "impiexec")}, option: "-hostfile"}
	srun := launcher{words: []string{"srun", "--quiet", "--mpi=pmi2"}}
	worker := loops(own.self, workerWord)
	add(ours, impiexec, worker)
	if m.way == bySlurm {
		outside := impiexec
		outside.outside = true
		add(oursOutside, outside, worker)
		add(oursBySrun, srun, worker)
	}
	for _, word := range o.peers {
		if word == cName {
			p, err := own.newCProgram(ctx)
			if err != nil {
				return nil, err
			}
			add("impi in C", impiexec, loops(p.program))
			continue
		}
		p, err := o.newPeer(ctx, word, m.dir)
		if err != nil {
			return nil, err
		}
		add(p.name, m.launcherOf(p), loops(p.usual.program))
		if p.name == "mpich" && m.way == bySlurm {
			add(mpichBySrun, srun, loops(p.usual.program))
		}
	}
	return list, nil
}

func (m *onMachines) launcherOf(p *peer) launcher {
	l := launcher{words: []string{p.usual.launcher}, option: "--hostfile"}
	switch {
	case p.name == "mpich":
		l.option, l.form = "-f", colonForm
	case os.Geteuid() == 0:
		l.words = append(l.words, "--allow-run-as-root")
	}
	return l
}
