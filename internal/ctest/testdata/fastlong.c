/* Fast-box messages that are written in pieces, received from any source, and a receiver that takes
   nothing for a while. At least three procs of one host. */
#include "test.h"

enum { ROUNDS = 3000, LONGEST = 60000, UNREAD = 150 };

static char in[LONGEST + 64], out[LONGEST];
static unsigned state = 1;

static unsigned draw(unsigned n) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % n;
}

/* length is that of message k of a rank: long ones of odd ranks, short ones of the others. */
static int length(int r, int k) { return r % 2 == 1 ? 16500 + (k * 977 + r) % (LONGEST - 16500) : 1 + (k * 31 + r) % 90; }

/* untouched wants what is behind a message to be as it was: the memory of a receive from any source
   is not written with a message that comes too slowly, and then with another one. */
static void untouched(int n) {
  int i;
  for (i = n; i < (int)sizeof in && in[i] == 0x55; i++) continue;
  CHECK(i == sizeof in);
}

/* anybody has rank 0 receive what the others send, in whatever order it comes. */
static void anybody(void) {
  int k, r, n, next[64] = {0};
  if (rank > 0) {
    for (k = 0; k < ROUNDS; k++) {
      n = length(rank, k);
      fill(out, n, rank * 7 + k);
      CALL(MPI_Send(out, n, MPI_BYTE, 0, 5, MPI_COMM_WORLD));
      if (k % 2 == 1) CALL(MPI_Barrier(MPI_COMM_WORLD));
    }
    return;
  }
  for (k = 0; k < ROUNDS * (size - 1); k++) {
    MPI_Status s;
    MPI_Request q;
    memset(in, 0x55, sizeof in);
    if (draw(3) == 0) {
      CALL(MPI_Irecv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &q));
      CALL(MPI_Wait(&q, &s));
    } else {
      CALL(MPI_Recv(in, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &s));
    }
    r = s.MPI_SOURCE;
    CALL(MPI_Get_count(&s, MPI_BYTE, &n));
    CHECK(n == length(r, next[r]) && filled(in, n, r * 7 + next[r]));
    untouched(n);
    next[r]++;
    if (k % (2 * (size - 1)) == 2 * (size - 1) - 1) CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
}

/* unread has the last rank take nothing until rank 0 has sent more than there is room for. */
static void unread(int n) {
  MPI_Win w;
  volatile int *go;
  MPI_Aint bytes;
  int unit, k, last = size - 1;
  CALL(MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&go, &w));
  CALL(MPI_Win_shared_query(w, 0, &bytes, &unit, (void *)&go));
  if (rank == 0) *go = 0;
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    MPI_Request q[UNREAD];
    char *all = malloc((size_t)n * UNREAD);
    for (k = 0; k < UNREAD; k++) {
      fill(all + (size_t)n * k, n, k);
      CALL(MPI_Isend(all + (size_t)n * k, n, MPI_BYTE, last, 6, MPI_COMM_WORLD, &q[k]));
    }
    __sync_synchronize();
    *go = 1;
    CALL(MPI_Waitall(UNREAD, q, MPI_STATUSES_IGNORE));
    free(all);
  } else if (rank == last) {
    while (*go == 0) continue;
    for (k = 0; k < UNREAD; k++) {
      CALL(MPI_Recv(in, LONGEST, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(filled(in, n, k));
    }
  }
  CALL(MPI_Win_free(&w));
}

int main(int argc, char **argv) {
  int i;
  begin(&argc, &argv);
  anybody();
  for (i = 0; i < 3; i++) {
    unread(8);
    unread(3000);
    unread(50000);
  }
  return end("fastlong");
}
