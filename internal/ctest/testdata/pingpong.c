/* Messages of all lengths between neighbours in pairs. */
#include "test.h"

static void exchange(int peer, int n) {
  char *mine = malloc(n + 1), *theirs = malloc(n + 1);
  MPI_Status s;
  int got;
  fill(mine, n, rank);
  memset(theirs, 0, n + 1);
  if (rank < peer) {
    CALL(MPI_Send(mine, n, MPI_BYTE, peer, n % 1000, MPI_COMM_WORLD));
    CALL(MPI_Recv(theirs, n, MPI_BYTE, peer, n % 1000, MPI_COMM_WORLD, &s));
  } else {
    CALL(MPI_Recv(theirs, n, MPI_BYTE, peer, n % 1000, MPI_COMM_WORLD, &s));
    CALL(MPI_Send(mine, n, MPI_BYTE, peer, n % 1000, MPI_COMM_WORLD));
  }
  CHECK(filled(theirs, n, peer));
  CHECK(theirs[n] == 0);
  CHECK(s.MPI_SOURCE == peer);
  CHECK(s.MPI_TAG == n % 1000);
  CALL(MPI_Get_count(&s, MPI_BYTE, &got));
  CHECK(got == n);
  CALL(MPI_Sendrecv(mine, n, MPI_BYTE, peer, 1, theirs, n, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(filled(theirs, n, peer));
  CALL(MPI_Sendrecv_replace(mine, n, MPI_BYTE, peer, 2, peer, 2, MPI_COMM_WORLD, &s));
  CHECK(filled(mine, n, peer));
  free(mine);
  free(theirs);
}

int main(int argc, char **argv) {
  static const int lengths[] = {0, 1, 7, 8, 63, 64, 1000, 4096, 65535, 65536, 262143, 262144, 262145, 1 << 20, (1 << 22) + 3};
  size_t i;
  int stride;
  begin(&argc, &argv);
  for (stride = 1; stride < size; stride *= 2) {
    int peer = rank ^ stride;
    if (peer < size)
      for (i = 0; i < sizeof lengths / sizeof *lengths; i++) exchange(peer, lengths[i]);
    CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
  return end("pingpong");
}
