package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
)

// TestUsableCores: cores that this thread may not use do not count.
func TestUsableCores(t *testing.T) {
	runtime.LockOSThread() // and the thread ends with the test
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	if n := usableCores(); n != 1 {
		t.Errorf("%d cores, of 1 CPU", n)
	}
}

// TestTasksOfPBS: a host has as many procs as it has lines, by its name or its address; others have
// none that the scheduler knows of.
func TestTasksOfPBS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes")
	if err := os.WriteFile(path, []byte("127.0.0.21\nlocalhost\n127.0.0.21\n127.0.0.21\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := tasksOf([]string{"PBS_NODEFILE=" + path})
	for _, x := range []struct {
		host config.Host
		want int
	}{
		{config.Host{Address: netip.MustParseAddr("127.0.0.21")}, 3},
		{config.Host{Name: "localhost"}, 1},
		{config.Host{Address: netip.MustParseAddr("127.0.0.22"), Name: "node22"}, 0},
		{config.Host{}, 0},
	} {
		if got, err := of(x.host); got != x.want || err != nil {
			t.Errorf("%v: %d tasks (%v), want %d", x.host, got, err, x.want)
		}
	}
	if got, err := tasksOf(nil)(config.Host{Address: netip.MustParseAddr("127.0.0.21")}); got != 0 || err != nil {
		t.Errorf("%d tasks without a scheduler (%v)", got, err)
	}
	if got, err := tasksOf([]string{"PBS_NODEFILE=" + path + ".gone"})(config.Host{Name: "localhost"}); got != 0 || err == nil {
		t.Errorf("%d tasks of a scheduler that does not answer", got)
	}
}

// TestInOwnStep: what a step of srun has in its environment is about the step.
func TestInOwnStep(t *testing.T) {
	for _, x := range []struct {
		environ []string
		want    bool
	}{
		{[]string{"SLURM_TASKS_PER_NODE=4(x2)"}, false},
		{[]string{"SLURM_TASKS_PER_NODE=1(x2)", "SLURM_STEP_TASKS_PER_NODE=1(x2)"}, true},
		{[]string{"SLURM_TASKS_PER_NODE=1", "SLURM_STEP_TASKS_PER_NODE=1", "SLURM_TASKS_PER_NODE=4(x2)"}, false},
	} {
		if got := inOwnStep(x.environ); got != x.want {
			t.Errorf("%q: %t", x.environ, got)
		}
	}
}
