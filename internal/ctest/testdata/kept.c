/* Persistent collective operations whose handles and arrays are gone before they start. */
#include "test.h"

static void add(void *in, void *inout, int *n, MPI_Datatype *t) {
  int i, bytes = 0;
  CALL(MPI_Type_size(*t, &bytes));
  CHECK(bytes == 2 * (int)sizeof(int));
  for (i = 0; i < 2 * *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void reduction(void) {
  MPI_Datatype two;
  MPI_Op op;
  MPI_Request r;
  int out[2], in[2], round;
  CALL(MPI_Type_contiguous(2, MPI_INT, &two));
  CALL(MPI_Type_commit(&two));
  CALL(MPI_Op_create(add, 1, &op));
  CALL(MPI_Allreduce_init(out, in, 1, two, op, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
  CALL(MPI_Type_free(&two));
  CALL(MPI_Op_free(&op));
  for (round = 1; round < 4; round++) {
    out[0] = round, out[1] = rank * round, in[0] = in[1] = -1;
    CALL(MPI_Start(&r));
    CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(in[0] == size * round && in[1] == round * size * (size - 1) / 2);
  }
  CALL(MPI_Request_free(&r));
  CHECK(r == MPI_REQUEST_NULL);
}

/* Rank r gives r + 1 ints to each. */
static void arrays(void) {
  int *counts = malloc(size * sizeof(int)), *displs = malloc(size * sizeof(int)), out[64], in[2100], i, j, n = 0;
  MPI_Request r[2];
  MPI_Datatype *types = malloc(size * sizeof *types);
  int *ones = malloc(size * sizeof(int)), *places = malloc(size * sizeof(int)), to[64], from[64];
  for (i = 0; i < size; i++) counts[i] = i + 1, displs[i] = n, n += i + 1;
  CALL(MPI_Allgatherv_init(out, rank + 1, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
  for (i = 0; i < size; i++) {
    ones[i] = 1, places[i] = i * (int)sizeof(int);
    CALL(MPI_Type_contiguous(1, MPI_INT, &types[i]));
    CALL(MPI_Type_commit(&types[i]));
  }
  CALL(MPI_Alltoallw_init(to, ones, places, types, from, ones, places, types, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
  for (i = 0; i < size; i++) CALL(MPI_Type_free(&types[i]));
  memset(counts, 0xff, size * sizeof(int));
  memset(displs, 0xff, size * sizeof(int));
  memset(ones, 0xff, size * sizeof(int));
  memset(places, 0xff, size * sizeof(int));
  memset(types, 0xff, size * sizeof *types);
  free(counts), free(displs), free(ones), free(places), free(types);
  for (i = 0; i <= rank; i++) out[i] = 100 * rank + i;
  for (i = 0; i < size; i++) to[i] = 1000 * rank + i;
  CALL(MPI_Startall(2, r));
  CALL(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
  for (i = n = 0; i < size; i++)
    for (j = 0; j <= i; j++) CHECK(in[n++] == 100 * i + j);
  for (i = 0; i < size; i++) CHECK(from[i] == 1000 * i + rank);
  CALL(MPI_Request_free(&r[0]));
  CALL(MPI_Request_free(&r[1]));
}

/* Members may start operations in different orders. There are many, of which some are
   freed before others are made. */
static void orders(void) {
  enum { N = 300 };
  MPI_Request r[N];
  int in[N], out[N], i, round, sum = 0;
  for (round = 0; round < 3; round++) {
    for (i = 0; i < N; i++) {
      in[i] = rank + i, out[i] = rank == 0 ? 1000 * round + i : -1;
      if (i % 2) CALL(MPI_Bcast_init(&out[i], 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]));
      else CALL(MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]));
    }
    if (rank % 2) for (i = N - 1; i >= 0; i--) CALL(MPI_Start(&r[i]));
    else CALL(MPI_Startall(N, r));
    CALL(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * (size - 1) / 2);
    CALL(MPI_Waitall(N, r, MPI_STATUSES_IGNORE));
    for (i = 0; i < N; i++) CHECK(out[i] == (i % 2 ? 1000 * round + i : size * (size - 1) / 2 + size * i));
    for (i = 0; i < N; i++) CALL(MPI_Request_free(&r[rank % 2 ? N - 1 - i : i]));
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  reduction();
  arrays();
  orders();
  return end("kept");
}
