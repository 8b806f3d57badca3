/* What ends a program: the argument says which of the ways. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *way, const char *name) { return strcmp(way, name) == 0; }

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  int rank, n, flag = -1, major, minor;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];

  /* What may be called at any time. */
  if (MPI_Initialized(&flag) || flag || MPI_Finalized(&flag) || flag || MPI_Get_version(&major, &minor) ||
      MPI_Get_library_version(text, &n) || n < 1 || (int)strlen(text) != n)
    return 90;
  if (is(way, "before-init")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (is(way, "send-before-init")) MPI_Send(&n, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (is(way, "init-twice")) MPI_Init(&argc, &argv);
  if (is(way, "rank")) MPI_Send(&n, 1, MPI_INT, 12345, 0, MPI_COMM_WORLD);
  if (is(way, "null")) MPI_Bcast(NULL, 5, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (is(way, "handle")) MPI_Type_size((MPI_Datatype)(size_t)0x7654321, &n);
  if (is(way, "abort") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 42);
  if (is(way, "abort-nothing") && rank == 1) MPI_Abort((MPI_Comm)(size_t)0x7654321, 43);
  if (is(way, "exit") && rank == 1) exit(7);
  if (is(way, "_exit") && rank == 1) _exit(8);
  if (is(way, "return-0") && rank == 1) return 0;
  if (is(way, "segv") && rank == 1) raise(SIGSEGV);
  if (is(way, "pointer") && rank == 1) *(volatile int *)way = 1, *(volatile int *)8 = 1;
  if (is(way, "c-abort") && rank == 1) abort();
  if (is(way, "kill") && rank == 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD); /* the others wait for rank 1 here */
  MPI_Finalize();
  if (MPI_Initialized(&flag) || !flag || MPI_Finalized(&flag) || !flag) return 91;
  if (is(way, "after-finalize")) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (is(way, "barrier-after-finalize")) MPI_Barrier(MPI_COMM_WORLD);
  if (is(way, "finalize-twice")) MPI_Finalize();
  if (is(way, "exit-after")) exit(rank == 1 ? 9 : 0);
  printf("OK fatal %s\n", way);
  return 0;
}
