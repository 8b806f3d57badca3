/* Each of two procs waits for the other one. A thread of rank 1 computes meanwhile, until there is
   the file that is named on the command line, and sends what ends the waits. */
#include "test.h"
#include <pthread.h>
#include <unistd.h>

static const char *file;

static void *compute(void *arg) {
  volatile double x = 1;
  int i, done = 1;
  (void)arg;
  while (access(file, F_OK) != 0)
    for (i = 0; i < 1000000; i++) x = x * 1.000001 + 1;
  MPI_Send(&done, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
  return NULL;
}

int main(int argc, char **argv) {
  int provided, x = 0;
  pthread_t t;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  file = argv[1];
  if (rank == 1) pthread_create(&t, NULL, compute, NULL);
  MPI_Recv(&x, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) pthread_join(t, NULL);
  printf("rank %d got %d\n", rank, x);
  MPI_Finalize();
  return 0;
}
