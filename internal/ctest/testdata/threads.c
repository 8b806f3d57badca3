/* Threads of the program call MPI at the same time. */
#include "test.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300 };

static MPI_Comm comms[THREADS];
static int bad[THREADS];

/* Each thread has a tag of its own in the one communicator, and a communicator of
   its own for collective operations. */
static void *work(void *arg) {
  int me = (int)(size_t)arg, i, left = (rank + size - 1) % size, right = (rank + 1) % size;
  int *big = malloc(100000 * sizeof *big), *got = malloc(100000 * sizeof *got);
  for (i = 0; i < ROUNDS; i++) {
    int out = rank * 1000 + me * 100 + i % 100, in = -1, sum = -1;
    MPI_Request r[2];
    MPI_Status s[2];
    if (MPI_Irecv(&in, 1, MPI_INT, left, me, MPI_COMM_WORLD, &r[0]) || MPI_Isend(&out, 1, MPI_INT, right, me, MPI_COMM_WORLD, &r[1])) bad[me]++;
    if (MPI_Waitall(2, r, s) || in != left * 1000 + me * 100 + i % 100 || s[0].MPI_TAG != me) bad[me]++;
    if (i % 10 == 0 && (MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, comms[me]) ||
                        sum != 1000 * size * (size - 1) / 2 + size * (me * 100 + i % 100)))
      bad[me]++;
    if (i % 50 == 0) {
      fill(big, 100000 * sizeof *big, rank + me);
      if (MPI_Sendrecv(big, 100000, MPI_INT, right, THREADS + me, got, 100000, MPI_INT, left, THREADS + me, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ||
          !filled(got, 100000 * sizeof *got, left + me))
        bad[me]++;
    }
  }
  free(big);
  free(got);
  return NULL;
}

/* Each thread plays with one of the neighbour's, by messages that are short. */
static void *play(void *arg) {
  int me = (int)(size_t)arg, other = rank ^ 1, i, in, out;
  MPI_Status s;
  if (other >= size) return NULL;
  for (i = 0; i < 10 * ROUNDS; i++) {
    out = i * THREADS + me;
    if (rank % 2 == 0 && MPI_Send(&out, 1, MPI_INT, other, 600 + me, MPI_COMM_WORLD)) bad[me]++;
    if (MPI_Recv(&in, 1, MPI_INT, other, 600 + me, MPI_COMM_WORLD, &s) || in != out || s.MPI_TAG != 600 + me) bad[me]++;
    if (rank % 2 == 1 && MPI_Send(&out, 1, MPI_INT, other, 600 + me, MPI_COMM_WORLD)) bad[me]++;
  }
  return NULL;
}

/* One thread waits for what another sends: a wait must not keep others out. */
static void *answer(void *arg) {
  int x;
  (void)arg;
  if (MPI_Recv(&x, 1, MPI_INT, rank, 500, MPI_COMM_WORLD, MPI_STATUS_IGNORE) || x != 7) bad[0]++;
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t t[THREADS];
  int provided = -1, i, seven = 7, main_thread = 0;
  CALL(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CALL(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  CALL(MPI_Query_thread(&i));
  CHECK(i == provided);
  CALL(MPI_Is_thread_main(&main_thread));
  CHECK(main_thread);
  CHECK(MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED && MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE);
  for (i = 0; i < THREADS; i++) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
  for (i = 0; i < THREADS; i++) CHECK(pthread_create(&t[i], NULL, work, (void *)(size_t)i) == 0);
  for (i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  for (i = 0; i < THREADS; i++) CHECK(bad[i] == 0);
  for (i = 0; i < THREADS; i++) CHECK(pthread_create(&t[i], NULL, play, (void *)(size_t)i) == 0);
  for (i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  for (i = 0; i < THREADS; i++) CHECK(bad[i] == 0);
  CHECK(pthread_create(&t[0], NULL, answer, NULL) == 0);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_Send(&seven, 1, MPI_INT, rank, 500, MPI_COMM_WORLD));
  pthread_join(t[0], NULL);
  CHECK(bad[0] == 0);
  for (i = 0; i < THREADS; i++) CALL(MPI_Comm_free(&comms[i]));
  return end("threads");
}
