package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// collectives is a program that does the collective operations of which a site's MPI does a part,
// or our shim by its messages: all that both know of datatypes and operations, with lengths at
// which another way is taken. Each is compared with what a loop gives. Its argument is a file that
// all procs can map: each proc counts there before a barrier, so that a barrier that ends early is
// seen.
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
static void gathers(int n, int root, int place) // root < 0: all
{
	memset(out, 0x5a, MOST);
	place = place && (root < 0 || rank == root);
	for (int i = 0; i < n; i++)
		(place ? out + rank * n : in)[i] = byte(rank, 1, i);
	if (root < 0)
		MPI_Allgather(place ? MPI_IN_PLACE : in, n, MPI_BYTE, out, n, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Gather(place ? MPI_IN_PLACE : in, n, MPI_BYTE, out, n, MPI_BYTE, root, MPI_COMM_WORLD);
	for (int i = 0; i < size * n; i++)
		if (out[i] != (root < 0 || rank == root ? byte(i / n, 1, i % n) : 0x5a))
			return bad(root < 0 ? "allgather" : "gather", n, root * 10 + place);
	if (out[size * n] != 0x5a)
		bad("behind gather", n, root * 10 + place);
}
static void reduce(int n, int root, int place)
{
	int64_t *a = (int64_t *)in, *b = (int64_t *)out;
	memset(out, 0x5a, MOST);
	place = place && rank == root;
	for (int i = 0; i < n; i++)
		(place ? b : a)[i] = rank * 1000 + i;
	MPI_Reduce(place ? MPI_IN_PLACE : in, out, n, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		if (b[i] != (rank == root ? (int64_t)size * i + 500 * size * (size - 1) : 0x5a5a5a5a5a5a5a5a))
			return bad("reduce", n, root * 10 + place);
	if (out[n * 8] != 0x5a)
		bad("behind reduce", n, root * 10 + place);
}
// A value and an index, of which equal values have several.
#define EACH_PAIR(X) X(short, MPI_SHORT_INT) X(int, MPI_2INT) X(long, MPI_LONG_INT) X(float, MPI_FLOAT_INT) X(double, MPI_DOUBLE_INT)
#define PAIRS(type, mpi) \
static void pairs_##mpi(int n, int least, int place) \
{ \
	struct pair { type value; int index; } *a = (struct pair *)(place ? out : in), *b = (struct pair *)out; \
	memset(out, 0x5a, MOST); \
	for (int i = 0; i < n; i++) \
		a[i].value = (type)((rank * 5 + i) % 3 - 1), a[i].index = 100 - rank; \
	MPI_Allreduce(place ? MPI_IN_PLACE : in, out, n, mpi, least ? MPI_MINLOC : MPI_MAXLOC, MPI_COMM_WORLD); \
	for (int i = 0; i < n; i++) { \
		struct pair w = {0, 1000}; \
		for (int r = 0; r < size; r++) { \
			type x = (type)((r * 5 + i) % 3 - 1); \
			if (w.index == 1000 || (least ? x < w.value : x > w.value)) \
				w.value = x, w.index = 100 - r; \
			else if (x == w.value && 100 - r < w.index) \
				w.index = 100 - r; \
		} \
		if (b[i].value != w.value || b[i].index != w.index) \
			return bad("pairs of " #type, n, least * 10 + place); \
	} \
	if (out[n * sizeof *b] != 0x5a) \
		bad("behind pairs of " #type, n, least); \
}
EACH_PAIR(PAIRS)
#define COMPLEX(type, mpi) \
static void complex_##mpi(int n, int product) \
{ \
	type _Complex *a = (type _Complex *)in, *b = (type _Complex *)out; \
	memset(out, 0x5a, MOST); \
	for (int i = 0; i < n; i++) \
		a[i] = (type)((rank + i) % 3) + (type)(1 - rank) * 1.0if; \
	MPI_Allreduce(in, out, n, mpi, product ? MPI_PROD : MPI_SUM, MPI_COMM_WORLD); \
	for (int i = 0; i < n; i++) { \
		type _Complex w = (type)product; \
		for (int r = 0; r < size; r++) { \
			type _Complex x = (type)((r + i) % 3) + (type)(1 - r) * 1.0if; \
			w = product ? w * x : w + x; \
		} \
		if (b[i] != w) \
			return bad("complex " #type, n, product); \
	} \
	if (out[n * sizeof *b] != 0x5a) \
		bad("behind complex " #type, n, product); \
}
COMPLEX(float, MPI_C_FLOAT_COMPLEX)
COMPLEX(double, MPI_C_DOUBLE_COMPLEX)
static void bools(int n, MPI_Op op, int what)
{
	_Bool *a = (_Bool *)in, *b = (_Bool *)out;
	for (int i = 0; i < n; i++)
		a[i] = (rank * 3 + i) % (what + 2) != 0;
	MPI_Allreduce(in, out, n, MPI_C_BOOL, op, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		int w = 0;
		for (int r = 0; r < size; r++) {
			int x = (r * 3 + i) % (what + 2) != 0;
			w = r == 0 ? x : what == 0 ? w & x : what == 1 ? w | x : w ^ x;
		}
		if (b[i] != w)
			return bad("bools", n, what);
	}
}
// others are the kinds of elements of which Go begins the reductions: 27 of each length.
static void others(const MPI_Op *logic)
{
	for (int k = 0; k < LENGTHS; k++) {
		for (int how = 0; how < 4; how++) {
#define CALL_PAIRS(type, mpi) pairs_##mpi(lengths[k], how % 2, how / 2);
			EACH_PAIR(CALL_PAIRS)
		}
		for (int how = 0; how < 2; how++)
			complex_MPI_C_FLOAT_COMPLEX(lengths[k], how), complex_MPI_C_DOUBLE_COMPLEX(lengths[k], how);
		for (int op = 0; op < 3; op++)
			bools(lengths[k], logic[op], op);
	}
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
	if (argc > 2)
		others(logic + 3);
	for (int t = 0; t < 2 && argc == 2; t++) // C knows the memory the second time
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
			for (int root = -1; root < size; root++)
				for (int place = 0; place < 2; place++) {
					gathers(lengths[k] * 2, root, place);
					if (root >= 0)
						reduce(lengths[k], root, place);
				}
		}
	barriers(argv[1]);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s\n", wrong ? "wrong" : "no errors");
	MPI_Finalize();
	return wrong != 0;
}
`

// TestNativeCollectives: what a site's MPI and the shim do of collective operations is right in 2,
// 3 and 4 procs, for each datatype and operation that they do, and they do it.
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
				out := collectivesIn(t, k, procs, program, site)
				for _, phase := range []string{"barrier", "allreduce", "bcast", "alltoall", "reduce", "gather", "allgather"} {
					if n := strings.Count(out, "impi_native: "+phase+"\n"); n < 50*procs {
						t.Errorf("%s was done only %d times by %d procs", phase, n, procs)
					}
				}
			})
			t.Run(fmt.Sprintf("%s %d other elements", name, procs), func(t *testing.T) {
				const each = 27 * 13 // operations
				if n := strings.Count(collectivesIn(t, k, procs, program, site, "others"), "impi_native: allreduce\n"); n < each*procs {
					t.Errorf("allreduce was done only %d times by %d procs", n, procs)
				}
			})
		}
	}
}

// collectivesIn runs the program in some procs of a site, and gives what is said.
func collectivesIn(t *testing.T, k *ctest.Kit, procs int, program, site string, args ...string) (out string) {
	t.Helper()
	counter := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(counter, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	out, status := inProcs(t, k, procs, program, append([]string{counter}, args...), site+always)
	if status != 0 || !strings.Contains(out, "no errors") {
		t.Fatalf("status %d:\n%.3000s", status, out)
	}
	return out
}
