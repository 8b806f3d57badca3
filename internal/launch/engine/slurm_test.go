package engine

import (
	"strings"
	"syscall"
	"testing"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/launch/slurmtest"
)

// TestSlurm is what only Slurm does, on a real one.
func TestSlurm(t *testing.T) {
	c := slurmtest.Start(t, 3)
	inJob := func(t *testing.T) (fixture, []string) {
		t.Helper()
		environ := c.Allocate(t, "-N3", "-n6")
		f := fixture{Slurm: &Slurm{Environ: environ}}
		machines, err := f.engine().Allocation(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Machines = machines
		return f, environ
	}

	t.Run("steps of the job are not kept from running", func(t *testing.T) {
		f, environ := inJob(t)
		p := newPrints()
		s := f.run(t, p, `echo runs; read secret; read nothing`)
		p.await(t, "runs", all...)
		if out := daemons.Run(t, environ, "srun", "--ntasks=6", "echo", "step"); strings.Count(out, "step\n") != 6 {
			t.Errorf("the job's own step printed %q", out)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})

	t.Run("machines in another order", func(t *testing.T) {
		f, _ := inJob(t)
		f.Machines = []Machine{f.Machines[2], f.Machines[0]}
		p := newPrints()
		ends(t, f.run(t, p, `echo $SLURMD_NODENAME`))
		if p.of(0, 0) != "n3\n" || p.of(1, 0) != "n1\n" {
			t.Errorf("machine 0 printed %q, machine 1 %q, want n3 and n1", p.of(0, 0), p.of(1, 0))
		}
	})

	t.Run("scancel", func(t *testing.T) {
		f, environ := inJob(t)
		p, w := newPrints(), newWitness(t)
		s := f.run(t, p, held+`trap '' HUP; sleep 1000 & sleep 1000`, w.path)
		p.await(t, "held", all...)
		c.Run("scancel", lookup(environ, "SLURM_JOB_ID"))
		for _, e := range ends(t, s) {
			if e.Lost == "" && e.Status != 128+int(syscall.SIGTERM) {
				t.Errorf("%+v", e)
			}
		}
		w.wantGone(t)
	})

	t.Run("a job that is over", func(t *testing.T) {
		f, environ := inJob(t)
		c.Run("scancel", lookup(environ, "SLURM_JOB_ID"))
		_, err := f.engine().Start(t.Context(), f.Machines, f.command(nil, "true"))
		if err == nil || !strings.Contains(err.Error(), "the job of SLURM_JOB_ID is over") {
			t.Errorf("%v, want that the job is over", err)
		}
	})

	t.Run("a plugin that is not there", func(t *testing.T) {
		f, environ := inJob(t)
		_, err := Slurm{Environ: environ, MPI: "magic"}.Start(t.Context(), f.Machines, f.command(nil, "true"))
		if err == nil || !strings.Contains(err.Error(), "srun --mpi=list") {
			t.Errorf("%v, want that there is no such plugin", err)
		}
	})
}

func TestSlurmAllocation(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		words   string
	}{
		"outside":   {nil, "not inside of an allocation of Slurm"},
		"no list":   {[]string{"SLURM_JOB_ID=1"}, "not inside of an allocation of Slurm"},
		"bad list":  {[]string{"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-"}, "SLURM_JOB_NODELIST: "},
		"bad tasks": {[]string{"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2(y2)"}, "SLURM_TASKS_PER_NODE: "},
		"others":    {[]string{"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2(x3)"}, "is for 3 nodes"},
	} {
		if c.environ == nil {
			c.environ = []string{"HOME=/"}
		}
		if _, err := (Slurm{Environ: c.environ}).Allocation(t.Context()); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %q", name, err, c.words)
		}
	}
}
