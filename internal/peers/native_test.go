package peers

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// What sites use inside: our own transports, or an MPI of their own.
const (
	ownSite     = ""
	openMPISite = `native {
    mpicc  = "mpicc.openmpi"
    launch = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "{procs}"]
  }`
	mpichSite = `native { mpicc = "mpicc.mpich" }`
)

// needNatives ends the test where Open MPI and MPICH are not both there.
func needNatives(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"mpicc.openmpi", "mpirun.openmpi", "mpicc.mpich", "mpirun.mpich"} {
		if _, err := exec.LookPath(tool); err != nil {
			skips.NotRun(t, "there is no "+tool, "apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich")
		}
	}
}

// orders gives all orders of some things.
func orders[T any](list []T) (all [][]T) {
	if len(list) == 0 {
		return [][]T{nil}
	}
	for i := range list {
		rest := append(append([]T(nil), list[:i]...), list[i+1:]...)
		for _, o := range orders(rest) {
			all = append(all, append([]T{list[i]}, o...))
		}
	}
	return all
}

// TestFourMPIs: jobs of Open MPI, MPICH, LAM/MPI and our own transports, a site each, in every order of
// clients: all that LAM can do with others, in programs in Go on the other sites. Four of the orders run, and
// all of them if the variable wholeSuite is set: seven procs, most of which compute while they wait, take long.
func TestFourMPIs(t *testing.T) {
	needNatives(t)
	k := needLAM(t)
	for i, names := range orders([]string{"Open MPI", "ours", "LAM", "MPICH"}) {
		s := shape{name: strings.Join(names, ", ")}
		for _, name := range names {
			s.sites = append(s.sites, map[string]Site{
				"Open MPI": {Procs: 2, Native: openMPISite}, "MPICH": {Procs: 2, Native: mpichSite},
				"ours": {Procs: 1}, "LAM": {Procs: 2, LAM: true},
			}[name])
		}
		if i%7 != 0 && os.Getenv(wholeSuite) == "" {
			continue // in the others LAM is first, second, third and last
		}
		t.Run(s.name, func(t *testing.T) {
			if i > 0 {
				soak.Only(t, "make test has one of the orders")
			}
			pass(t, k, s, s.all(100), s.keyed)
		})
	}
}
