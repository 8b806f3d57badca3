package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// collectives is a program that does the collective operations of which a site's MPI does a part, or our shim by its
// messages: all that both know of datatypes and operations, with lengths at which another way is taken. Each is
// compared with what a loop gives. Its argument is a file that all procs can map: each proc counts there before a
// barrier, so that a barrier that ends early is seen.
const collectives = `#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MOST = 1 << 20, GUARD = 64 };
static int rank, size, wrong;
static char *in, *out, *want;
static void bad(const char *what, long n, long k)
{
	if (!wrong++)
		printf("rank %d of %d: %s of %ld, %ld\n", rank, size, what, n, k);
}
static const int lengths[] = {1, 2, 5, 31, 32, 33, 100, 511, 1000, 1024, 2049, 5003, 20011};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
#define EACH_TYPE(X) X(int32_t, MPI_INT32_T) X(uint32_t, MPI_UINT32_T) X(int64_t, MPI_INT64_T) X(uint64_t, MPI_UINT64_T)
// Numbers are so small that sums and products of all are exact.
#define SUMS(type, mpi) \
static void sums_##mpi(int n, int op, int place) \
{ \
	static MPI_Op ops[4]; \
	ops[0] = MPI_SUM, ops[1] = MPI_PROD, ops[2] = MPI_MAX, ops[3] = MPI_MIN; \
	type *a = (type *)in, *b = (type *)out; \
	memset(out, 0x5a, MOST); \
	for (int i = 0; i < n; i++) \
		a[i] = (type)(1 + (rank + i) % 3 + (op > 1 ? 5 * ((rank + i) % 7) : 0)); \
	if (place) \
		memcpy(out, in, n * sizeof *a); \
	MPI_Allreduce(place ? MPI_IN_PLACE : in, out, n, mpi, ops[op], MPI_COMM_WORLD); \
	for (int i = 0; i < n; i++) { \
		type w = 0; \
		for (int r = 0; r < size; r++) { \
			type x = (type)(1 + (r + i) % 3 + (op > 1 ? 5 * ((r + i) % 7) : 0)); \
			w = r == 0 ? x : op == 0 ? w + x : op == 1 ? w * x : (op == 2) == (x > w) ? x : w; \
		} \
		if (b[i] != w) { \
			bad("allreduce of " #type, n, op * 10 + place); \
			break; \
		} \
		if (!place && a[i] != (type)(1 + (rank + i) % 3 + (op > 1 ? 5 * ((rank + i) % 7) : 0))) { \
			bad("what was given to allreduce of " #type, n, op); \
			break; \
		} \
	} \
	for (int i = 0; i < GUARD; i++) \
		if (out[n * sizeof *a + i] != 0x5a) { \
			bad("behind allreduce of " #type, n, op); \
			break; \
		} \
}
EACH_TYPE(SUMS)
SUMS(float, MPI_FLOAT)
SUMS(double, MPI_DOUBLE)
static void bits(int n, MPI_Op op, int what)
{
	uint32_t *a = (uint32_t *)in, *b = (uint32_t *)out;
	for (int i = 0; i < n; i++)
		a[i] = what < 3 ? 0xf0f0f0f0u ^ (uint32_t)((rank + 1) * 77 * (i + 1)) : (uint32_t)((rank + i) % 3);
	MPI_Allreduce(in, out, n, MPI_UINT32_T, op, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		uint32_t w = 0;
		for (int r = 0; r < size; r++) {
			uint32_t x = what < 3 ? 0xf0f0f0f0u ^ (uint32_t)((r + 1) * 77 * (i + 1)) : (uint32_t)((r + i) % 3);
			if (what >= 3)
				x = x != 0;
			w = r == 0 ? x : what % 3 == 0 ? w & x : what % 3 == 1 ? w | x : w ^ x;
		}
		if (b[i] != w)
			return bad("bits", n, what);
	}
}
static char byte(int from, int to, int i) { return (char)(from * 31 + to * 7 + i); }
static void bcast(int n, int root, int turn)
{
	for (int i = 0; i < n + GUARD; i++)
		out[i] = i < n && rank == root ? byte(root, turn, i) : 0x5a;
	MPI_Bcast(out, n, MPI_BYTE, root, MPI_COMM_WORLD);
	for (int i = 0; i < n + GUARD; i++)
		if (out[i] != (i < n ? byte(root, turn, i) : 0x5a))
			return bad("bcast", n, root);
}
static void alltoall(int n, int place)
{
	char *from = place ? out : in;
	memset(out, 0x5a, MOST);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i++)
			from[r * n + i] = byte(rank, r, i);
	MPI_Alltoall(place ? MPI_IN_PLACE : in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n; i++)
			if (out[r * n + i] != byte(r, rank, i) || (!place && in[r * n + i] != byte(rank, r, i)))
				return bad("alltoall", n, place);
	if (out[size * n] != 0x5a)
		bad("behind alltoall", n, place);
}
static void barriers(const char *file)
{
	int fd = open(file, O_RDWR);
	_Atomic int *n = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (int i = 1; i <= 200; i++) {
		if ((i + rank) % 50 == 0)
			usleep(500);
		++*n;
		MPI_Barrier(MPI_COMM_WORLD);
		if (*n < i * size)
			return bad("barrier", i, *n);
	}
}
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	in = calloc(2, MOST), out = calloc(2, MOST), want = calloc(2, MOST);
	MPI_Op logic[] = {MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
	MPI_Barrier(MPI_COMM_WORLD);
	for (int t = 0; t < 2; t++) // C knows the memory the second time
		for (int k = 0; k < LENGTHS; k++) {
			for (int op = 0; op < 4; op++)
				for (int place = 0; place < 2; place++) {
#define CALL(type, mpi) sums_##mpi(lengths[k], op, place);
					EACH_TYPE(CALL)
					CALL(float, MPI_FLOAT)
					CALL(double, MPI_DOUBLE)
				}
			for (int op = 0; op < 6; op++)
				bits(lengths[k], logic[op], op);
			for (int root = 0; root < size; root++)
				bcast(lengths[k] * 3, root, t);
			for (int place = 0; place < 2; place++)
				alltoall(lengths[k] * 2, place);
		}
	barriers(argv[1]);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s\n", wrong ? "wrong" : "no errors");
	MPI_Finalize();
	return wrong != 0;
}
`

// TestNativeCollectives: what a site's MPI and the shim do of collective operations is right in 2, 3 and 4 procs, for
// each datatype and operation that they do, and they do it.
func TestNativeCollectives(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "collectives.c"), filepath.Join(dir, "collectives")
	if err := os.WriteFile(source, []byte(collectives), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, k.Command("impicc"), "-O1", "-o", program, source); err != nil {
		t.Fatal(err)
	}
	for name, site := range tracedSites(t, dir) {
		for procs := 2; procs <= 4; procs++ {
			t.Run(fmt.Sprintf("%s %d", name, procs), func(t *testing.T) {
				dir := t.TempDir()
				job, counter := filepath.Join(dir, "job.hcl"), filepath.Join(dir, "counter")
				if err := os.WriteFile(job, []byte(suiteRun{procs: procs, args: []string{counter}}.job(program, site+always)), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(counter, make([]byte, 4096), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := ctest.Run(t.Context(), dir, nil, k.Command("impi-node"), "-config", job)
				if err != nil || !strings.Contains(out, "no errors") {
					t.Fatalf("%v:\n%.3000s", err, out)
				}
				for _, phase := range []string{"barrier", "allreduce", "bcast", "alltoall"} {
					if n := strings.Count(out, "impi_native: "+phase+"\n"); n < 50*procs {
						t.Errorf("%s was done only %d times by %d procs", phase, n, procs)
					}
				}
			})
		}
	}
}
