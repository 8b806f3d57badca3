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

int PMPI_Get_version(int *version, int *subversion)
{
	if (!version || !subversion)
		return MPI_ERR_ARG;
	*version = MPI_VERSION;
	*subversion = MPI_SUBVERSION;
	return MPI_SUCCESS;
}
int MPI_Get_version(int *version, int *subversion) WEAK(PMPI_Get_version);

int PMPI_Abi_get_version(int *abi_major, int *abi_minor)
{
	if (!abi_major || !abi_minor)
		return MPI_ERR_ARG;
	*abi_major = MPI_ABI_VERSION;
	*abi_minor = MPI_ABI_SUBVERSION;
	return MPI_SUCCESS;
}
int MPI_Abi_get_version(int *abi_major, int *abi_minor) WEAK(PMPI_Abi_get_version);
