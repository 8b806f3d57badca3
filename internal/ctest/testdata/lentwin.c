/* Long messages between procs of two sites, from and to memory of windows: MPI_Win_allocate of
   procs that share a machine, and of one proc alone. A link by data plane "rdma" has the one read
   straight into the other. */
#include "test.h"
#include <stdlib.h>

#ifndef ROUNDS
#define ROUNDS 3
#endif
enum { LONG = 1000000 };

static unsigned char byte(int k, int i) { return (unsigned char)(k * 31 + i * 7 + i / 251); }

/* pass sends from one window's memory into the other's, to and from the proc with the same place at
   the other site. */
static void pass(unsigned char *from, unsigned char *to, int other, int k) {
  int i;
  for (i = 0; i < LONG; i++) from[i] = byte(k + rank, i);
  CALL(MPI_Sendrecv(from, LONG, MPI_BYTE, other, k, to, LONG, MPI_BYTE, other, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (i = 0; i < LONG && to[i] == byte(k + other, i); i++) continue;
  CHECK(i == LONG);
}

int main(int argc, char **argv) {
  unsigned char *shared, *own, *near;
  MPI_Comm host;
  MPI_Win all, two, both;
  MPI_Aint n;
  int k, other, unit, place;
  begin(&argc, &argv);
  CHECK(size == 4);
  other = (rank + 2) % 4;
  CALL(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &host));
  CALL(MPI_Comm_rank(host, &place));
  for (k = 0; k < ROUNDS; k++) {
    CALL(MPI_Win_allocate(LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &all));
    CALL(MPI_Win_allocate(LONG, 1, MPI_INFO_NULL, MPI_COMM_SELF, &own, &two));
    CALL(MPI_Win_allocate_shared(LONG, 1, MPI_INFO_NULL, host, &near, &both));
    CHECK(shared[LONG - 1] == 0 && own[LONG - 1] == 0 && near[LONG - 1] == 0);
    pass(shared, own, other, 3 * k);
    pass(own, near, other, 3 * k + 1);
    pass(near, shared, other, 3 * k + 2);
    /* The other proc of the machine has what it is put, and sees what this one stores. */
    CALL(MPI_Win_fence(0, all));
    CALL(MPI_Put(own, LONG, MPI_BYTE, rank ^ 1, 0, LONG, MPI_BYTE, all));
    CALL(MPI_Win_fence(0, all));
    CHECK(shared[5] == byte(3 * k + (rank ^ 1) + 1, 5));
    CALL(MPI_Win_fence(0, both));
    near[7] = (unsigned char)(100 + rank);
    CALL(MPI_Win_fence(0, both));
    CALL(MPI_Win_shared_query(both, 1 - place, &n, &unit, &near));
    CHECK(near[7] == 100 + (rank ^ 1));
    CALL(MPI_Win_free(&both));
    CALL(MPI_Win_free(&two));
    CALL(MPI_Win_free(&all));
  }
  CALL(MPI_Comm_free(&host));
  return end("lentwin");
}
