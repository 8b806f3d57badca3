// The calls that do not follow from the C header: start, attributes, arrays of datatypes,
// functions of the program. calls.c has all others.

#include "fortran.h"

_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(int), "a status is an array of INTEGER");
_Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8, "as mpif.h has their kinds");

// gfortran aligns its blocks to as much as this.
#define BLOCK __attribute__((aligned(64)))

int impi_bottom_ BLOCK, impi_in_place_ BLOCK;
int impi_status_ignore_[MPI_F_STATUS_SIZE] BLOCK, impi_statuses_ignore_[MPI_F_STATUS_SIZE] BLOCK;

// Start, clock, addresses.

// tell lets the library know what LOGICAL looks like, unless somebody has done so.
static void tell(void)
{
	int yes = 1, no = 0, seen_yes, seen_no, set = 1;

	if (MPI_Abi_get_fortran_booleans(sizeof yes, &seen_yes, &seen_no, &set) == MPI_SUCCESS && !set)
		MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no);
}

void mpi_init_(int *ierror)
{
	tell();
	*ierror = MPI_Init(NULL, NULL);
}

void mpi_init_thread_(int *required, int *provided, int *ierror)
{
	tell();
	*ierror = MPI_Init_thread(NULL, NULL, *required, provided);
}

double mpi_wtime_(void) { return MPI_Wtime(); }
double mpi_wtick_(void) { return MPI_Wtick(); }
MPI_Aint mpi_aint_add_(MPI_Aint *base, MPI_Aint *disp) { return MPI_Aint_add(*base, *disp); }
MPI_Aint mpi_aint_diff_(MPI_Aint *addr1, MPI_Aint *addr2) { return MPI_Aint_diff(*addr1, *addr2); }

// mpi_buffer_detach_ leaves buffer_addr alone: Fortran has no address to put there.
void mpi_buffer_detach_(void *buffer_addr, int *size, int *ierror)
{
	void *where;

	(void)buffer_addr;
	*ierror = MPI_Buffer_detach(&where, size);
}

// Attributes that MPI has by itself: C gets the address of an int, Fortran the int.

static int attribute(int *comm, int *keyval, MPI_Aint *value, int *flag)
{
	void *at = NULL;
	int code = MPI_Comm_get_attr(MPI_Comm_fromint(*comm), *keyval, &at, flag);

	if (code == MPI_SUCCESS && *flag)
		*value = *keyval >= MPI_TAG_UB && *keyval <= MPI_UNIVERSE_SIZE ? *(int *)at : (MPI_Aint)at;
	return code;
}

void mpi_comm_get_attr_(int *comm, int *keyval, MPI_Aint *value, int *flag, int *ierror)
{
	*ierror = attribute(comm, keyval, value, flag);
}

void mpi_attr_get_(int *comm, int *keyval, int *value, int *flag, int *ierror)
{
	MPI_Aint wide = 0;

	if ((*ierror = attribute(comm, keyval, &wide, flag)) == MPI_SUCCESS && *flag)
		*value = (int)wide;
}

// Arrays of datatypes.

// typesOf is an array of n datatypes as C has it. The caller frees it.
static MPI_Datatype *typesOf(int n, const int *in)
{
	MPI_Datatype *all = malloc((n > 0 ? n : 1) * sizeof *all);

	for (int i = 0; all != NULL && i < n; i++)
		all[i] = MPI_Type_fromint(in[i]);
	return all;
}

void mpi_type_create_struct_(int *count, int *blocklengths, MPI_Aint *displacements, int *types, int *newtype, int *ierror)
{
	MPI_Datatype made = 0, *all = typesOf(*count, types);

	*ierror = all == NULL ? impi_nomemory(MPI_COMM_SELF) : MPI_Type_create_struct(*count, blocklengths, displacements, all, &made);
	if (*ierror == MPI_SUCCESS)
		*newtype = MPI_Type_toint(made);
	free(all);
}

void mpi_alltoallw_(void *sendbuf, int *sendcounts, int *sdispls, int *sendtypes, void *recvbuf,
	int *recvcounts, int *rdispls, int *recvtypes, int *comm, int *ierror)
{
	MPI_Comm c = MPI_Comm_fromint(*comm);
	void *send = impi_buffer(sendbuf);
	int inter, n;

	if ((*ierror = MPI_Comm_test_inter(c, &inter)) != MPI_SUCCESS)
		return;
	if ((*ierror = inter ? MPI_Comm_remote_size(c, &n) : MPI_Comm_size(c, &n)) != MPI_SUCCESS)
		return;
	MPI_Datatype *s = typesOf(send == MPI_IN_PLACE ? 0 : n, sendtypes), *r = typesOf(n, recvtypes);
	if (s == NULL || r == NULL)
		*ierror = impi_nomemory(c);
	else
		*ierror = MPI_Alltoallw(send, sendcounts, sdispls, s, impi_buffer(recvbuf), recvcounts, rdispls, r, c);
	free(s);
	free(r);
}

// Operations of the program. C calls one of these functions, which calls Fortran's with
// the datatype as an integer. A function keeps its number for ever, so an operation may
// be freed while the library still works with it; a program has 32 of them at most.

typedef void function(void *in, void *inout, int *length, int *type);

static function *functions[32];

#define CALL(n)                                                             \
	static void call##n(void *in, void *inout, int *length, MPI_Datatype *type) \
	{                                                                       \
		int t = MPI_Type_toint(*type);                                      \
		functions[n](in, inout, length, &t);                                \
	}

CALL(0) CALL(1) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6) CALL(7)
CALL(8) CALL(9) CALL(10) CALL(11) CALL(12) CALL(13) CALL(14) CALL(15)
CALL(16) CALL(17) CALL(18) CALL(19) CALL(20) CALL(21) CALL(22) CALL(23)
CALL(24) CALL(25) CALL(26) CALL(27) CALL(28) CALL(29) CALL(30) CALL(31)

static MPI_User_function *const calls[32] = {
	call0, call1, call2, call3, call4, call5, call6, call7,
	call8, call9, call10, call11, call12, call13, call14, call15,
	call16, call17, call18, call19, call20, call21, call22, call23,
	call24, call25, call26, call27, call28, call29, call30, call31,
};

void mpi_op_create_(function *f, int *commute, int *op, int *ierror)
{
	for (int i = 0; i < 32; i++) {
		function *free = NULL;
		if (!__atomic_compare_exchange_n(&functions[i], &free, f, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && free != f)
			continue; // another function has this number
		MPI_Op made = 0;
		if ((*ierror = MPI_Op_create(calls[i], *commute, &made)) == MPI_SUCCESS)
			*op = MPI_Op_toint(made);
		return;
	}
	*ierror = impi_nomemory(MPI_COMM_SELF);
}
