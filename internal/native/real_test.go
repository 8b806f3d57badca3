//go:build cgo && linux

package native

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// asRank has the shim for a process of the test that a launcher has started.
const asRank = "IMPI_TEST_NATIVE_RANK"

// asFunnelled says that only the thread of Init may call the library.
const asFunnelled = "IMPI_TEST_NATIVE_FUNNELLED"

func TestMain(m *testing.M) {
	if os.Getenv(asFunnelled) != "" {
		initialize = func(l *Library) error { return l.initialize(funnelled) }
	}
	if shim := os.Getenv(asRank); shim != "" {
		os.Exit(Selftest(shim, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestRealLibraries runs Selftest by the MPIs of this machine, in 2 and in 4 processes, also where
// only one thread may call the library.
func TestRealLibraries(t *testing.T) {
	for _, v := range []struct{ name, cc, run, says string }{
		{"Open MPI", "mpicc.openmpi", "mpirun.openmpi --allow-run-as-root --oversubscribe", "Open MPI v"},
		{"MPICH", "mpicc.mpich", "mpiexec.hydra", "MPICH Version"},
	} {
		for _, how := range []string{"2", "4", "2 funnelled"} {
			t.Run(v.name+" "+how, func(t *testing.T) {
				n, funnel, _ := strings.Cut(how, " ")
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
				if funnel != "" {
					launch = append(launch, asFunnelled+"=1")
				}
				launch = append(launch, asRank+"="+shim, os.Args[0])
				out, err := exec.CommandContext(t.Context(), launch[0], launch[1:]...).CombinedOutput()
				_, line, _ := strings.Cut(string(out), FoundPrefix)
				var found Found
				if wrong := json.NewDecoder(strings.NewReader(line)).Decode(&found); err != nil || wrong != nil {
					t.Fatalf("%v, %v:\n%s", err, wrong, out)
				}
				if !strings.HasPrefix(found.Library, v.says) || strconv.Itoa(found.Processes) != n || found.OneThread != (funnel != "") || found.HalfRoundTrip <= 0 || found.Stream <= 0 {
					t.Errorf("%+v", found)
				}
				t.Logf("%s", out)
			})
		}
	}
}
