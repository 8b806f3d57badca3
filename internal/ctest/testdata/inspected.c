/* A program that is run under tools: by itself it has no fault, and those that its argument asks
   for are in rank 1, in functions of their own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"



__attribute__((noinline)) static int beyond(int *p, int n) { return p[n]; }
__attribute__((noinline)) static void falls(volatile int *p) { *p = 1; }

static int shared;
static void *races(void *arg) {
  int i;
  for (i = 0; i < 1000; i++) shared += *(int *)arg;
  return NULL;
}

/* Each thread talks to the same thread of the other ranks: so often that ThreadSanitizer, which
   looks at some accesses only, mostly sees that they copy to the same memory in the library. */
#ifdef __SANITIZE_THREAD__
enum { ROUNDS = 3000 };
#else
enum { ROUNDS = 20 };
#endif
static void *talks(void *arg) {
  int me = *(int *)arg, i, in = -1;
  for (i = 0; i < ROUNDS; i++) {
    int out = i * 10 + me;
    CALL(MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, 10 + me, &in, 1, MPI_INT, (rank + size - 1) % size, 10 + me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == out);
  }
  return NULL;
}

static void messages(int n) {
  char *out = malloc(n), *in = malloc(n);
  MPI_Request r[2];
  MPI_Status s[2];
  int count = -1;
  CHECK(out && in);
  memset(out, rank, n);
  CALL(MPI_Irecv(in, n, MPI_BYTE, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &r[0]));
  CALL(MPI_Isend(out, n, MPI_BYTE, (rank + 1) % size, 3, MPI_COMM_WORLD, &r[1]));
  CALL(MPI_Waitall(2, r, s));
  CALL(MPI_Get_count(&s[0], MPI_BYTE, &count));
  CHECK(count == n && in[0] == (rank + size - 1) % size && in[n - 1] == in[0]);
  free(out);
  free(in);
}

int main(int argc, char **argv) {
  const char *fault = argc > 1 ? argv[1] : "";
  pthread_t t[3];
  int provided, i, sum = -1, all[64], me[] = {0, 1, 2}, *base;
  MPI_Win w;
  MPI_Datatype column;
  int square[16];
  CALL(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CALL(MPI_Comm_size(MPI_COMM_WORLD, &size));
  for (i = 1; i <= 1 << 20; i *= 32) messages(i);
  CALL(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size * (size - 1) / 2);
  CALL(MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
  CHECK(all[size - 1] == size - 1);
  for (i = 0; i < 16; i++) square[i] = i;
  CALL(MPI_Type_vector(4, 1, 4, MPI_INT, &column));
  CALL(MPI_Type_commit(&column));
  CALL(MPI_Sendrecv(square, 1, column, rank, 4, square, 4, MPI_INT, rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(square[1] == 4 && square[3] == 12);
  CALL(MPI_Type_free(&column));
  CALL(MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w));
  *base = 0;
  CALL(MPI_Win_fence(0, w));
  CALL(MPI_Accumulate(&size, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, w));
  CALL(MPI_Win_fence(0, w));
  CHECK(rank != 0 || *base == size * size);
  CALL(MPI_Win_free(&w));
  for (i = 0; i < 3; i++) CHECK(pthread_create(&t[i], NULL, talks, &me[i]) == 0);
  for (i = 0; i < 3; i++) CHECK(pthread_join(t[i], NULL) == 0);
  if (rank == 1 && !strcmp(fault, "beyond")) {
    int *p = malloc(3 * sizeof *p);
    CHECK(p != NULL);
    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 5, p, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("beyond: %d\n", beyond(p, 3) == 77);
    free(p);
  }
  if (rank == 1 && !strcmp(fault, "race")) {
    for (i = 0; i < 2; i++) CHECK(pthread_create(&t[i], NULL, races, &me[i]) == 0);
    for (i = 0; i < 2; i++) CHECK(pthread_join(t[i], NULL) == 0);
  }
  if (rank == 1 && !strcmp(fault, "fall")) falls(NULL);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  return end("inspected");
}
