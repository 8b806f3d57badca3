// Package pmixtest has Open MPI's mpirun start programs for tests. It is a process manager that
// speaks PMIx.
package pmixtest

import (
	"os"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// AsRoot are variables with which root may run mpirun.
var AsRoot = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}

// Mpirun returns the beginning of a command line of mpirun, and the environment variables that it
// needs. It starts more processes than there are cores, all on this machine. The test is skipped
// where Open MPI is not installed.
func Mpirun(tb testing.TB) (words, env []string) {
	tb.Helper()
	path := skips.ProgramOf(tb, "mpirun.openmpi", "openmpi-bin")
	dir, err := os.MkdirTemp("", "mpirun") // for sockets, whose paths must be short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	words = []string{path, "--oversubscribe", "--bind-to", "none", "--mca", "orte_tmpdir_base", dir, "--mca", "oob_tcp_if_include", "lo", "--mca", "plm_rsh_agent", "false"}
	return words, AsRoot
}

// MpirunBySSH is Mpirun for processes on several machines, each with a /tmp of its own, which
// mpirun starts by ssh with a config.
func MpirunBySSH(tb testing.TB, config string) (words, env []string) {
	tb.Helper()
	path := skips.ProgramOf(tb, "mpirun.openmpi", "openmpi-bin")
	ssh := skips.ProgramOf(tb, "ssh", "openssh-client")
	return []string{path, "--oversubscribe", "--bind-to", "none", "--mca", "plm_rsh_agent", ssh + " -F " + config}, AsRoot
}
