// Collective operations that C does by itself: see fastboard.c. They return 1 if they have done
// all.

#ifndef IMPI_FAST_BOARD_H
#define IMPI_FAST_BOARD_H

#include <mpi.h>

int impi_barrier(MPI_Comm comm);
int impi_bcast(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
int impi_gather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm);
int impi_scatter(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm);
int impi_allgather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm);
int impi_alltoall(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm);
int impi_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
int impi_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int impi_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

#endif
