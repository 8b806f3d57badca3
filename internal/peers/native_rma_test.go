package peers

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/soak"
)

// windows is a program that reaches into memory of other ranks, of its own site and the other one,
// and writes and reads a file with all of them. Its argument is the file.
const windows = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { TURNS = 20, MOST = 20000 };
static int rank, size, wrong;
static long own[MOST], there[8 * MOST];
static void bad(const char *what, long n, long got, long want)
{
	if (!wrong++)
		printf("rank %d: %s of %ld is %ld, want %ld\n", rank, what, n, got, want);
}
static void puts_between_fences(int n)
{
	MPI_Win win;
	MPI_Win_create(there, sizeof there, sizeof *there, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < n; i++)
			own[i] = 1000000L * turn + 1000 * rank + i % 1000;
		MPI_Win_fence(0, win);
		for (int to = 0; to < size; to++)
			MPI_Put(own, n, MPI_LONG, to, (MPI_Aint)rank * n, n, MPI_LONG, win);
		MPI_Win_fence(0, win);
		for (int i = 0; i < size * n; i++)
			if (there[i] != 1000000L * turn + 1000 * (i / n) + i % n % 1000)
				return bad("Put", n, there[i], 1000000L * turn + 1000 * (i / n) + i % n % 1000);
	}
	MPI_Win_free(&win);
}
// Each rank takes numbers from a counter at each rank: all of them are taken once.
static void counters(void)
{
	MPI_Win win;
	long *count, one = 1, last = -1, sum = 0, all;
	MPI_Win_allocate(sizeof *count, sizeof *count, MPI_INFO_NULL, MPI_COMM_WORLD, &count, &win);
	*count = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int to = 0; to < size; to++, last = -1)
		for (int turn = 0; turn < TURNS; turn++) {
			long was = -1;
			MPI_Fetch_and_op(&one, &was, MPI_LONG, to, 0, MPI_SUM, win);
			MPI_Win_flush(to, win);
			if (was <= last || was >= size * TURNS)
				bad("Fetch_and_op", to, was, last + 1);
			last = was, sum += was;
		}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (all != (long)size * (size * TURNS) * (size * TURNS - 1) / 2)
		bad("the sum", TURNS, all, (long)size * (size * TURNS) * (size * TURNS - 1) / 2);
	MPI_Win_free(&win);
}
static void files(char *name, int n)
{
	MPI_File f;
	MPI_Status st;
	int got, from = (rank + 1) % size;
	MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
	for (int i = 0; i < n; i++)
		own[i] = 7L * rank + i;
	MPI_File_write_at_all(f, (MPI_Offset)rank * n * sizeof *own, own, n, MPI_LONG, &st);
	MPI_Get_count(&st, MPI_LONG, &got);
	if (got != n)
		bad("File_write_at_all", n, got, n);
	MPI_File_sync(f);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_sync(f);
	MPI_File_read_at_all(f, (MPI_Offset)from * n * sizeof *there, there, n, MPI_LONG, &st);
	MPI_Get_count(&st, MPI_LONG, &got);
	for (int i = 0; i < n && got == n; i++)
		if (there[i] != 7L * from + i)
			got = -1 - i;
	if (got != n)
		bad("File_read_at_all", n, got, n);
	MPI_File_close(&f);
}
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
	puts_between_fences(1);
	puts_between_fences(MOST);
	counters();
	files(argv[1], 1000);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s\n", wrong ? "wrong" : "no errors");
	MPI_Finalize();
	return wrong != 0;
}
`

// TestNativeWindowsAndFiles: windows and files between a site of Open MPI and one of MPICH.
func TestNativeWindowsAndFiles(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	program := compileWith(t, k, t.TempDir(), "windows", windows)
	out, status := onSites(t, k, program, []string{filepath.Join(t.TempDir(), "file")}, openMPISite+always, mpichSite+always)
	if status != 0 || !strings.Contains(out, "no errors") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// TestThreeMPIsInC: programs in C on a site of Open MPI, one of MPICH and one of ours.
func TestThreeMPIsInC(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	for name, source := range map[string]string{"phases": phases, "ordered": ordered} {
		t.Run(name, func(t *testing.T) {
			if name == "ordered" {
				soak.SkipUnlessSoak(t, "six procs send each other long messages; make test has it on two sites")
			}
			program := compileWith(t, k, t.TempDir(), name, source)
			out, status := onSites(t, k, program, nil, openMPISite+always, mpichSite+always, ownSite)
			if status != 0 || !strings.Contains(out, "no errors") {
				t.Errorf("status %d:\n%s", status, out)
			}
		})
	}
}

// TestNativeFunnelled: where the site's MPI may be called by the thread alone that has begun it,
// the shim aborts if another one does, and all the same messages and collective operations arrive.
func TestNativeFunnelled(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	programs := map[string]string{"longs": longs, "mixed": inBoth, "collectives": collectives}
	for name, source := range programs {
		programs[name] = compileWith(t, k, dir, name, source, "-lpthread")
	}
	for mpi, site := range tracedSites(t, dir, "-DIMPI_NATIVE_FUNNELLED") {
		for name, program := range programs {
			t.Run(mpi+" "+name, func(t *testing.T) {
				var out string
				if name == "collectives" {
					out = collectivesIn(t, k, 2, program, site)
				} else {
					var status int
					if out, status = onSites(t, k, program, nil, site+always); status != 0 || !strings.Contains(out, "no errors") {
						t.Fatalf("status %d:\n%.3000s", status, out)
					}
				}
				if name != "longs" && strings.Count(out, "impi_native: allreduce\n") < 100 {
					t.Error("the site's MPI has no part in it")
				}
				if strings.Contains(out, "impi_native: short_send\n") {
					t.Error("C has called the site's MPI")
				}
			})
		}
	}
}
