/* Partitioned sends and receives around a ring, with threads that fill the parts. */
#include "test.h"
#include <pthread.h>

enum { PARTS = 8, N = 1000 };

static int out[PARTS * N], in[PARTS * N];
static MPI_Request reqs[2];
static int round_;

static void *work(void *arg) {
  int part = (int)(size_t)arg, i;
  for (i = 0; i < N; i++) out[part * N + i] = round_ * 1000000 + rank * 10000 + part * N + i;
  CALL(MPI_Pready(part, reqs[0]));
  return NULL;
}

static void ring(void) {
  int right = (rank + 1) % size, left = (rank + size - 1) % size, i, flag;
  MPI_Status s[2];
  CALL(MPI_Psend_init(out, PARTS, N, MPI_INT, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[0]));
  CALL(MPI_Precv_init(in, PARTS / 2, 2 * N, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[1]));
  for (round_ = 0; round_ < 3; round_++) {
    pthread_t t[PARTS];
    CALL(MPI_Startall(2, reqs));
    for (i = 0; i < PARTS; i++) pthread_create(&t[i], NULL, work, (void *)(size_t)i);
    flag = 0;
    while (!flag) CALL(MPI_Parrived(reqs[1], 1, &flag));
    for (i = 0; i < PARTS; i++) pthread_join(t[i], NULL);
    CALL(MPI_Waitall(2, reqs, s));
    CHECK(s[1].MPI_SOURCE == left && s[1].MPI_TAG == 5);
    CALL(MPI_Get_count(&s[1], MPI_INT, &i));
    CHECK(i == PARTS * N);
    for (i = 0; i < PARTS * N; i++)
      if (in[i] != round_ * 1000000 + left * 10000 + i) break;
    CHECK(i == PARTS * N);
  }
  CALL(MPI_Request_free(&reqs[0]));
  CALL(MPI_Request_free(&reqs[1]));
  CHECK(reqs[0] == MPI_REQUEST_NULL);
}

/* Every other int, and partitions in any order. */
static void strided(void) {
  int mine[12] = {0}, theirs[12] = {0}, list[] = {2, 0}, i, flag = 0;
  MPI_Datatype two;
  for (i = 0; i < 12; i++) mine[i] = 50 * rank + i;
  CALL(MPI_Type_vector(2, 1, 2, MPI_INT, &two));
  CALL(MPI_Type_create_resized(two, 0, 4 * sizeof(int), &two));
  CALL(MPI_Type_commit(&two));
  CALL(MPI_Psend_init(mine, 3, 1, two, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[0]));
  CALL(MPI_Precv_init(theirs, 1, 3, two, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[1]));
  CALL(MPI_Type_free(&two));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, reqs[0]));
  CALL(MPI_Parrived(reqs[1], 0, &flag));
  CHECK(flag);
  CALL(MPI_Start(&reqs[1]));
  CALL(MPI_Start(&reqs[0]));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, reqs[1]));
  FAILS(MPI_ERR_ARG, MPI_Pready(3, reqs[0]));
  CALL(MPI_Pready_list(2, list, reqs[0]));
  FAILS(MPI_ERR_ARG, MPI_Pready(2, reqs[0]));
  CALL(MPI_Parrived(reqs[1], 0, &flag));
  CHECK(!flag);
  CALL(MPI_Pready_range(1, 1, reqs[0]));
  CALL(MPI_Wait(&reqs[1], MPI_STATUS_IGNORE));
  CALL(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE));
  for (i = 0; i < 12; i++) CHECK(theirs[i] == (i % 2 ? 0 : 50 * rank + i));
  CALL(MPI_Request_free(&reqs[0]));
  CALL(MPI_Request_free(&reqs[1]));
  FAILS(MPI_ERR_RANK, MPI_Precv_init(theirs, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[1]));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, MPI_REQUEST_NULL));
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CALL(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  ring();
  strided();
  return end("partitioned");
}
