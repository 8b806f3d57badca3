package pmi_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/launch/pmi"
	"github.com/openimpi/impi/internal/launch/pmi/pmitest"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/skips"
)

// versionVariable is a version of PMI. With it the test program is what process managers start: a
// process of a job.
const versionVariable = "IMPI_TEST_PMI"

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

// process is a process of a job.
func process(version int) error {
	if !pmi.Started(os.Getenv) {
		return errors.New("no process manager has started this")
	}
	c, err := pmi.Open(os.Getenv, version)
	if err != nil {
		return err
	}
	return pmitest.Process(c, []int{1: 0, 2: 1000}[version]) // the most that Slurm and hydra have room for
}

// TestHydra has MPICH's mpiexec.hydra start processes.
func TestHydra(t *testing.T) {
	hydra := skips.ProgramOf(t, "mpiexec.hydra", "mpich")
	for version := 1; version <= 2; version++ {
		env := []string{versionVariable + "=" + strconv.Itoa(version)}
		t.Run(fmt.Sprintf("PMI-%d", version), func(t *testing.T) {
			out := daemons.Run(t, env, hydra, "-n", "2", launchtest.Self(t), ":", "-n", "1", launchtest.Self(t))
			pmitest.Want(t, out, "rank 0 of 3 nodes [0 0 0] appnum 0", "rank 1 of 3 nodes [0 0 0] appnum 0", "rank 2 of 3 nodes [0 0 0] appnum 1")
		})
		t.Run(fmt.Sprintf("PMI-%d abort", version), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), hydra, "-n", "3", launchtest.Self(t))
			cmd.Env = append(os.Environ(), append(env, pmitest.AbortVariable+"=1")...)
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || strings.Contains(string(out), "FAULT") {
				t.Errorf("%v, want that all are ended\n%s", err, out)
			}
		})
	}
	t.Run("PMI_PORT", func(t *testing.T) {
		out := daemons.Run(t, []string{versionVariable + "=1"}, hydra, "-pmi-port", "-n", "2", launchtest.Self(t))
		pmitest.Want(t, out, "rank 0 of 2 nodes [0 0] appnum 0", "rank 1 of 2 nodes [0 0] appnum 0")
	})
}

// TestSrun has a real Slurm start processes on three nodes.
func TestSrun(t *testing.T) {
	c := slurmtest.Start(t, 3)
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("PMI-%d", version), func(t *testing.T) {
			out := daemons.Run(t, append(c.Env(), versionVariable+"="+strconv.Itoa(version)),
				"srun", "--quiet", "--mpi=pmi2", "-N3", "-n5", "--distribution=block", launchtest.Self(t))
			var lines []string
			for rank := range 5 {
				lines = append(lines, fmt.Sprintf("rank %d of 5 nodes [0 0 1 1 2] appnum 0", rank))
			}
			pmitest.Want(t, out, lines...)
		})
		t.Run(fmt.Sprintf("PMI-%d abort", version), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "srun", "--quiet", "--mpi=pmi2", "-N3", "-n5", launchtest.Self(t))
			cmd.Env = append(append(os.Environ(), c.Env()...), versionVariable+"="+strconv.Itoa(version), pmitest.AbortVariable+"=1")
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || strings.Contains(string(out), "FAULT") {
				t.Errorf("%v, want that all are ended\n%s", err, out)
			}
		})
	}
}
