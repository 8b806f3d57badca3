// Nonblocking collective operations that C starts by itself: see faststart.c. Those that start one
// return 1 if they have.

#ifndef IMPI_FAST_START_H
#define IMPI_FAST_START_H

#include <mpi.h>
#include "gate.h"

int impi_ibarrier(MPI_Comm comm, MPI_Request *out);
int impi_ibcast(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *out);
int impi_igather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm, MPI_Request *out);
int impi_iscatter(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm, MPI_Request *out);
int impi_iallgather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm, MPI_Request *out);
int impi_ialltoall(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm, MPI_Request *out);
int impi_ireduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, MPI_Request *out);
int impi_iallreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *out);

#define HIDDEN __attribute__((visibility("hidden")))

// impi_await_start waits for an operation that is not over, and reports whether it is. The gate is
// passed.
HIDDEN int impi_await_start(struct request *r);

// impi_try_start ends an operation if it can be ended now. It returns whether it is over, or
// UNKNOWN if Go has to find out. The gate is passed.
enum { UNKNOWN = -1 };
HIDDEN int impi_try_start(struct request *r);

// impi_ring wakes the members that sleep at the boards in a set. The gate is not passed.
HIDDEN void impi_ring(uint32_t boards);

// The boards, a bit for each, whose sleeping members have to be woken. It belongs to whoever has
// passed the gate.
extern uint32_t impi_rings HIDDEN;

// leave_and_ring is leave for a call that may have to wake others.
static inline void leave_and_ring(void)
{
	uint32_t boards = impi_rings;
	impi_rings = 0;
	leave();
	if (boards != 0)
		impi_ring(boards);
}

#endif
