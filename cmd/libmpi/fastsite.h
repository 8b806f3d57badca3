// Collective operations that C does by the site's own MPI: see fastsite.c. They return 1 if they
// have done all.

#ifndef IMPI_FAST_SITE_H
#define IMPI_FAST_SITE_H

#include <mpi.h>

int impi_site_barrier(MPI_Comm comm);
int impi_site_bcast(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm);
int impi_site_alltoall(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm);
int impi_site_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

#endif
