/* Long messages between procs of two sites, from and to memory of MPI_Alloc_mem and other memory:
   a link by data plane "rdma" has the former read straight into the latter. Regions are freed and
   allocated anew, at the same addresses as far as the system gives them. */
#include "test.h"
#include <stdlib.h>

#ifndef ROUNDS
#define ROUNDS 6
#endif
enum { LONGEST = 3000000, BESIDE = 64 };

static unsigned char byte(int k, int i) { return (unsigned char)(k * 31 + i * 7 + i / 251); }

/* pass sends n bytes behind the first ones of from, and back again into to. What is beside must not
   change. */
static void pass(unsigned char *from, unsigned char *to, int n, int k) {
  int i, other = 1 - rank;
  for (i = 0; i < n; i++) from[BESIDE + i] = byte(k + rank, i);
  memset(to, 0x77, (size_t)n + 2 * BESIDE);
  CALL(MPI_Sendrecv(from + BESIDE, n, MPI_BYTE, other, k, to + BESIDE, n, MPI_BYTE, other, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (i = 0; i < n && to[BESIDE + i] == byte(k + other, i); i++) continue;
  CHECK(i == n);
  for (i = 0; i < BESIDE; i++) CHECK(to[i] == 0x77 && to[BESIDE + n + i] == 0x77);
}

int main(int argc, char **argv) {
  static const int sizes[] = {1, 1000, 40000, 300000, LONGEST};
  unsigned char *heap[2], *lent[2];
  int k, i, s;
  begin(&argc, &argv);
  CHECK(size == 2);
  for (i = 0; i < 2; i++) heap[i] = malloc(LONGEST + 2 * BESIDE);
  for (k = 0; k < ROUNDS; k++) {
    for (i = 0; i < 2; i++) {
      CALL(MPI_Alloc_mem(LONGEST + 2 * BESIDE, MPI_INFO_NULL, &lent[i]));
      CHECK(lent[i][LONGEST] == 0);
    }
    for (s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
      pass(lent[0], lent[1], sizes[s], 4 * k);
      pass(lent[1], heap[0], sizes[s], 4 * k + 1);
      pass(heap[0], lent[0], sizes[s], 4 * k + 2);
      pass(heap[1], heap[0], sizes[s], 4 * k + 3);
    }
    for (i = 0; i < 2; i++) CALL(MPI_Free_mem(lent[i]));
  }
  return end("lent");
}
