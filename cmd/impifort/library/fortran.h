// How gfortran calls C: lower case and an underscore behind, every argument by its
// address, the lengths of strings as size_t behind all others. INTEGER and LOGICAL are
// int, .TRUE. is 1. A handle is the integer that MPI_X_toint gives.
#ifndef IMPI_FORTRAN_H
#define IMPI_FORTRAN_H

#include <mpi.h>
#include <stddef.h>

// The common blocks of mpif.h. What is in them is never read: an argument that lies
// there means what the block is called.
extern int impi_bottom_, impi_in_place_;
extern int impi_status_ignore_[MPI_F_STATUS_SIZE], impi_statuses_ignore_[MPI_F_STATUS_SIZE];

// impi_buffer is a buffer as C has it.
static inline void *impi_buffer(void *buf)
{
	if (buf == &impi_bottom_)
		return MPI_BOTTOM;
	if (buf == &impi_in_place_)
		return MPI_IN_PLACE;
	return buf;
}

// impi_status is a status, or an array of them: the same memory in both languages.
static inline MPI_Status *impi_status(int *status)
{
	if (status == impi_status_ignore_ || status == impi_statuses_ignore_)
		return MPI_STATUS_IGNORE;
	return (MPI_Status *)status;
}

#endif
