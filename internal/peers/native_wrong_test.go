package peers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// onSites runs a program on sites of two procs and gives what is said and the job's exit status.
func onSites(t *testing.T, k *ctest.Kit, program string, args []string, sites ...string) (out string, status int) {
	t.Helper()
	return inProcs(t, k, 2*len(sites), program, args, sites...)
}

// inProcs is onSites with so many procs on all of them.
func inProcs(t *testing.T, k *ctest.Kit, procs int, program string, args []string, sites ...string) (out string, status int) {
	t.Helper()
	dir := t.TempDir()
	job := suiteRun{procs: procs, args: args}.job(program, sites...)
	if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := ctest.Run(ctx, dir, nil, k.Command("impi-node"), "-config", "job.hcl")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, out)
	}
	if exit != nil {
		status = exit.ExitCode()
	}
	return out, status
}

// compileWith compiles a source by impicc.
func compileWith(t *testing.T, k *ctest.Kit, dir, name, text string, more ...string) (program string) {
	t.Helper()
	source, program := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, k.Command("impicc"), append([]string{"-o", program, source}, more...)...); err != nil {
		t.Fatal(err)
	}
	return program
}

const (
	onlyInit = `#include <mpi.h>
int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return MPI_Finalize();
}
`
	withHelper = `#include <mpi.h>
int helper(void);
int main(int argc, char **argv)
{
	helper();
	MPI_Init(&argc, &argv);
	return MPI_Finalize();
}
`
	helper = `#include <mpi.h>
int helper(void)
{
	int there;
	MPI_Initialized(&there);
	return there;
}
`
)

// TestWrongProgramsAtNativeSites: what cannot run there says why, with a status, and does not
// crash.
func TestWrongProgramsAtNativeSites(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	vendor := func(args ...string) {
		t.Helper()
		if _, err := ctest.Run(t.Context(), dir, nil, "mpicc.mpich", args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "helper.c"), []byte(helper), 0o600); err != nil {
		t.Fatal(err)
	}
	vendor("-shared", "-fPIC", "-o", "libhelper.so", "helper.c")
	ldd, err := ctest.Run(t.Context(), dir, nil, "ldd", "libhelper.so")
	library := regexp.MustCompile(`libmpich\S* => (\S+)`).FindStringSubmatch(ldd)
	if err != nil || library == nil {
		t.Fatalf("%v: where MPICH's library is, is not known:\n%s", err, ldd)
	}

	for _, name := range []string{"shim.h", "shim.c"} {
		text, err := os.ReadFile("../native/shim/" + name)
		if err != nil {
			t.Fatal(err)
		}
		newer := strings.Replace(string(text), "#define IMPI_NATIVE_ABI 6\n", "#define IMPI_NATIVE_ABI 9\n", 1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(newer), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vendor("-shared", "-fPIC", "-o", "newer.so", "shim.c")

	without := filepath.Join(dir, "without")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", without, "./exchange")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	first := compileWith(t, k, dir, "first", onlyInit, "-Wl,--no-as-needed", library[1])
	second := compileWith(t, k, dir, "second", withHelper, "-L", dir, "-lhelper", "-Wl,-rpath,"+dir)
	const (
		begins    = "site s0 has its own MPI: "
		hasSecond = "two MPI libraries are in one process: the program is linked to /"
	)
	for name, c := range map[string]struct {
		program, site, says string
		status              int
	}{
		"linked to MPICH first":          {first, mpichSite, "two MPI libraries are in one process, and the program calls " + library[1] + " and not ", 16},
		"has a library of MPICH's":       {second, mpichSite, hasSecond, 16},
		"has one, and at a site of ours": {second, ownSite, hasSecond, 16},
		"Go without cgo":                 {without, mpichSite, begins + "the site's MPI cannot be loaded: the program is built without cgo, which loading the site's MPI takes: build it with CGO_ENABLED=1", 16},
		"shim of another release":        {compileWith(t, k, dir, "init", onlyInit), "native {\n    shim   = \"" + dir + "/newer.so\"\n    launch = [\"mpirun.mpich\", \"-n\", \"{procs}\"]\n  }", begins + "the site's MPI cannot be loaded: " + dir + "/newer.so has version 9 of the functions, this program wants 6: build it anew", 16},
		"linked, and at a site of ours":  {first, ownSite, "two MPI libraries are in one process, and the program calls " + library[1] + " and not ", 16},
	} {
		t.Run(name, func(t *testing.T) {
			out, status := onSites(t, k, c.program, nil, c.site)
			if status != c.status || !strings.Contains(out, c.says) {
				t.Errorf("status %d, want %d and %q:\n%s", status, c.status, c.says, out)
			}
		})
	}
}

// hangs is a program whose procs wait for a message that nobody sends.
const hangs = `#include <mpi.h>
int main(int argc, char **argv)
{
	int x;
	MPI_Init(&argc, &argv);
	MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return MPI_Finalize();
}
`

// crashes is a program one of whose procs dies while the others wait for it.
const crashes = `#include <mpi.h>
#include <signal.h>
int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
`

// exchanges is a program whose procs send each other more messages than a shim with
// -DIMPI_NATIVE_SENDS=50 sends.
const exchanges = `#include <mpi.h>
int main(int argc, char **argv)
{
	int rank, size, x = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < 1000; i++)
		MPI_Sendrecv_replace(&x, 1, MPI_INT, rank ^ 1, 0, rank ^ 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return MPI_Finalize();
}
`

// TestSiteMPIAborts: what ends a job is named with what the site's own MPI says of it, if that has
// aborted by itself, its launcher has killed the procs, or one of them has died.
func TestSiteMPIAborts(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	waits, dies := compileWith(t, k, dir, "hangs", hangs), compileWith(t, k, dir, "crashes", crashes)
	sends := compileWith(t, k, dir, "exchanges", exchanges)
	fails := shimSites(t, dir, "-DIMPI_NATIVE_SENDS=50")
	const (
		procAborted = 58 // MPI_ERR_PROC_ABORTED, by which requests fail
		someFailure = -1 // by what Hydra's last process ended, of those that it has killed
	)
	launch := func(mpi string, words ...string) string {
		return "native {\n    mpicc  = \"mpicc." + mpi + "\"\n    launch = [\"" + strings.Join(words, "\", \"") + "\", \"-n\", \"{procs}\"]\n  }"
	}
	openMPI := func(flags ...string) string {
		return launch("openmpi", append([]string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"}, flags...)...)
	}
	for name, c := range map[string]struct {
		program, site, says string
		status              int
	}{
		"Open MPI, in MPI_Init":     {waits, openMPI("--mca", "pml", "ob1", "--mca", "btl", "self"), `impi-node: site s0: mpirun\.openmpi exited with status 1 before 2 of 2 procs had called MPI Init; it said: `, 1},
		"MPICH, in MPI_Init":        {waits, launch("mpich", "mpirun.mpich", "-genv", "UCX_TLS", "nosuch"), `impi-node: site s0: mpirun\.mpich exited with status \d+ before 2 of 2 procs had called MPI Init; it said: .*Fatal error in internal_Init_thread`, someFailure},
		"Open MPI, by its launcher": {waits, openMPI("--timeout", "15"), `impi-node: rank [01] on site s0 ended without MPI Finalize; mpirun\.openmpi exited with status 110, and said: The user-provided time limit`, 110},
		"MPICH, by its launcher":    {waits, launch("mpich", "/usr/bin/env", "MPIEXEC_TIMEOUT=15", "mpirun.mpich"), `impi-node: rank [01] on site s0 ended without MPI Finalize; env exited with status 255`, 255},
		"Open MPI, in a send":       {sends, fails["openmpi"] + always, `the site's MPI has failed: MPI_Isend of Open MPI v.*: MPI_ERR_INTERN: internal error`, procAborted},
		"MPICH, in a send":          {sends, fails["mpich"] + always, `the site's MPI has failed: MPI_Isend of MPICH Version:\s.*: Internal MPI error!`, procAborted},
		"Open MPI, a signal":        {dies, openMPISite, `impi-node: rank 1 on site s0 ended without MPI Finalize; mpirun\.openmpi exited with status 139`, 139},
		"MPICH, a signal":           {dies, mpichSite, `impi-node: rank 1 on site s0 ended without MPI Finalize; mpirun\.mpich exited with status 11`, 11},
	} {
		t.Run(name, func(t *testing.T) {
			out, status := onSites(t, k, c.program, nil, c.site, ownSite)
			if status != c.status && (c.status != someFailure || status == 0) || !regexp.MustCompile(c.says).MatchString(out) {
				t.Errorf("status %d, want %d and %q:\n%s", status, c.status, c.says, out)
			}
		})
	}
}

const spawning = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	MPI_Comm parent, children;
	int rank, sum = 0, one;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		one = rank + 1;
		MPI_Reduce(&one, NULL, 1, MPI_INT, MPI_SUM, 1, parent);
		MPI_Comm_disconnect(&parent);
		return MPI_Finalize();
	}
	MPI_Info info;
	MPI_Info_create(&info);
	if (argc > 1)
		MPI_Info_set(info, "host", argv[1]);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	int error = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, info, 1, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
	MPI_Info_free(&info);
	if (error) {
		char text[MPI_MAX_ERROR_STRING];
		int n, class;
		MPI_Error_class(error, &class);
		MPI_Error_string(error, text, &n);
		if (rank == 1)
			printf("%s: %s\n", class == MPI_ERR_SPAWN ? "refused" : "wrong class", text);
	} else {
		MPI_Reduce(NULL, &sum, 1, MPI_INT, MPI_SUM, rank == 1 ? MPI_ROOT : MPI_PROC_NULL, children);
		if (rank == 1)
			printf("the children's sum is %d\n", sum);
		MPI_Comm_disconnect(&children);
	}
	return MPI_Finalize();
}
`

// TestSpawnFromNativeSites: procs of a native site spawn at a site of ours, and nobody spawns at
// theirs.
func TestSpawnFromNativeSites(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	program := compileWith(t, k, dir, "spawning", spawning)
	ours := "spawn {\n    slots = 8\n    allow = [\"" + dir + "/*\"]\n  }"
	const cannot = "refused: .*: the launcher of the MPI that site s0 has of its own cannot add procs; name another site or host in the info key host\n"
	for name, c := range map[string]struct{ native, host, says string }{
		"Open MPI, at ours":     {openMPISite + always, "s1", "the children's sum is 3\n"},
		"MPICH, at ours":        {mpichSite + always, "s1", "the children's sum is 3\n"},
		"MPICH, at its own":     {mpichSite, "s0", cannot},
		"Open MPI, nobody says": {openMPISite, "", cannot},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if c.host != "" {
				args = []string{c.host}
			}
			out, status := onSites(t, k, program, args, c.native, ours)
			if status != 0 || !regexp.MustCompile("(?m)^"+c.says).MatchString(out) {
				t.Errorf("status %d, want %q:\n%s", status, c.says, out)
			}
		})
	}
}
