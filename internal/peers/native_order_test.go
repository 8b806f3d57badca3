package peers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// ordered is a program in which all ranks send to all others, themselves too, messages of one tag
// whose sizes are those at which another way is taken, and receive them by all kinds of calls. Each
// message says which one it is. A rank goes on sending to others while one takes nothing, or ranks
// that wait for a certain one could wait for each other.
const ordered = `#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { TURNS = 240, MOST = 3 << 20, AT_A_TIME = 3, RANKS = 8 };
static const int sizes[] = {8, 8, 8, 12, 96, 97, 1000, 4000, 4001, 8, 16384, 8, 20001, 8, 1 << 20, MOST, 16, 8};
enum { SIZES = sizeof sizes / sizeof *sizes };
static char *out[RANKS][AT_A_TIME], *in;
static MPI_Request sends[RANKS][AT_A_TIME];
static int rank, size, next[RANKS], turns[RANKS], wrong;
static int length(int from, int to, int turn) { return sizes[(turn * 5 + turn / SIZES * 3 + from * 7 + to) % SIZES]; }
static void fill(char *m, int to, int turn)
{
	int n = length(rank, to, turn);
	memset(m, turn + rank, n);
	memcpy(m, &turn, sizeof turn);
	memcpy(m + 4, &rank, sizeof rank);
}
static void look(MPI_Status *st)
{
	int from = st->MPI_SOURCE, turn, of, n;
	MPI_Get_count(st, MPI_BYTE, &n);
	memcpy(&turn, in, sizeof turn);
	memcpy(&of, in + 4, sizeof of);
	if (of != from || turn != next[from] || n != length(from, rank, turn) || (n > 8 && (in[n - 1] != (char)(turn + from) || in[8] != (char)(turn + from)))) {
		if (!wrong++)
			printf("rank %d: message %d of %d with %d bytes, wanted %d of %d\n", rank, turn, of, n, next[from], from);
	}
	next[from]++;
}
// receiver is the first rank from to on that gets more, and to which something may be sent now; -1:
// none.
static int receiver(int to)
{
	for (int i = 0; i < size; i++, to = (to + 1) % size) {
		int done = 0;
		if (turns[to] < TURNS)
			MPI_Test(&sends[to][turns[to] % AT_A_TIME], &done, MPI_STATUS_IGNORE);
		if (done)
			return to;
	}
	return -1;
}
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Request q;
	MPI_Status st;
	for (int i = 0; i < RANKS * AT_A_TIME; i++) {
		out[i / AT_A_TIME][i % AT_A_TIME] = malloc(MOST);
		sends[i / AT_A_TIME][i % AT_A_TIME] = MPI_REQUEST_NULL;
	}
	in = malloc(MOST);
	int sent = 0, got = 0, all = TURNS * size;
	int begun = 0; // q receives
	while (sent < all || got < all) {
		for (int k = 0; k < 1 + sent % 4 && sent < all; k++, sent++) { // in bursts
			int to = receiver((sent + rank) % size);
			if (to < 0)
				break;
			int i = turns[to] % AT_A_TIME, n = length(rank, to, turns[to]);
			fill(out[to][i], to, turns[to]++);
			if (n <= 4000 && to != rank && sent % 3 == 0)
				MPI_Send(out[to][i], n, MPI_BYTE, to, 5, MPI_COMM_WORLD);
			else if (sent % 11 == 0)
				MPI_Issend(out[to][i], n, MPI_BYTE, to, 5, MPI_COMM_WORLD, &sends[to][i]);
			else
				MPI_Isend(out[to][i], n, MPI_BYTE, to, 5, MPI_COMM_WORLD, &sends[to][i]);
		}
		int there = 0, from = got * 3 % size, last = sent == all; // only then it may block
		if (got == all)
			continue;
		for (; next[from] == TURNS; from = (from + 1) % size)
			;
		if (begun) {
			if (last)
				MPI_Wait(&q, &st), there = 1;
			else
				MPI_Test(&q, &there, &st);
			begun = !there;
		} else if (got % 5 == 0 && last) {
			MPI_Recv(in, MOST, MPI_BYTE, got % 2 ? from : MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &st);
			there = 1;
		} else if (got % 5 < 2) {
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &st);
			if (there)
				MPI_Recv(in, MOST, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, &st);
		} else {
			MPI_Irecv(in, MOST, MPI_BYTE, got % 5 == 2 ? from : MPI_ANY_SOURCE, got % 5 == 3 ? MPI_ANY_TAG : 5, MPI_COMM_WORLD, &q);
			begun = 1;
		}
		if (there) {
			look(&st);
			got++;
		}
	}
	MPI_Waitall(RANKS * AT_A_TIME, sends[0], MPI_STATUSES_IGNORE);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s\n", wrong ? "wrong" : "no errors");
	MPI_Finalize();
	return wrong != 0;
}
`

// TestNativeOrder: the messages of each sender come in the order in which it has sent them,
// whichever of them go by messages of their own to the site's MPI, by the stream of a link or
// straight into the receiver's memory; and short ones are messages of their own.
func TestNativeOrder(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "ordered.c"), filepath.Join(dir, "ordered")
	if err := os.WriteFile(source, []byte(ordered), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, k.Command("impicc"), "-o", program, source); err != nil {
		t.Fatal(err)
	}
	for name, site := range tracedSites(t, dir) {
		for how, sites := range map[string][]string{"alone": {site + always}, "with another": {site + always, ownSite}} {
			t.Run(name+" "+how, func(t *testing.T) {
				job := filepath.Join(t.TempDir(), "job.hcl")
				if err := os.WriteFile(job, []byte(suiteRun{procs: 2 * len(sites)}.job(program, sites...)), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := ctest.Run(t.Context(), dir, nil, k.Command("impi-node"), "-config", job)
				if err != nil || !strings.Contains(out, "no errors") {
					t.Fatalf("%v:\n%s", err, out)
				}
				if n := strings.Count(out, "impi_native: short_send\n"); n < 100 {
					t.Errorf("only %d short messages were messages of their own", n)
				}
				if n := strings.Count(out, "impi_native: long_send\n"); n < 10 {
					t.Errorf("only %d long messages were messages of their own", n)
				}
			})
		}
	}
}
