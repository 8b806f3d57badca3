// Package pmixtest has Open MPI's mpirun start programs for tests. It is a process manager that speaks
// PMIx.
package pmixtest

import (
	"os"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// Mpirun is the beginning of a command line of mpirun, and what it needs in its environment. It starts
// more processes than there are cores. agent is the command by which it reaches other machines, where
// network, in CIDR or the name of an interface, is how its processes there call it; both are empty for
// this machine alone. The test is skipped where Open MPI is not installed.
func Mpirun(tb testing.TB, network, agent string) (words, env []string) {
	tb.Helper()
	path := skips.ProgramOf(tb, "mpirun.openmpi", "openmpi-bin")
	dir, err := os.MkdirTemp("", "mpirun") // of sockets, whose paths are short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if network == "" {
		network, agent = "lo", "false"
	}
	words = []string{path, "--oversubscribe", "--mca", "orte_tmpdir_base", dir, "--mca", "oob_tcp_if_include", network, "--mca", "plm_rsh_agent", agent}
	return words, []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
}
