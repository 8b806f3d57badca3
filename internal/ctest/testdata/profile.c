/*
 * A profiling library: it counts sends and collective operations and calls the
 * library under its other names. It is linked before the library, or loaded with
 * LD_PRELOAD before a program that knows nothing of it.
 */
#include <mpi.h>
#include <stdio.h>

static int sends, reductions;

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  sends++;
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  reductions++;
  return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr, "profile of rank %d: %d sends, %d reductions\n", rank, sends, reductions);
  return PMPI_Finalize();
}
