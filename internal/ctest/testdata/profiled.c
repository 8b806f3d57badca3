/* What profile.c counts: two sends and one reduction of each rank, and the
   reduction in end. Barriers and broadcasts send nothing that it may see. */
#include "test.h"

int main(int argc, char **argv) {
  int x = 1, y, i;
  MPI_Request r;
  begin(&argc, &argv);
  for (i = 0; i < 2; i++) {
    CALL(MPI_Irecv(&y, 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD, &r));
    CALL(MPI_Send(&x, 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD));
    CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  }
  CALL(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(y == size);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_Bcast(&y, 1, MPI_INT, 0, MPI_COMM_WORLD));
  CALL(MPI_Reduce(&x, &y, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
  CALL(PMPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  return end("profiled");
}
