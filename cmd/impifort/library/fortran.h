// How gfortran, and flang, call C: lower case and an underscore behind, every argument by its
// address, the lengths of strings as size_t behind all others. INTEGER and LOGICAL are
// int, or of 8 bytes if the program is compiled so; .TRUE. is 1. A handle is the integer that
// MPI_X_toint gives. An optional argument that is not there is a null pointer.
#ifndef IMPI_FORTRAN_H
#define IMPI_FORTRAN_H

#include <limits.h>
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef IMPI_INTEGER8
typedef int64_t integer;
#else
typedef int integer;
#endif

// Names. A program may define mpi_x_, and call pmpi_x_ from there. The procedures of mpi_f08 that
// have no buffers are the same as those of mpif.h.
#define ALIAS(name, of) extern __typeof__(of) name __attribute__((weak, alias(#of)));
#define NAMES(x)                                                          \
	ALIAS(mpi_##x##_, pmpi_##x##_) ALIAS(mpi_##x##_f08_, pmpi_##x##_) \
	ALIAS(pmpi_##x##_f08_, pmpi_##x##_)
#define NAMES_X(x)                                                            \
	ALIAS(mpix_##x##_, pmpix_##x##_) ALIAS(mpix_##x##_f08_, pmpix_##x##_) \
	ALIAS(pmpix_##x##_f08_, pmpix_##x##_)
#define DESCRIBED(x) ALIAS(mpi_##x##_f08ts_, pmpi_##x##_f08ts_)

// The common blocks of mpif.h. What is in them is never read: an argument that lies
// there means what the block is called.
extern integer impi_bottom_, impi_in_place_, impi_buffer_automatic_, impi_errcodes_ignore_;
extern integer impi_unweighted_, impi_weights_empty_;
extern integer impi_status_ignore_[MPI_F_STATUS_SIZE], impi_statuses_ignore_[MPI_F_STATUS_SIZE];
extern char impi_argv_null_[1], impi_argvs_null_[1];

// impi_buffer is a buffer as C has it.
static inline void *impi_buffer(void *buf)
{
	if (buf == &impi_bottom_)
		return MPI_BOTTOM;
	if (buf == &impi_in_place_)
		return MPI_IN_PLACE;
	if (buf == &impi_buffer_automatic_)
		return MPI_BUFFER_AUTOMATIC;
	return buf;
}

// impi_int is an INTEGER as C has it. One of 8 bytes that does not fit becomes the nearest that
// does, which C refuses where it would have refused the other.
static inline int impi_int(integer n)
{
	return n > INT_MAX ? INT_MAX : n < INT_MIN ? INT_MIN : (int)n;
}

// impi_raise has the error handler of an object know of an error of this layer.
static inline int impi_raise(int code, const integer *comm, const integer *win, const integer *file)
{
	if (win != NULL)
		MPI_Win_call_errhandler(MPI_Win_fromint(impi_int(*win)), code);
	else if (file != NULL)
		MPI_File_call_errhandler(MPI_File_fromint(impi_int(*file)), code);
	else
		MPI_Comm_call_errhandler(comm != NULL ? MPI_Comm_fromint(impi_int(*comm)) : MPI_COMM_SELF, code);
	return 1;
}

// Statuses.

static inline int impi_ignored(const integer *status)
{
	return status == impi_status_ignore_ || status == impi_statuses_ignore_;
}

#ifdef IMPI_INTEGER8
static inline void impi_status_in(MPI_Status *to, const integer *from)
{
	int words[MPI_F_STATUS_SIZE];

	for (int i = 0; i < MPI_F_STATUS_SIZE; i++)
		words[i] = (int)from[i];
	memcpy(to, words, sizeof words);
}

static inline void impi_status_out(integer *to, const MPI_Status *from)
{
	int words[MPI_F_STATUS_SIZE];

	memcpy(words, from, sizeof words);
	for (int i = 0; i < MPI_F_STATUS_SIZE; i++)
		to[i] = words[i];
}
#else
// impi_status is a status, or an array of them: the same memory in both languages.
static inline MPI_Status *impi_status(integer *status)
{
	return impi_ignored(status) ? MPI_STATUS_IGNORE : (MPI_Status *)status;
}
#endif

// Lists of handles, and others that C has in another form.

// impi_list is on the stack of the caller, unless it is long.
struct impi_list {
	void *own[64], *all;
	int n;
};

// impi_list makes room for n things of a size. Without memory the code is set and n is 0.
static inline void *impi_list(struct impi_list *l, MPI_Count n, size_t size, int *code)
{
	l->n = n > 0 && n <= INT_MAX ? (int)n : 0;
	l->all = l->own;
	if (l->n * size > sizeof l->own && (l->all = calloc(l->n, size)) == NULL) {
		l->n = 0;
		*code = MPI_ERR_NO_MEM;
		impi_raise(*code, NULL, NULL, NULL);
	}
	return l->all;
}

static inline void impi_unlist(struct impi_list *l)
{
	if (l->all != l->own)
		free(l->all);
}

// impi_places count from 1 what C counts from 0.
static inline void impi_places(integer n, integer *indices)
{
	for (integer i = 0; n != MPI_UNDEFINED && i < n; i++)
		if (indices[i] != MPI_UNDEFINED)
			indices[i]++;
}

// impi_weights are weights as C has them, if they are not all equal.
static inline int *impi_weights(integer *weights, int *otherwise)
{
	if (weights == &impi_unweighted_)
		return MPI_UNWEIGHTED;
	if (weights == &impi_weights_empty_)
		return MPI_WEIGHTS_EMPTY;
	return otherwise;
}

static inline integer impi_sum(integer n, const integer *numbers)
{
	integer sum = 0;

	for (integer i = 0; i < n; i++)
		sum += numbers[i];
	return sum;
}

// impi_cartdim is how many dimensions a Cartesian topology has; impi_partners how many types an
// exchange of all with all, or with all neighbors, has on a side. send is the buffer that they
// are for: MPI_IN_PLACE has no types.
integer impi_cartdim(integer comm);
integer impi_partners(integer comm, void *send, int receive, int neighbor);

// Strings. Those of Fortran have a length, and blanks at their ends.

static inline void impi_give(const char *text, char *out, size_t length, integer *resultlen)
{
	size_t n = strlen(text);

	if (n > length)
		n = length;
	memcpy(out, text, n);
	memset(out + n, ' ', length - n);
	if (resultlen != NULL)
		*resultlen = (integer)n;
}

// impi_take gives a string of C without the blanks at its end, and if asked for those at its start.
// The caller frees it. Without memory it is NULL, and the code is set.
static inline char *impi_take(const char *in, size_t length, int leading, int *code)
{
	while (length > 0 && in[length - 1] == ' ')
		length--;
	while (leading && length > 0 && *in == ' ')
		in++, length--;
	char *text = malloc(length + 1);
	if (text != NULL) {
		memcpy(text, in, length);
		text[length] = 0;
	} else {
		*code = MPI_ERR_NO_MEM;
		impi_raise(*code, NULL, NULL, NULL);
	}
	return text;
}

// Buffers of mpi_f08.

// impi_descriptor is CFI_cdesc_t of gfortran and flang, whose fields that are used here lie alike.
// With IMPI_ISO_BINDING it is what the header of the compiler has, which has the same names but
// one.
struct impi_descriptor {
	void *base;
	size_t elem_len;
	int version;
	signed char rank;
	char kind[3];
	struct {
		ptrdiff_t lower, extent, sm;
	} dim[];
};

// impi_choice is a buffer while it is used.
struct impi_choice {
	struct impi_descriptor *from;
	void *at;       // what C gets
	void *copy;     // of a section, in one piece
	integer count;  // in place of that of the caller
	MPI_Count wide; // the same
	integer type;   // also
	int made;       // whether type was made here
};

// A blocking call gets a copy of a section; one that goes on, a datatype that describes it; one
// that has no place for either refuses it.
void impi_packed(struct impi_choice *c, struct impi_descriptor *d, int *code);
void impi_unpacked(struct impi_choice *c, int out);
void impi_typed(struct impi_choice *c, struct impi_descriptor *d, MPI_Count count, integer type, int *code);
void impi_untyped(struct impi_choice *c);
void impi_whole(struct impi_choice *c, struct impi_descriptor *d, int *code);

#endif
