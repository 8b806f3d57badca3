// The functions that need nothing of the library: they are C, as entering Go would
// cost more than what they do.

#include <mpi.h>
#include <time.h>

#define WEAK(name) __attribute__((weak, alias(#name)))

double PMPI_Wtime(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
double MPI_Wtime(void) WEAK(PMPI_Wtime);

double PMPI_Wtick(void)
{
	struct timespec t;
	clock_getres(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
double MPI_Wtick(void) WEAK(PMPI_Wtick);

MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp) { return base + disp; }
MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint disp) WEAK(PMPI_Aint_add);

MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) { return addr1 - addr2; }
MPI_Aint MPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) WEAK(PMPI_Aint_diff);

int PMPI_Pcontrol(const int level, ...)
{
	(void)level;
	return MPI_SUCCESS;
}
int MPI_Pcontrol(const int level, ...) WEAK(PMPI_Pcontrol);
