/* What MPI-3.0 removed and MPICH's Fortran programs still call, by its successors. */
#include <mpi.h>

void mpi_type_create_hvector_(int *, int *, MPI_Aint *, int *, int *, int *);
void mpi_type_create_hindexed_(int *, int *, MPI_Aint *, int *, int *, int *);
void mpi_type_create_struct_(int *, int *, MPI_Aint *, int *, int *, int *);
void mpi_type_get_extent_(int *, MPI_Aint *, MPI_Aint *, int *);
void mpi_get_address_(void *, MPI_Aint *, int *);
void mpi_comm_set_errhandler_(int *, int *, int *);
void mpi_comm_get_errhandler_(int *, int *, int *);
void mpi_comm_create_errhandler_(void (*)(void), int *, int *);

void mpi_type_hvector_(int *count, int *length, int *stride, int *old, int *made, int *ierror)
{
	MPI_Aint wide = *stride;
	mpi_type_create_hvector_(count, length, &wide, old, made, ierror);
}

/* Their displacements are INTEGERs. */
static MPI_Aint wide[1000];

void mpi_type_hindexed_(int *count, int *lengths, int *displs, int *old, int *made, int *ierror)
{
	for (int i = 0; i < *count; i++)
		wide[i] = displs[i];
	mpi_type_create_hindexed_(count, lengths, wide, old, made, ierror);
}

void mpi_type_struct_(int *count, int *lengths, int *displs, int *types, int *made, int *ierror)
{
	for (int i = 0; i < *count; i++)
		wide[i] = displs[i];
	mpi_type_create_struct_(count, lengths, wide, types, made, ierror);
}

void mpi_type_extent_(int *type, int *extent, int *ierror)
{
	MPI_Aint lb, e = 0;
	mpi_type_get_extent_(type, &lb, &e, ierror);
	*extent = (int)e;
}

void mpi_address_(void *where, int *address, int *ierror)
{
	MPI_Aint a;
	mpi_get_address_(where, &a, ierror);
	*address = (int)a;
}

void mpi_errhandler_set_(int *comm, int *handler, int *ierror) { mpi_comm_set_errhandler_(comm, handler, ierror); }
void mpi_errhandler_get_(int *comm, int *handler, int *ierror) { mpi_comm_get_errhandler_(comm, handler, ierror); }
void mpi_errhandler_create_(void (*f)(void), int *handler, int *ierror) { mpi_comm_create_errhandler_(f, handler, ierror); }
