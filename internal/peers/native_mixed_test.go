package peers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// inBoth is a program in which members do collective operations in C, or in Go where their memory
// is not known yet, or go on in Go with what they have begun in C, as another one is late. Other
// operations, whose messages are numbered, and messages of the program come in between.
const inBoth = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
enum { TURNS = 900, MOST = 40000 };
static const int lengths[] = {1, 1, 2, 30, 1, 700, 3000, 1, MOST};
static long known[3][4 * MOST];
static long *memory(int i, int fresh)
{
	static long *last[3];
	if (last[i])
		munmap(last[i], sizeof known[0]), last[i] = NULL;
	if (!fresh)
		return known[i];
	return last[i] = mmap(NULL, sizeof known[0], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
int main(int argc, char **argv)
{
	int rank, size, wrong = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm comms[2] = {MPI_COMM_WORLD};
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Comm comm = comms[turn / 50 % 2];
		int me, fresh = (turn * 7 + rank * 3) % 11 == 0, n = lengths[turn / 7 % 9], late = turn % 37 == 0 && rank == turn % size;
		MPI_Comm_rank(comm, &me);
		long *a = memory(0, fresh), *b = memory(1, fresh);
		if (late)
			usleep(3000);
		for (int i = 0; i < n * size; i++)
			a[i] = turn + me * 1000 + i, b[i] = -1;
		switch (turn % 7) {
		case 0:
			MPI_Barrier(comm);
			break;
		case 1:
			if (turn % 2)
				memcpy(b, a, n * sizeof *a);
			MPI_Allreduce(turn % 2 ? MPI_IN_PLACE : a, b, n, MPI_LONG, MPI_SUM, comm);
			for (int i = 0; i < n; i++)
				wrong |= b[i] != (long)size * (turn + i) + 1000 * size * (size - 1) / 2;
			break;
		case 2:
			MPI_Bcast(a, n, MPI_LONG, turn % size, comm);
			for (int i = 0; i < n; i++)
				wrong |= a[i] != turn + turn % size * 1000 + i;
			break;
		case 3:
			if (turn % 2)
				memcpy(b, a, n * size * sizeof *a);
			MPI_Alltoall(turn % 2 ? MPI_IN_PLACE : a, n, MPI_LONG, b, n, MPI_LONG, comm);
			for (int i = 0; i < n * size; i++)
				wrong |= b[i] != turn + i / n * 1000 + me * n + i % n;
			break;
		case 4: // its messages are numbered
			MPI_Scan(a, b, n, MPI_LONG, MPI_MAX, comm);
			wrong |= b[0] != a[0];
			break;
		case 5: {
			MPI_Request q;
			MPI_Iallreduce(a, b, n, MPI_LONG, MPI_MAX, comm, &q);
			MPI_Wait(&q, MPI_STATUS_IGNORE);
			wrong |= b[n - 1] != turn + (size - 1) * 1000 + n - 1;
			break;
		}
		default: // a long message that its receiver takes only after the next operation
			MPI_Request q[2];
			long *c = memory(2, 0);
			MPI_Isend(a, n, MPI_LONG, (me + 1) % size, 3, comm, &q[0]);
			MPI_Barrier(comm);
			MPI_Irecv(c, n, MPI_LONG, (me + size - 1) % size, 3, comm, &q[1]);
			MPI_Allreduce(&me, &n, 1, MPI_INT, MPI_MIN, comm);
			MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
			wrong |= c[0] != turn + (me + size - 1) % size * 1000 || n != 0;
		}
		if (wrong) {
			printf("rank %d: turn %d is wrong\n", rank, turn);
			fflush(stdout);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	MPI_Comm_free(&comms[1]);
	if (rank == 0)
		printf("no errors\n");
	MPI_Finalize();
	return 0;
}
`

// TestNativeMixed: members that do collective operations by the site's MPI in C and in Go are in
// the same ones.
func TestNativeMixed(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "mixed.c"), filepath.Join(dir, "mixed")
	if err := os.WriteFile(source, []byte(inBoth), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, k.Command("impicc"), "-o", program, source); err != nil {
		t.Fatal(err)
	}
	for name, site := range map[string]string{"openmpi": openMPISite, "mpich": mpichSite} {
		for procs, how := range map[int]string{2: "two", 3: "three"} { // MPI_Allreduce goes another way with three
			t.Run(name+" "+how, func(t *testing.T) {
				job := filepath.Join(t.TempDir(), "job.hcl")
				if err := os.WriteFile(job, []byte(suiteRun{procs: procs}.job(program, site+always)), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := ctest.Run(t.Context(), dir, nil, k.Command("impi-node"), "-config", job)
				if err != nil || !strings.Contains(out, "no errors") {
					t.Fatalf("%v:\n%s", err, out)
				}
			})
		}
	}
}
