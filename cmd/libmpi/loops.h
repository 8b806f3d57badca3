// Loops that combine vectors: see loops.c.

#ifndef IMPI_LOOPS_H
#define IMPI_LOOPS_H

#include <mpi.h>
#include <stdint.h>

// A loop combines two vectors of n elements: to[i] = from[i] OP to[i], where from is that of the
// lower rank.
typedef void loop(const void *from, void *to, uint64_t n);

// impi_loop_of returns the loop of an operation on elements of a type, or NULL.
loop *impi_loop_of(MPI_Op op, MPI_Datatype type);

// impi_has_nan reports whether one of n floating-point numbers of a size is NaN.
int impi_has_nan(const void *from, uint64_t n, uint64_t size);

#endif
