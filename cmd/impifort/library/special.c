// The calls that do not follow from the C header: start, attributes, functions of the program,
// processes. calls.c has all others.

#include "fortran.h"

_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(int), "a status is an array of INTEGER");
_Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8, "as mpif.h has their kinds");

// gfortran aligns its blocks to as much as this.
#define BLOCK __attribute__((aligned(64)))

integer impi_bottom_ BLOCK, impi_in_place_ BLOCK, impi_buffer_automatic_ BLOCK, impi_errcodes_ignore_ BLOCK;
integer impi_unweighted_ BLOCK, impi_weights_empty_ BLOCK;
integer impi_status_ignore_[MPI_F_STATUS_SIZE] BLOCK, impi_statuses_ignore_[MPI_F_STATUS_SIZE] BLOCK;
char impi_argv_null_[1] BLOCK, impi_argvs_null_[1] BLOCK;

static void done(integer *ierror, int code)
{
	if (ierror != NULL)
		*ierror = code;
}

static int noMemory(void)
{
	impi_raise(MPI_ERR_NO_MEM, NULL, NULL, NULL);
	return MPI_ERR_NO_MEM;
}

// Start, clock, addresses.

// tell lets the library know what LOGICAL looks like, unless somebody has done so.
static void tell(void)
{
	integer yes = 1, no = 0, seen_yes, seen_no;
	int set = 1;

	if (MPI_Abi_get_fortran_booleans(sizeof yes, &seen_yes, &seen_no, &set) == MPI_SUCCESS && !set)
		MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no);
}

void pmpi_init_(integer *ierror)
{
	tell();
	done(ierror, MPI_Init(NULL, NULL));
}
NAMES(init)

void pmpi_init_thread_(integer *required, integer *provided, integer *ierror)
{
	int level = (int)*provided;

	tell();
	done(ierror, MPI_Init_thread(NULL, NULL, impi_int(*required), &level));
	*provided = level;
}
NAMES(init_thread)

double pmpi_wtime_(void) { return MPI_Wtime(); }
double pmpi_wtick_(void) { return MPI_Wtick(); }
MPI_Aint pmpi_aint_add_(MPI_Aint *base, MPI_Aint *disp) { return MPI_Aint_add(*base, *disp); }
MPI_Aint pmpi_aint_diff_(MPI_Aint *addr1, MPI_Aint *addr2) { return MPI_Aint_diff(*addr1, *addr2); }
void pmpi_pcontrol_(integer *level) { MPI_Pcontrol(impi_int(*level)); }
ALIAS(mpi_wtime_, pmpi_wtime_)
ALIAS(mpi_wtick_, pmpi_wtick_)
ALIAS(mpi_aint_add_, pmpi_aint_add_)
ALIAS(mpi_aint_diff_, pmpi_aint_diff_)
ALIAS(mpi_pcontrol_, pmpi_pcontrol_)

// mpi_f_sync_reg_ does nothing: the compiler cannot know that, and keeps nothing in registers.
void mpi_f_sync_reg_(void *buf) { (void)buf; }
void mpi_f_sync_reg_f08ts_(void *buf) { (void)buf; }

void pmpi_status_f2f08_(integer *from, integer *to, integer *ierror)
{
	memmove(to, from, MPI_F_STATUS_SIZE * sizeof *to);
	done(ierror, MPI_SUCCESS);
}
NAMES(status_f2f08)

void pmpi_status_f082f_(integer *from, integer *to, integer *ierror) { pmpi_status_f2f08_(from, to, ierror); }
NAMES(status_f082f)

// The same by the names that take TYPE(C_PTR).
#define POINTERS(name, params, args)                                    \
	void pmpi_##name##_ params;                                     \
	void pmpi_##name##_cptr_ params { pmpi_##name##_ args; }        \
	ALIAS(mpi_##name##_cptr_, pmpi_##name##_cptr_)
POINTERS(alloc_mem, (MPI_Aint *size, integer *info, void *base, integer *ierror), (size, info, base, ierror))
POINTERS(win_allocate, (MPI_Aint *size, integer *unit, integer *info, integer *comm, void *base, integer *win, integer *ierror),
	(size, unit, info, comm, base, win, ierror))
POINTERS(win_allocate_shared, (MPI_Aint *size, integer *unit, integer *info, integer *comm, void *base, integer *win, integer *ierror),
	(size, unit, info, comm, base, win, ierror))
POINTERS(win_shared_query, (integer *win, integer *rank, MPI_Aint *size, integer *unit, void *base, integer *ierror),
	(win, rank, size, unit, base, ierror))

// Buffers are taken back: mpif.h has no address to put anywhere, mpi_f08 has a pointer.

#define DETACH(name, function, first, object)                                                            \
	void pmpi_##name##_(first void *buffer_addr, integer *size, integer *ierror)                        \
	{                                                                                                   \
		void *where;                                                                                \
		MPI_Count n = 0;                                                                            \
		(void)buffer_addr;                                                                          \
		int code = function(object &where, &n);                                                     \
		*size = (integer)n;                                                                         \
		done(ierror, code);                                                                         \
	}                                                                                                   \
	ALIAS(mpi_##name##_, pmpi_##name##_)                                                                \
	void pmpi_##name##_f08_(first void **buffer_addr, integer *size, integer *ierror)                   \
	{                                                                                                   \
		MPI_Count n = 0;                                                                            \
		int code = function(object buffer_addr, &n);                                                \
		*size = (integer)n;                                                                         \
		done(ierror, code);                                                                         \
	}                                                                                                   \
	ALIAS(mpi_##name##_f08_, pmpi_##name##_f08_)                                                        \
	void pmpi_##name##_c_f08_(first void **buffer_addr, MPI_Count *size, integer *ierror)               \
	{                                                                                                   \
		done(ierror, function(object buffer_addr, size));                                           \
	}                                                                                                   \
	ALIAS(mpi_##name##_c_f08_, pmpi_##name##_c_f08_)
#define COMMA ,
DETACH(buffer_detach, MPI_Buffer_detach_c, , )
DETACH(comm_detach_buffer, MPI_Comm_detach_buffer_c, integer *comm COMMA, MPI_Comm_fromint(impi_int(*comm)) COMMA)
DETACH(session_detach_buffer, MPI_Session_detach_buffer_c, integer *session COMMA, MPI_Session_fromint(impi_int(*session)) COMMA)

// MPI_Sizeof, for each type.

#define SIZEOF(type, bytes)                                                  \
	void impi_sizeof_##type##_(void *x, integer *size, integer *ierror) \
	{                                                                   \
		(void)x;                                                    \
		*size = bytes;                                              \
		done(ierror, MPI_SUCCESS);                                  \
	}
SIZEOF(i1, 1) SIZEOF(i2, 2) SIZEOF(i4, 4) SIZEOF(i8, 8) SIZEOF(i16, 16)
SIZEOF(l1, 1) SIZEOF(l2, 2) SIZEOF(l4, 4) SIZEOF(l8, 8)
SIZEOF(r4, 4) SIZEOF(r8, 8) SIZEOF(r10, 16) SIZEOF(r16, 16)
SIZEOF(z4, 8) SIZEOF(z8, 16) SIZEOF(z10, 32) SIZEOF(z16, 32) SIZEOF(c1, 1)

// == and /= of the handles of mpi_f08.

#define COMPARED(kind)                                                               \
	integer impi_same_##kind##_(integer *a, integer *b) { return *a == *b; } \
	integer impi_other_##kind##_(integer *a, integer *b) { return *a != *b; }
COMPARED(comm) COMPARED(group) COMPARED(datatype) COMPARED(op) COMPARED(request) COMPARED(info)
COMPARED(errhandler) COMPARED(win) COMPARED(file) COMPARED(session) COMPARED(message)

// How long arrays are.

integer impi_cartdim(integer comm)
{
	int n = 0;

	return MPI_Cartdim_get(MPI_Comm_fromint(impi_int(comm)), &n) == MPI_SUCCESS ? n : 0;
}

integer impi_partners(integer comm, void *send, int receive, int neighbor)
{
	MPI_Comm c = MPI_Comm_fromint(impi_int(comm));
	int n = 0, out = 0, inter = 0, topology = MPI_UNDEFINED;

	if (send == &impi_in_place_)
		return 0;
	if (!neighbor) {
		if (MPI_Comm_test_inter(c, &inter) == MPI_SUCCESS)
			(void)(inter ? MPI_Comm_remote_size(c, &n) : MPI_Comm_size(c, &n));
		return n;
	}
	if (MPI_Topo_test(c, &topology) != MPI_SUCCESS)
		return 0;
	if (topology == MPI_CART && MPI_Cartdim_get(c, &n) == MPI_SUCCESS)
		return 2 * n;
	if (topology == MPI_GRAPH && MPI_Comm_rank(c, &out) == MPI_SUCCESS && MPI_Graph_neighbors_count(c, out, &n) == MPI_SUCCESS)
		return n;
	if (topology == MPI_DIST_GRAPH && MPI_Dist_graph_neighbors_count(c, &n, &out, &inter) == MPI_SUCCESS)
		return receive ? n : out;
	return 0;
}

#ifdef IMPI_INTEGER8
// What a datatype is made of. Those that are made by functions for large counts have a list of
// counts beside that of integers, and displacements in bytes in it; what programs expect is that of
// others.

// contents are the numbers of both.
struct contents {
	MPI_Count integers, addresses, counts, datatypes;
	MPI_Count moved; // of counts, which come last: they are addresses
	int combiner;
};

static int contentsOf(integer datatype, struct contents *c)
{
	int code = MPI_Type_get_envelope_c(MPI_Type_fromint(impi_int(datatype)), &c->integers, &c->addresses, &c->counts, &c->datatypes, &c->combiner);

	c->moved = 0;
	if (code != MPI_SUCCESS || c->counts == 0)
		return code;
	switch (c->combiner) {
	case MPI_COMBINER_HVECTOR:
		c->moved = 1;
		break;
	case MPI_COMBINER_RESIZED:
		c->moved = 2;
		break;
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_STRUCT:
		c->moved = (c->counts - 1) / 2;
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		c->moved = c->counts - 2;
	}
	return code;
}

void pmpi_type_get_envelope_(integer *datatype, integer *integers, integer *addresses, integer *datatypes, integer *combiner, integer *ierror)
{
	struct contents c;
	int code = contentsOf(*datatype, &c);

	if (code == MPI_SUCCESS) {
		*integers = c.integers + c.counts - c.moved;
		*addresses = c.addresses + c.moved;
		*datatypes = c.datatypes;
		*combiner = c.combiner;
	}
	done(ierror, code);
}
NAMES(type_get_envelope)

void pmpi_type_get_contents_(integer *datatype, integer *max_integers, integer *max_addresses, integer *max_datatypes,
	integer *integers, MPI_Aint *addresses, integer *datatypes, integer *ierror)
{
	struct contents c;
	struct impi_list l_integers, l_addresses, l_counts, l_datatypes;
	int code = contentsOf(*datatype, &c);

	if (code == MPI_SUCCESS && (*max_integers < c.integers + c.counts - c.moved || *max_addresses < c.addresses + c.moved || *max_datatypes < c.datatypes)) {
		impi_raise(MPI_ERR_ARG, NULL, NULL, NULL);
		code = MPI_ERR_ARG;
	}
	if (code != MPI_SUCCESS) {
		done(ierror, code);
		return;
	}
	int *i = impi_list(&l_integers, c.integers, sizeof *i, &code);
	MPI_Aint *a = impi_list(&l_addresses, c.addresses, sizeof *a, &code);
	MPI_Count *n = impi_list(&l_counts, c.counts, sizeof *n, &code);
	MPI_Datatype *t = impi_list(&l_datatypes, c.datatypes, sizeof *t, &code);
	if (code == MPI_SUCCESS)
		code = MPI_Type_get_contents_c(MPI_Type_fromint(impi_int(*datatype)), c.integers, c.addresses, c.counts, c.datatypes, i, a, n, t);
	if (code == MPI_SUCCESS) {
		// The counts of subarrays are behind the first integer, those of distributed ones behind
		// the third.
		int before = c.combiner == MPI_COMBINER_SUBARRAY ? 1 : c.combiner == MPI_COMBINER_DARRAY ? 3 : l_integers.n;
		integer *to = integers;
		for (int k = 0; k < before; k++)
			*to++ = i[k];
		for (int k = 0; k < c.counts - c.moved; k++)
			*to++ = n[k];
		for (int k = before; k < l_integers.n; k++)
			*to++ = i[k];
		for (int k = 0; k < l_addresses.n; k++)
			addresses[k] = a[k];
		for (int k = 0; k < c.moved; k++)
			addresses[c.addresses + k] = n[c.counts - c.moved + k];
		for (int k = 0; k < l_datatypes.n; k++)
			datatypes[k] = MPI_Type_toint(t[k]);
	}
	impi_unlist(&l_integers);
	impi_unlist(&l_addresses);
	impi_unlist(&l_counts);
	impi_unlist(&l_datatypes);
	done(ierror, code);
}
NAMES(type_get_contents)
#endif

// Strings whose length is an argument.

void pmpi_info_get_(integer *info, char *key, integer *valuelen, char *value, integer *flag, integer *ierror, size_t key_length, size_t value_length)
{
	int code = MPI_SUCCESS, found = 0;
	char *c_key = impi_take(key, key_length, 1, &code), *text = NULL;
	integer n = *valuelen < 0 ? 0 : *valuelen > MPI_MAX_INFO_VAL ? MPI_MAX_INFO_VAL : *valuelen;

	if (code == MPI_SUCCESS && (text = calloc(n + 1, 1)) == NULL)
		code = noMemory();
	if (code == MPI_SUCCESS)
		code = MPI_Info_get(MPI_Info_fromint(impi_int(*info)), c_key, (int)n, text, &found);
	if (code == MPI_SUCCESS) {
		*flag = found;
		if (found)
			impi_give(text, value, value_length, NULL);
	}
	free(text);
	free(c_key);
	done(ierror, code);
}
NAMES(info_get)

// give gives a string of n characters at most, as one of C that counts its final zero.
static void give(const char *text, int *n, integer *length, char *out, size_t out_length)
{
	if (*length > 0)
		impi_give(text, out, out_length, NULL);
	*length = *n > 0 ? *n - 1 : 0;
}

// room is for a string of a length that a program gives, and for the final zero; 0 asks how long it
// is.
static int room(integer length) { return length <= 0 ? 0 : length >= MPI_MAX_PSET_NAME_LEN ? MPI_MAX_PSET_NAME_LEN : (int)length + 1; }

void pmpi_info_get_string_(integer *info, char *key, integer *buflen, char *value, integer *flag, integer *ierror, size_t key_length, size_t value_length)
{
	int code = MPI_SUCCESS, found = 0, n = room(*buflen);
	char *c_key = impi_take(key, key_length, 1, &code), text[MPI_MAX_INFO_VAL + 1] = "";

	if (code == MPI_SUCCESS)
		code = MPI_Info_get_string(MPI_Info_fromint(impi_int(*info)), c_key, &n, text, &found);
	if (code == MPI_SUCCESS) {
		*flag = found;
		if (found)
			give(text, &n, buflen, value, value_length);
	}
	free(c_key);
	done(ierror, code);
}
NAMES(info_get_string)

void pmpi_session_get_nth_pset_(integer *session, integer *info, integer *nth, integer *pset_len, char *pset_name, integer *ierror, size_t length)
{
	int n = room(*pset_len);
	char text[MPI_MAX_PSET_NAME_LEN + 1] = "";
	int code = MPI_Session_get_nth_pset(MPI_Session_fromint(impi_int(*session)), MPI_Info_fromint(impi_int(*info)), impi_int(*nth), &n, text);

	if (code == MPI_SUCCESS)
		give(text, &n, pset_len, pset_name, length);
	done(ierror, code);
}
NAMES(session_get_nth_pset)

void pmpi_info_create_env_(integer *info, integer *ierror)
{
	MPI_Info made = 0;
	int code = MPI_Info_create_env(0, NULL, &made);

	if (code == MPI_SUCCESS)
		*info = MPI_Info_toint(made);
	done(ierror, code);
}
NAMES(info_create_env)

// Processes. argv ends with a blank string.

// words makes strings of C of an array of strings of Fortran, the next of which is stride bytes
// further. The array ends with NULL, and the caller frees it.
static char **words(const char *from, size_t length, size_t stride, MPI_Count limit, int *code)
{
	MPI_Count n = 0;
	size_t blank = 0;

	for (; n < limit; n++) {
		for (blank = 0; blank < length && from[n * stride + blank] == ' ';)
			blank++;
		if (blank == length && limit == INT_MAX)
			break;
	}
	char **all = malloc((n + 1) * sizeof *all + n * (length + 1)), *text = (char *)(all + n + 1);
	if (all == NULL) {
		*code = noMemory();
		return NULL;
	}
	for (MPI_Count i = 0; i < n; i++, text += length + 1) {
		size_t end = length;

		while (end > 0 && from[i * stride + end - 1] == ' ')
			end--;
		all[i] = memcpy(text, from + i * stride, end);
		text[end] = 0;
	}
	all[n] = NULL;
	return all;
}

// codes gives the errors of spawned procs.
static void codes(integer *out, const int *in, MPI_Count n)
{
	for (MPI_Count i = 0; out != &impi_errcodes_ignore_ && i < n; i++)
		out[i] = in[i];
}

// isRoot reports whether the arguments about what is spawned matter here.
static int isRoot(MPI_Comm comm, integer root)
{
	int rank = -1;

	return MPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root;
}

void pmpi_comm_spawn_(char *command, char *argv, integer *maxprocs, integer *info, integer *root, integer *comm, integer *intercomm,
	integer *errcodes, integer *ierror, size_t command_length, size_t argv_length)
{
	int code = MPI_SUCCESS;
	struct impi_list l;
	MPI_Comm c = MPI_Comm_fromint(impi_int(*comm)), made = 0;
	int here = isRoot(c, *root);
	int *errors = impi_list(&l, here && errcodes != &impi_errcodes_ignore_ ? *maxprocs : 0, sizeof(int), &code);
	char *name = here ? impi_take(command, command_length, 1, &code) : NULL, **all = NULL;

	if (here && argv != impi_argv_null_)
		all = words(argv, argv_length, argv_length, INT_MAX, &code);
	for (int i = 0; i < l.n; i++)
		errors[i] = MPI_SUCCESS;
	if (code == MPI_SUCCESS)
		code = MPI_Comm_spawn(name, all, impi_int(*maxprocs), MPI_Info_fromint(impi_int(*info)), impi_int(*root), c, &made,
			l.n > 0 ? errors : MPI_ERRCODES_IGNORE);
	if (made != 0)
		*intercomm = MPI_Comm_toint(made);
	codes(errcodes, errors, l.n);
	free(name);
	free(all);
	impi_unlist(&l);
	done(ierror, code);
}
NAMES(comm_spawn)

void pmpi_comm_spawn_multiple_(integer *count, char *commands, char *argvs, integer *maxprocs, integer *infos, integer *root, integer *comm,
	integer *intercomm, integer *errcodes, integer *ierror, size_t command_length, size_t argv_length)
{
	int code = MPI_SUCCESS;
	struct impi_list l_procs, l_infos, l_args, l_errors;
	MPI_Comm c = MPI_Comm_fromint(impi_int(*comm)), made = 0;
	integer n = isRoot(c, *root) ? *count : 0;
	int *procs = impi_list(&l_procs, n, sizeof(int), &code);
	MPI_Info *c_infos = impi_list(&l_infos, n, sizeof(MPI_Info), &code);
	char ***args = impi_list(&l_args, n, sizeof(char **), &code), **names = words(commands, command_length, command_length, l_procs.n, &code);
	MPI_Count sum = 0;

	for (int i = 0; i < l_procs.n; i++)
		sum += procs[i] = impi_int(maxprocs[i]);
	for (int i = 0; i < l_infos.n; i++)
		c_infos[i] = MPI_Info_fromint(impi_int(infos[i]));
	for (int i = 0; i < l_args.n; i++) // argument j of command i is argvs(i, j)
		args[i] = argvs == impi_argvs_null_ ? NULL : words(argvs + i * argv_length, argv_length, *count * argv_length, INT_MAX, &code);
	int *errors = impi_list(&l_errors, errcodes == &impi_errcodes_ignore_ ? 0 : sum, sizeof(int), &code);
	for (int i = 0; i < l_errors.n; i++)
		errors[i] = MPI_SUCCESS;
	if (code == MPI_SUCCESS)
		code = MPI_Comm_spawn_multiple(impi_int(*count), names, argvs == impi_argvs_null_ ? MPI_ARGVS_NULL : args, procs, c_infos,
			impi_int(*root), c, &made, l_errors.n > 0 ? errors : MPI_ERRCODES_IGNORE);
	if (made != 0)
		*intercomm = MPI_Comm_toint(made);
	codes(errcodes, errors, l_errors.n);
	for (int i = 0; i < l_args.n; i++)
		free(args[i]);
	free(names);
	impi_unlist(&l_procs);
	impi_unlist(&l_infos);
	impi_unlist(&l_args);
	impi_unlist(&l_errors);
	done(ierror, code);
}
NAMES(comm_spawn_multiple)
