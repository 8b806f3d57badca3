package pmi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/skips"
)

// The test program is also what process managers start: with these variables it is a process of a job.
const (
	versionVariable = "IMPI_TEST_PMI" // of PMI
	abortVariable   = "IMPI_TEST_PMI_ABORT"
)

func TestMain(m *testing.M) {
	if v := os.Getenv(versionVariable); v != "" {
		version, _ := strconv.Atoi(v)
		if err := process(version); err != nil {
			fmt.Println("FAULT:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is a process of a job: each tells all others of itself, twice.
func process(version int) error {
	if !Started(os.Getenv) {
		return errors.New("no process manager has started this")
	}
	c, err := Open(os.Getenv, version)
	if err != nil {
		return err
	}
	me := c.Me()
	for round := range 2 {
		key := fmt.Sprintf("address-%d-%d", round, me.Rank)
		if err := errors.Join(c.Put(key, fmt.Sprintf("(x=%d,%d)", round, me.Rank)), c.Fence()); err != nil {
			return err
		}
		for rank := range me.Size {
			got, found, err := c.Get(fmt.Sprintf("address-%d-%d", round, rank), rank)
			if want := fmt.Sprintf("(x=%d,%d)", round, rank); err != nil || !found || got != want {
				return fmt.Errorf("rank %d has put %q, want %q: %w", rank, got, want, err)
			}
		}
	}
	if _, found, err := c.Get("nobody-has-put-this", 0); found || err != nil {
		return fmt.Errorf("what nobody has put is found: %v %w", found, err)
	}
	if long := strings.Repeat("x", 1000); version == 2 { // most that Slurm and hydra have room for
		if err := errors.Join(c.Put("long-"+strconv.Itoa(me.Rank), long), c.Fence()); err != nil {
			return err
		}
		if got, _, err := c.Get("long-"+strconv.Itoa(me.Rank), me.Rank); err != nil || got != long {
			return fmt.Errorf("%d bytes have become %d: %w", len(long), len(got), err)
		}
	}
	nodes, err := c.Nodes()
	if err != nil {
		return err
	}
	if os.Getenv(abortVariable) != "" {
		if me.Rank == me.Size-1 {
			return c.Abort(7, "this is a test")
		}
		select {} // until the process manager ends it
	}
	fmt.Printf("rank %d of %d nodes %v appnum %d\n", me.Rank, me.Size, nodes, me.AppNum)
	return c.Close()
}

// want compares lines, in whatever order they came.
func want(t *testing.T, out string, lines ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		t.Errorf("the processes printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHydra has MPICH's mpiexec.hydra start processes.
func TestHydra(t *testing.T) {
	hydra := skips.ProgramOf(t, "mpiexec.hydra", "mpich")
	for version := 1; version <= 2; version++ {
		env := []string{versionVariable + "=" + strconv.Itoa(version)}
		t.Run(fmt.Sprintf("PMI-%d", version), func(t *testing.T) {
			out := daemons.Run(t, env, hydra, "-n", "2", self(t), ":", "-n", "1", self(t))
			want(t, out, "rank 0 of 3 nodes [0 0 0] appnum 0", "rank 1 of 3 nodes [0 0 0] appnum 0", "rank 2 of 3 nodes [0 0 0] appnum 1")
		})
		t.Run(fmt.Sprintf("PMI-%d abort", version), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), hydra, "-n", "3", self(t))
			cmd.Env = append(os.Environ(), append(env, abortVariable+"=1")...)
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || strings.Contains(string(out), "FAULT") {
				t.Errorf("%v, want that all are ended\n%s", err, out)
			}
		})
	}
	t.Run("PMI_PORT", func(t *testing.T) {
		out := daemons.Run(t, []string{versionVariable + "=1"}, hydra, "-pmi-port", "-n", "2", self(t))
		want(t, out, "rank 0 of 2 nodes [0 0] appnum 0", "rank 1 of 2 nodes [0 0] appnum 0")
	})
}

// TestSrun has a real Slurm start processes on three nodes.
func TestSrun(t *testing.T) {
	c := slurmtest.Start(t, 3)
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("PMI-%d", version), func(t *testing.T) {
			out := daemons.Run(t, append(c.Env(), versionVariable+"="+strconv.Itoa(version)),
				"srun", "--quiet", "--mpi=pmi2", "-N3", "-n5", "--distribution=block", self(t))
			var lines []string
			for rank := range 5 {
				lines = append(lines, fmt.Sprintf("rank %d of 5 nodes [0 0 1 1 2] appnum 0", rank))
			}
			want(t, out, lines...)
		})
		t.Run(fmt.Sprintf("PMI-%d abort", version), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "srun", "--quiet", "--mpi=pmi2", "-N3", "-n5", self(t))
			cmd.Env = append(append(os.Environ(), c.Env()...), versionVariable+"="+strconv.Itoa(version), abortVariable+"=1")
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || strings.Contains(string(out), "FAULT") {
				t.Errorf("%v, want that all are ended\n%s", err, out)
			}
		})
	}
}
