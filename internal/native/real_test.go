package native

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// asRank has the shim for a process of the test that a launcher has started.
const asRank = "IMPI_TEST_NATIVE_RANK"

func TestMain(m *testing.M) {
	if shim := os.Getenv(asRank); shim != "" {
		os.Exit(Selftest(shim, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestRealLibraries runs Selftest by the MPIs of this machine, in 2 and in 4 processes.
func TestRealLibraries(t *testing.T) {
	for _, v := range []struct{ name, cc, run, says string }{
		{"Open MPI", "mpicc.openmpi", "mpirun.openmpi --allow-run-as-root --oversubscribe", "Open MPI v"},
		{"MPICH", "mpicc.mpich", "mpiexec.hydra", "MPICH Version"},
	} {
		for _, n := range []string{"2", "4"} {
			t.Run(v.name+" "+n, func(t *testing.T) {
				launch := append(strings.Fields(v.run), "-n", n, "/usr/bin/env")
				for _, tool := range []string{v.cc, launch[0]} {
					if _, err := exec.LookPath(tool); err != nil {
						skips.NotRun(t, "there is no "+tool, "apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich")
					}
				}
				shim, _, err := Build(t.Context(), v.cc, nil)
				if err != nil {
					t.Fatal(err)
				}
				launch = append(launch, asRank+"="+shim, os.Args[0])
				out, err := exec.CommandContext(t.Context(), launch[0], launch[1:]...).CombinedOutput()
				if err != nil || !strings.Contains(string(out), v.says) || !strings.Contains(string(out), n+" processes") {
					t.Fatalf("%v:\n%s", err, out)
				}
				t.Logf("%s", out)
			})
		}
	}
}
