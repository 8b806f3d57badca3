// One-sided operations that C does by itself: see fastwindow.c. They return 1 if they have done
// all.

#ifndef IMPI_FAST_WINDOW_H
#define IMPI_FAST_WINDOW_H

#include <mpi.h>

int impi_put(const void *from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Win win);
int impi_get(void *to, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Win win);
int impi_accumulate(const void *from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Op op, MPI_Win win);
int impi_get_accumulate(const void *from, MPI_Count count, MPI_Datatype type, void *result, MPI_Count rcount, MPI_Datatype rtype, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Op op, MPI_Win win);
int impi_compare_and_swap(const void *from, const void *compare, void *result, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Win win);
int impi_flush(int rank, MPI_Win win);
int impi_flush_all(MPI_Win win);
int impi_sync(MPI_Win win);
int impi_fence(int assert, MPI_Win win);

#endif
