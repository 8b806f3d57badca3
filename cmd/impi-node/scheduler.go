package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/launch/engine"
)

const askScheduler = time.Minute

// schedulerOf returns the engine that a site's launch block names, if it is one of those that know
// the machines of a job; otherwise nil.
func schedulerOf(l *config.Launch) engine.Engine {
	switch {
	case l == nil:
	case l.Engine == config.LaunchSlurm:
		return engine.Slurm{MPI: l.MPI, Options: l.Options}
	case l.Engine == config.LaunchPBS:
		return engine.PBS{SSH: engine.SSH{Options: l.Options}}
	}
	return nil
}

// allocation returns the hosts of a site that has none in the file: the machines of the job that
// this command is part of.
func allocation(l config.Launch) (hosts []config.Host, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), askScheduler)
	defer cancel()
	machines, err := schedulerOf(&l).Allocation(ctx)
	if err != nil {
		return nil, err
	}
	at, err := addressesOf(ctx, machines)
	for i := range at {
		hosts = append(hosts, config.Host{Name: machines[i].Name, Address: at[i], Procs: max(machines[i].Tasks, 1)})
	}
	return hosts, err
}

// usableCores returns how many procs can run at a time here: the number of cores, or fewer if this
// process's affinity or cgroup allows fewer.
func usableCores() int {
	n := runtime.GOMAXPROCS(0)
	if cores, err := launch.Cores(); err == nil {
		n = min(n, len(cores))
	}
	return max(n, 1)
}

// tasksOf returns config.Options.Tasks for a process with a given environment. The first call asks
// the scheduler.
func tasksOf(environ []string) func(config.Host) (int, error) {
	type given struct {
		machines []engine.Machine
		at       []netip.Addr
	}
	ask := sync.OnceValues(func() (g given, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), askScheduler)
		defer cancel()
		switch {
		case engine.InSlurm(environ) && !inOwnStep(environ):
			g.machines, err = engine.Slurm{Environ: environ}.Allocation(ctx)
		case engine.InPBS(environ):
			g.machines, err = engine.PBS{Environ: environ}.Allocation(ctx)
		}
		if g.at, _ = addressesOf(ctx, g.machines); g.at == nil { // names suffice
			g.at = make([]netip.Addr, len(g.machines))
		}
		return g, err
	})
	return func(h config.Host) (int, error) {
		g, err := ask()
		for i, m := range g.machines {
			if h.Name != "" && (m.Name == h.Name || m.Address == h.Name) || h.Address.IsValid() && g.at[i] == h.Address {
				return m.Tasks, nil
			}
		}
		return 0, err
	}
}

// inOwnStep reports whether srun has started this process in a step of its own. Slurm then reports
// the tasks of the step instead of the job's: a program that srun starts on each machine is one
// task on each.
func inOwnStep(environ []string) bool {
	var step, tasks string
	for _, v := range environ {
		if x, ok := strings.CutPrefix(v, "SLURM_STEP_TASKS_PER_NODE="); ok {
			step = x
		}
		if x, ok := strings.CutPrefix(v, "SLURM_TASKS_PER_NODE="); ok {
			tasks = x
		}
	}
	return step != "" && step == tasks
}

// allocated returns config.Options.Allocation for a run of a site, or of all if it is "".
func allocated(wanted string) func(string, config.Launch) []config.Host {
	return func(site string, l config.Launch) []config.Host {
		if wanted != "" && site != wanted {
			return nil
		}
		hosts, _ := allocation(l) // nodesOf returns the error
		return hosts
	}
}

// toHead runs this command again on the first node of Slurm's job, if this process is elsewhere, as
// after salloc on a login node. In that case it does not return.
func toHead(o *options, job *config.Job) error {
	if o.host != "" || !engine.InSlurm(os.Environ()) {
		return nil
	}
	for _, s := range job.Sites {
		if s.Launch == nil || s.Launch.Engine != config.LaunchSlurm || len(s.Hosts) == 0 || o.site != "" && s.Name != o.site {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), askScheduler)
		_, machines, err := engineOf(ctx, s.Launch, s.Hosts[:1])
		cancel()
		if err != nil {
			continue // the site is elsewhere, or nodesOf returns the error
		}
		head := machines[0].Name
		if os.Getenv("SLURMD_NODENAME") == head {
			return nil
		}
		srun, err := exec.LookPath("srun")
		if err != nil {
			return fmt.Errorf("this is not %s, the head of site %s, and srun, which would start there, is not installed: %w", head, s.Name, err)
		}
		args, environ := o.asTyped()
		return syscall.Exec(srun, headCommand(s.Launch, head, args), append(os.Environ(), environ...))
	}
	return nil
}

// headCommand returns the srun that runs impi-node at the head. A step has variables of its own;
// impi-node needs those of the whole job.
func headCommand(l *config.Launch, head string, args []string) []string {
	mpi := cmp.Or(l.MPI, "none")
	c := []string{
		"srun", "--nodes=1", "--ntasks=1", "--nodelist=" + head, "--overlap", "--mpi=" + mpi, "--cpu-bind=none",
		"--kill-on-bad-exit=0", "--quit-on-interrupt",
	}
	c = append(append(c, l.Options...), "env")
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "SLURM_TASKS_PER_NODE=") || strings.HasPrefix(v, "SLURM_JOB_NODELIST=") {
			c = append(c, v)
		}
	}
	program := l.Program
	if program == "" {
		program, _ = os.Executable() // this program, which exists
	}
	return append(append(c, program), args...)
}
