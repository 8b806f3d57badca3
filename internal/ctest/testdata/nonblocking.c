/* Nonblocking collective operations, several under way at a time, and those
   among neighbours. */
#include "test.h"

enum { N = 300 };

static void all_at_once(void) {
  static int x[16][N * 64], y[16][N * 64];
  MPI_Request r[16];
  int i, k = 0, root = size - 1, counts[64], displs[64];
  for (i = 0; i < 16; i++) for (k = 0; k < N * size; k++) x[i][k] = rank + k;
  for (i = 0; i < size; i++) {
    counts[i] = N;
    displs[i] = i * N;
  }
  memcpy(y[0], x[0], sizeof y[0]);
  k = 0;
  CALL(MPI_Ibarrier(MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Ibcast(y[0], N, MPI_INT, root, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Iallreduce(x[1], y[1], N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Ireduce(x[2], y[2], N, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Igather(x[3], N, MPI_INT, y[3], N, MPI_INT, root, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Iscatter(x[4], N, MPI_INT, y[4], N, MPI_INT, root, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Iallgather(x[5], N, MPI_INT, y[5], N, MPI_INT, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Ialltoall(x[6], N, MPI_INT, y[6], N, MPI_INT, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Iscan(x[7], y[7], N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Iexscan(x[8], y[8], N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Ireduce_scatter_block(x[9], y[9], N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Ireduce_scatter(x[10], y[10], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Igatherv(x[11], N, MPI_INT, y[11], counts, displs, MPI_INT, root, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Iscatterv(x[12], counts, displs, MPI_INT, y[12], N, MPI_INT, root, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Iallgatherv(x[13], N, MPI_INT, y[13], counts, displs, MPI_INT, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Ialltoallv(x[14], counts, displs, MPI_INT, y[14], counts, displs, MPI_INT, MPI_COMM_WORLD, &r[k++]));
  CALL(MPI_Waitall(k, r, MPI_STATUSES_IGNORE));
  for (i = 0; i < N; i++) {
    int ranks = size * (size - 1) / 2;
    int mine = rank * N + i;
    CHECK(y[0][i] == root + i);
    CHECK(y[1][i] == ranks + size * i);
    CHECK(rank != root || y[2][i] == root + i);
    CHECK(rank != root || y[3][(size - 1) * N + i] == size - 1 + i);
    CHECK(y[4][i] == root + mine);
    CHECK(y[5][(size - 1) * N + i] == size - 1 + i);
    CHECK(y[6][(size - 1) * N + i] == size - 1 + mine);
    CHECK(y[7][i] == rank * (rank + 1) / 2 + (rank + 1) * i);
    CHECK(rank == 0 || y[8][i] == rank * (rank - 1) / 2 + rank * i);
    CHECK(y[9][i] == ranks + size * mine);
    CHECK(y[10][i] == ranks + size * mine);
    CHECK(rank != root || y[11][i] == i);
    CHECK(y[12][i] == root + mine);
    CHECK(y[13][i] == i);
    CHECK(y[14][i] == mine);
    if (wrong > 20) return;
  }
}

/* Collective operations end while messages are exchanged and tests are made. */
static void beside_messages(void) {
  MPI_Request r;
  int flag = 0, x = rank, y = -1, in, rounds = 0;
  CALL(MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r));
  CALL(MPI_Sendrecv(&x, 1, MPI_INT, (rank + 1) % size, 4, &in, 1, MPI_INT, (rank + size - 1) % size, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(in == (rank + size - 1) % size);
  while (!flag) {
    CALL(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
    rounds++;
  }
  CHECK(y == size * (size - 1) / 2 && rounds > 0);
}

static void neighbours(void) {
  MPI_Comm ring;
  MPI_Request r;
  int dims = 0, periods = 1, x[2] = {rank * 2, rank * 2 + 1}, y[2], left, right, counts[2] = {1, 1}, displs[2] = {0, 1};
  CALL(MPI_Dims_create(size, 1, &dims));
  CALL(MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 0, &ring));
  CALL(MPI_Cart_shift(ring, 0, 1, &left, &right));
  CALL(MPI_Neighbor_allgather(x, 1, MPI_INT, y, 1, MPI_INT, ring));
  CHECK(y[0] == left * 2 && y[1] == right * 2);
  CALL(MPI_Neighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring));
  CHECK(y[0] == left * 2 + 1 && y[1] == right * 2);
  CALL(MPI_Ineighbor_alltoall(x, 1, MPI_INT, y, 1, MPI_INT, ring, &r));
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CHECK(y[0] == left * 2 + 1 && y[1] == right * 2);
  CALL(MPI_Neighbor_alltoallv(x, counts, displs, MPI_INT, y, counts, displs, MPI_INT, ring));
  CHECK(y[0] == left * 2 + 1 && y[1] == right * 2);
  CALL(MPI_Neighbor_allgatherv(x, 1, MPI_INT, y, counts, displs, MPI_INT, ring));
  CHECK(y[0] == left * 2 && y[1] == right * 2);
  CALL(MPI_Comm_free(&ring));
}

static void matched(void) {
  int x = rank, y = -1, flag = 0, n;
  MPI_Message m;
  MPI_Status s;
  MPI_Request r, out;
  CALL(MPI_Isend(&x, 1, MPI_INT, (rank + 1) % size, 8, MPI_COMM_WORLD, &out));
  CALL(MPI_Mprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &m, &s));
  CALL(MPI_Get_count(&s, MPI_INT, &n));
  CHECK(n == 1 && m != MPI_MESSAGE_NULL);
  CALL(MPI_Mrecv(&y, 1, MPI_INT, &m, &s));
  CHECK(y == (rank + size - 1) % size && m == MPI_MESSAGE_NULL);
  CALL(MPI_Wait(&out, MPI_STATUS_IGNORE));
  CALL(MPI_Isend(&x, 1, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD, &out));
  while (!flag) CALL(MPI_Improbe((rank + size - 1) % size, 9, MPI_COMM_WORLD, &flag, &m, &s));
  y = -1;
  CALL(MPI_Imrecv(&y, 1, MPI_INT, &m, &r));
  CALL(MPI_Wait(&r, &s));
  CHECK(y == (rank + size - 1) % size);
  CALL(MPI_Wait(&out, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  all_at_once();
  beside_messages();
  neighbours();
  matched();
  return end("nonblocking");
}
