package peers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
)

// longs is a program that sends and receives messages of more than what fits into one short message
// of the site's MPI, in all ways in which C or Go begins or ends them: each way often enough that C
// knows the memory, with one side late now and then, so that the other one waits in Go.
const longs = `#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { MOST = 300000, AT_A_TIME = 12, WAYS = 12 };
static const int sizes[] = {8001, 16384, 20000, 20001, 60000, 300000, 8};
static int rank, size, peer, wrong, far;
static char out[AT_A_TIME][MOST], in[AT_A_TIME][MOST];
static MPI_Request q[2 * AT_A_TIME];
static MPI_Status st[2 * AT_A_TIME];
static void fill(char *m, int n, int what) { memset(m, what, n), memcpy(m, &what, sizeof what); }
static void check(const char *m, int n, int what, const MPI_Status *s, int from)
{
	int is, got;
	memcpy(&is, m, sizeof is);
	MPI_Get_count(s, MPI_BYTE, &got);
	if (is != what || got != n || s->MPI_SOURCE != from || (n > 8 && (m[4] != (char)what || m[n - 1] != (char)what)))
		if (!wrong++)
			printf("rank %d: %d bytes of %d say %d, wanted %d bytes of %d and %d\n", rank, got, s->MPI_SOURCE, is, n, from, what);
}
static void turn(int t)
{
	int n = sizes[t % 7], first = rank < peer, mine = t * 100 + rank, theirs = t * 100 + peer, some, flag = 0;
	MPI_Datatype pairs;
	if (t % 17 == rank % 17)
		usleep(2000);
	for (int i = 0; i < AT_A_TIME; i++)
		fill(out[i], n, mine + i * 10);
	switch (t / 7 % WAYS) {
	case 0: // blocking, in turns
		if (first)
			MPI_Send(out[0], n, MPI_BYTE, peer, t, MPI_COMM_WORLD);
		MPI_Recv(in[0], MOST, MPI_BYTE, peer, t, MPI_COMM_WORLD, st);
		if (!first)
			MPI_Send(out[0], n, MPI_BYTE, peer, t, MPI_COMM_WORLD);
		check(in[0], n, theirs, st, peer);
		break;
	case 1: // many at a time, of several lengths
		for (int i = 0; i < AT_A_TIME; i++)
			MPI_Irecv(in[i], MOST, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &q[i]);
		for (int i = 0; i < AT_A_TIME; i++)
			MPI_Isend(out[i], sizes[(t + i) % 7], MPI_BYTE, peer, 3, MPI_COMM_WORLD, &q[AT_A_TIME + i]);
		MPI_Waitall(2 * AT_A_TIME, q, st);
		for (int i = 0; i < AT_A_TIME; i++) {
			int is;
			memcpy(&is, in[i], sizeof is);
			MPI_Get_count(&st[i], MPI_BYTE, &some);
			if ((is != theirs + i * 10 || some != sizes[(t + i) % 7]) && !wrong++)
				printf("rank %d: message %d has %d bytes and says %d, wanted %d\n", rank, i, some, is, theirs + i * 10);
		}
		break;
	case 2:
		MPI_Sendrecv(out[0], n, MPI_BYTE, peer, 4, in[0], MOST, MPI_BYTE, peer, 4, MPI_COMM_WORLD, st);
		check(in[0], n, theirs, st, peer);
		break;
	case 3: // both send first, which works as long as there is memory for what comes
		n = n < 60000 ? n : 60000;
		MPI_Send(out[0], n, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
		MPI_Recv(in[0], MOST, MPI_BYTE, peer, 5, MPI_COMM_WORLD, st);
		check(in[0], n, theirs, st, peer);
		break;
	case 4: // from anybody
		MPI_Irecv(in[0], MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, q);
		MPI_Send(out[0], n, MPI_BYTE, peer, 6, MPI_COMM_WORLD);
		MPI_Wait(q, st);
		check(in[0], n, theirs, st, peer);
		break;
	case 5: // probed, and the second one first
		MPI_Isend(out[0], n, MPI_BYTE, peer, 7, MPI_COMM_WORLD, q);
		MPI_Isend(out[1], n, MPI_BYTE, peer, 8, MPI_COMM_WORLD, q + 1);
		MPI_Probe(peer, 8, MPI_COMM_WORLD, st);
		MPI_Get_count(st, MPI_BYTE, &some);
		wrong += some != n;
		MPI_Recv(in[1], some, MPI_BYTE, st->MPI_SOURCE, st->MPI_TAG, MPI_COMM_WORLD, st);
		check(in[1], n, theirs + 10, st, peer);
		MPI_Recv(in[0], n, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, st);
		check(in[0], n, theirs, st, peer);
		MPI_Waitall(2, q, st);
		break;
	case 6: // tested; and a receive that is cancelled, as nothing comes for it
		MPI_Irecv(in[1], MOST, MPI_BYTE, peer, 99, MPI_COMM_WORLD, q + 1);
		MPI_Irecv(in[0], MOST, MPI_BYTE, peer, 9, MPI_COMM_WORLD, q);
		MPI_Isend(out[0], n, MPI_BYTE, peer, 9, MPI_COMM_WORLD, q + 2);
		while (!flag)
			MPI_Test(q, &flag, st);
		check(in[0], n, theirs, st, peer);
		MPI_Cancel(q + 1);
		MPI_Wait(q + 1, st);
		MPI_Test_cancelled(st, &flag);
		wrong += !flag;
		for (flag = 0; !flag;)
			MPI_Test(q + 2, &flag, st);
		break;
	case 7: // a send whose request is freed, and one that is not cancelled any more
		MPI_Isend(out[0], n, MPI_BYTE, peer, 10, MPI_COMM_WORLD, q);
		MPI_Request_free(q);
		MPI_Recv(in[0], MOST, MPI_BYTE, peer, 10, MPI_COMM_WORLD, st);
		check(in[0], n, theirs, st, peer);
		MPI_Barrier(MPI_COMM_WORLD); // so that the data have left
		break;
	case 8: // scattered in memory
		MPI_Type_vector(n / 8, 4, 8, MPI_BYTE, &pairs);
		MPI_Type_commit(&pairs);
		MPI_Isend(out[0], n / 8 * 4, MPI_BYTE, peer, 11, MPI_COMM_WORLD, q);
		MPI_Recv(in[0], 1, pairs, peer, 11, MPI_COMM_WORLD, st);
		MPI_Wait(q, MPI_STATUS_IGNORE);
		MPI_Get_count(st, MPI_BYTE, &some);
		wrong += some != n / 8 * 4 || memcmp(in[0], &theirs, 4) || (n > 8 && in[0][8] != (char)theirs);
		MPI_Type_free(&pairs);
		break;
	case 9: // too long for its receive
		MPI_Isend(out[0], n, MPI_BYTE, peer, 12, MPI_COMM_WORLD, q);
		some = MPI_Recv(in[0], n - 1, MPI_BYTE, peer, 12, MPI_COMM_WORLD, st);
		MPI_Error_class(some, &some);
		wrong += some != MPI_ERR_TRUNCATE || in[0][4] != (char)theirs;
		MPI_Wait(q, MPI_STATUS_IGNORE);
		break;
	case 10: // to and from another pair, at another site if there is one
		MPI_Irecv(in[0], MOST, MPI_BYTE, MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, q);
		MPI_Irecv(in[1], MOST, MPI_BYTE, MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, q + 1);
		MPI_Isend(out[0], n, MPI_BYTE, peer, 13, MPI_COMM_WORLD, q + 2);
		MPI_Isend(out[1], n, MPI_BYTE, far, 13, MPI_COMM_WORLD, q + 3);
		MPI_Waitall(4, q, st);
		for (int i = 0; i < 2; i++)
			check(in[i], n, t * 100 + st[i].MPI_SOURCE + (st[i].MPI_SOURCE == peer ? size == 2 && i == 1 ? 10 : 0 : 10), &st[i], st[i].MPI_SOURCE);
		break;
	case 11: // one waits for long
		if (first)
			usleep(3000);
		MPI_Irecv(in[0], MOST, MPI_BYTE, peer, 14, MPI_COMM_WORLD, q);
		MPI_Isend(out[0], n, MPI_BYTE, peer, 14, MPI_COMM_WORLD, q + 1);
		MPI_Wait(q + 1, st + 1);
		MPI_Wait(q, st);
		check(in[0], n, theirs, st, peer);
		break;
	}
	MPI_Barrier(MPI_COMM_WORLD);
}
static MPI_Comm own[2];
static void *thread(void *p) // each with messages of its own
{
	int i = p != NULL;
	static char a[2][MOST], b[2][MOST];
	for (int t = 0; t < 150; t++) {
		int n = sizes[t % 6], what = t * 10 + i;
		MPI_Status s;
		MPI_Request r;
		fill(a[i], n, what);
		if (t % 3 == 0)
			MPI_Sendrecv(a[i], n, MPI_BYTE, peer, 1, b[i], MOST, MPI_BYTE, peer, 1, own[i], &s);
		else {
			MPI_Irecv(b[i], MOST, MPI_BYTE, t % 3 == 1 ? peer : MPI_ANY_SOURCE, 1, own[i], &r);
			MPI_Send(a[i], n, MPI_BYTE, peer, 1, own[i]);
			MPI_Wait(&r, &s);
		}
		check(b[i], n, what, &s, peer);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	int threads;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	peer = rank ^ 1, far = rank ^ (size > 2 ? 2 : 1);
	for (int t = 0; t < 7 * WAYS * 3; t++)
		turn(t);
	pthread_t other;
	MPI_Comm_dup(MPI_COMM_WORLD, &own[0]);
	MPI_Comm_dup(MPI_COMM_WORLD, &own[1]);
	pthread_create(&other, NULL, thread, &own);
	thread(NULL);
	pthread_join(other, NULL);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s\n", wrong ? "wrong" : "no errors");
	MPI_Finalize();
	return wrong != 0;
}
`

// TestNativeLongs: long messages that C hands to the site's MPI are received whole and in their
// order, whoever waits for them and how; and they are messages of their own.
func TestNativeLongs(t *testing.T) {
	needNatives(t)
	needC(t)
	k := &ctest.Kit{Dir: ownCDir}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "longs.c"), filepath.Join(dir, "longs")
	if err := os.WriteFile(source, []byte(longs), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, k.Command("impicc"), "-O1", "-o", program, source, "-lpthread"); err != nil {
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
				if n := strings.Count(out, "impi_native: long_send\n"); n < 200 {
					t.Errorf("only %d long messages were messages of their own", n)
				}
			})
		}
	}
}
