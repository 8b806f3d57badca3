package peers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
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
	mpichSite = `native {
    mpicc = "mpicc.mpich"
  }`
	// always has the procs of these use their own MPI within a machine, too.
	always = `
  route "{site}" { prefer = ["native"] }`
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

// orders returns all orders of some things.
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

// TestFourMPIs: jobs of Open MPI, MPICH, LAM/MPI and our own transports, a site each, in every
// order of clients: all that LAM can do with others, in programs in Go on the other sites. That is
// what four of the orders do, and all of them if the variable wholeSuite is set; the others
// exchange a little of everything, as seven procs, most of which compute while they wait, take
// long.
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
		tests := s.all(100)
		if i%7 != 0 && os.Getenv(wholeSuite) == "" { // in the others LAM is first, second, third and last
			tests = s.brief()
		}
		t.Run(s.name, func(t *testing.T) {
			if i > 0 {
				soak.SkipUnlessSoak(t, "make test has one of the orders")
			}
			pass(t, k, s, tests, s.keyed)
		})
	}
}

// brief are tests in which every rank has a part, with few and short messages.
func (s shape) brief() []string {
	ours, lams := s.ranks(false), s.ranks(true)
	everybody := append(slices.Clone(ours), lams...)
	tests := []string{
		"ring 3", numbers("wild", append([]int{len(everybody)}, everybody...)...), numbers("pairs", 2, datalen), "barrier 2",
		numbers("bcast", append([]int{datalen / 8, datalen / 8, len(everybody)}, everybody...)...),
		numbers("reduce", append([]int{len(ours)}, ours...)...), numbers("types", ours[0], lams[0]), numbers("types", lams[0], ours[0]),
	}
	if ours[0] == 0 {
		tests = append(tests, "allreduce 1")
	}
	return append(tests, s.spawning()...)
}

// phases is a program in which all members of the world do each operation that a site's MPI has a
// part in.
const phases = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { LONG = 1000 }; // ints, so that blocks do not go by way of masters
static int to[8 * LONG], from[8 * LONG];
int main(int argc, char **argv)
{
	int rank, size, a[8] = {0}, b[8] = {0}, told, room = 20;
	char procs[20] = "";
	MPI_Info env; // before MPI_Init, too
	MPI_Info_create_env(argc, argv, &env);
	MPI_Info_get_string(env, "maxprocs", &room, procs, &told);
	MPI_Info_free(&env);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	a[0] = rank + 1;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	int wrong = b[0] != size * (size + 1) / 2 || !told || atoi(procs) != size;
	MPI_Reduce(a, b, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
	wrong |= rank == 0 && b[0] != size;
	MPI_Bcast(a, 1, MPI_INT, 1, MPI_COMM_WORLD);
	wrong |= a[0] != 2;
	a[0] = 7 * rank + 1;
	MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		wrong |= rank == size - 1 && b[i] != 7 * i + 1;
	MPI_Comm turned, some; // whose ranks go down, and a part of the procs
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
	MPI_Allgather(a, 1, MPI_INT, b, 1, MPI_INT, turned);
	for (int i = 0; i < size; i++)
		wrong |= b[i] != 7 * (size - 1 - i) + 1;
	for (int i = 0; i < 8; i++)
		b[i] = rank;
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, b, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		wrong |= b[i] != i;
	MPI_Datatype every; // two ints, each second one
	MPI_Type_vector(2, 1, 2, MPI_INT, &every);
	MPI_Type_commit(&every);
	int two[4] = {rank, -1, rank + 100, -1}, twos[16];
	MPI_Gather(two, 1, every, twos, 2, MPI_INT, 0, turned);
	for (int i = 0; i < size; i++)
		wrong |= rank == size - 1 && (twos[2 * i] != size - 1 - i || twos[2 * i + 1] != size - 1 - i + 100);
	MPI_Type_free(&every);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &some);
	MPI_Allreduce(&rank, b, 1, MPI_INT, MPI_MIN, some);
	wrong |= b[0] != rank % 2;
	MPI_Comm_free(&some);
	MPI_Comm_free(&turned);
	for (int i = 0; i < size; i++)
		to[i * LONG] = 10 * rank + i;
	MPI_Alltoall(to, LONG, MPI_INT, from, LONG, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		wrong |= from[i * LONG] != 10 * i + rank;
	signed char c[64], d[64]; // of which some MPIs saturate sums
	unsigned short e[64], f[64];
	for (int i = 0; i < 64; i++)
		c[i] = 100, e[i] = 60000;
	MPI_Allreduce(c, d, 64, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(e, f, 64, MPI_UNSIGNED_SHORT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < 64; i++)
		wrong |= d[i] != (signed char)(100 * size) || f[i] != (unsigned short)(60000 * size);
	MPI_Finalize();
	if (rank == 0)
		printf("%s\n", wrong ? "wrong" : "no errors");
	return wrong;
}
`

// TestNativePhases: the site's MPI does its part of collective operations in programs in C, also
// where another site takes part, and none of them where shared memory is preferred.
func TestNativePhases(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "phases.c"), filepath.Join(dir, "phases")
	if err := os.WriteFile(source, []byte(phases), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, k.Command("impicc"), "-o", program, source); err != nil {
		t.Fatal(err)
	}
	for name, site := range tracedSites(t, dir) {
		for how, sites := range map[string][]string{"alone": {site + always}, "with another": {site + always, ownSite}, "by default": {site}} {
			t.Run(name+" "+how, func(t *testing.T) { phasesIn(t, k, program, how != "by default", sites) })
		}
	}
}

// tracedSites are sites with an MPI of their own whose shims tell which functions are called. flags
// are for the compiler.
func tracedSites(t *testing.T, dir string, flags ...string) map[string]string {
	t.Helper()
	return shimSites(t, dir, append(flags, "-DIMPI_NATIVE_TRACE")...)
}

// shimSites are sites with an MPI of their own whose shims are compiled with some flags.
func shimSites(t *testing.T, dir string, flags ...string) map[string]string {
	t.Helper()
	sites := map[string]string{"openmpi": openMPISite, "mpich": mpichSite}
	for name, native := range sites {
		shim := filepath.Join(dir, name+".so")
		if _, err := ctest.Run(t.Context(), "", nil, "mpicc."+name, append(flags, "-shared", "-fPIC", "-o", shim, "../native/shim/shim.c")...); err != nil {
			t.Fatal(err)
		}
		sites[name] = strings.Replace(native, "native {", fmt.Sprintf("native {\n    shim = %q\n   ", shim), 1)
	}
	return sites
}

// phasesIn runs the program on sites of two procs, of which the first has an MPI of its own, which
// does all that it can or nothing.
func phasesIn(t *testing.T, k *ctest.Kit, program string, does bool, sites []string) {
	t.Helper()
	dir := t.TempDir()
	job := suiteRun{procs: 2 * len(sites)}.job(program, sites...)
	if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := ctest.Run(t.Context(), dir, nil, k.Command("impi-node"), "-config", "job.hcl")
	if err != nil || !strings.Contains(out, "no errors") {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, phase := range []string{"barrier", "allreduce", "reduce", "bcast", "gather", "allgather", "alltoall"} {
		if len(sites) > 1 && (phase == "allreduce" || phase == "allgather") {
			continue // done by a reduce or gather, messages between the sites, and a bcast
		}
		// Finalize has a barrier, too.
		if n := strings.Count(out, "impi_native: "+phase+"\n"); (n >= 2) != does || !does && n > 0 {
			t.Errorf("%s was done %d times by 2 procs:\n%s", phase, n, out)
		}
	}
}
