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

/* More operations than there is room for are under way, and go on while a member waits in each of
   the blocking calls: for a message that the others send only after them, or for an operation on
   another communicator. */
static void behind_others(MPI_Comm other) {
  enum { MANY = 20 };
  int x[MANY], y[MANY], i, how, flag, all = size * (size - 1) / 2, done, in;
  MPI_Request r[2 * MANY];
  for (how = 0; size > 1 && how < 6; how++) {
    for (i = 0; i < MANY; i++) {
      x[i] = rank + i;
      CALL(MPI_Iallreduce(&x[i], &y[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[2 * i]));
      CALL(MPI_Ibarrier(MPI_COMM_WORLD, &r[2 * i + 1]));
    }
    if (rank == 0 && how == 0)
      CALL(MPI_Recv(&in, 1, MPI_INT, size - 1, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 0 && how == 1)
      CALL(MPI_Probe(size - 1, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 0 && how == 2)
      CALL(MPI_Barrier(other));
    if (rank == 0 && how == 3)
      CALL(MPI_Bcast(&in, 1, MPI_INT, size - 1, other));
    for (i = 0, flag = 0; how == 4 && !flag; i = (i + 7) % (2 * MANY))
      CALL(MPI_Request_get_status(r[i], &flag, MPI_STATUS_IGNORE));
    for (done = 0; how == 5 && done < 2 * MANY; done += flag && i != MPI_UNDEFINED)
      CALL(MPI_Testany(2 * MANY, r, &i, &flag, MPI_STATUS_IGNORE));
    CALL(MPI_Waitall(2 * MANY, r, MPI_STATUSES_IGNORE));
    for (i = 0; i < MANY; i++) CHECK(y[i] == all + size * i);
    if (rank == size - 1 && how <= 1)
      CALL(MPI_Send(&rank, 1, MPI_INT, 0, 11, MPI_COMM_WORLD));
    if (rank == 0 && how == 1)
      CALL(MPI_Recv(&in, 1, MPI_INT, size - 1, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank != 0 && how == 2)
      CALL(MPI_Barrier(other));
    in = rank;
    if (rank != 0 && how == 3)
      CALL(MPI_Bcast(&in, 1, MPI_INT, size - 1, other));
  }
}

/* Blocking operations on the same communicator follow those that were started. */
static void one_after_the_other(void) {
  int i, x, y, z, root;
  MPI_Request r, s;
  for (i = 0; i < 200; i++) {
    root = i % size;
    x = rank + i;
    z = rank == root ? i : -1;
    CALL(MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r));
    CALL(MPI_Ibcast(&z, 1, MPI_INT, root, MPI_COMM_WORLD, &s));
    if (i % 3 == 0)
      CALL(MPI_Barrier(MPI_COMM_WORLD));
    CALL(MPI_Wait(&s, MPI_STATUS_IGNORE));
    CHECK(z == i);
    CALL(MPI_Allreduce(&x, &z, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK(z == size - 1 + i);
    CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(y == size * (size - 1) / 2 + size * i);
  }
}

int main(int argc, char **argv) {
  MPI_Comm other;
  begin(&argc, &argv);
  all_at_once();
  beside_messages();
  CALL(MPI_Barrier(MPI_COMM_WORLD)); /* from here on they may use memory that the members share */
  all_at_once();
  beside_messages();
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  CALL(MPI_Barrier(other));
  behind_others(other);
  one_after_the_other();
  CALL(MPI_Comm_free(&other));
  beside_messages();
  neighbours();
  matched();
  return end("nonblocking");
}
