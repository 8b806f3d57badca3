// Buffers of mpi_f08, which come as descriptors of arrays. C gets the memory itself where it lies
// in one piece.

#include "fortran.h"

// elements is how many elements a buffer has, or -1 if that is not known, as of an array
// whose size is assumed: it lies in one piece.
static MPI_Count elements(const struct impi_descriptor *d)
{
	MPI_Count n = 1;

	for (int i = 0; i < d->rank; i++) {
		if (d->dim[i].extent < 0)
			return -1;
		n *= d->dim[i].extent;
	}
	return n;
}

// inOnePiece reports whether the elements follow each other. The end of an array that has no
// elements, or one, does not matter.
static int inOnePiece(const struct impi_descriptor *d)
{
	ptrdiff_t next = (ptrdiff_t)d->elem_len;

	if (elements(d) <= 1) // unknown too
		return 1;
	for (int i = 0; i < d->rank; i++) {
		if (d->dim[i].extent > 1 && d->dim[i].sm != next)
			return 0;
		if (d->dim[i].extent > 1)
			next = d->dim[i].sm * d->dim[i].extent;
	}
	return 1;
}

static void failed(int *code, int with)
{
	if (*code == MPI_SUCCESS)
		*code = with;
}

static void begin(struct impi_choice *c, struct impi_descriptor *d)
{
	memset(c, 0, sizeof *c);
	c->from = d;
	c->at = d->base;
}

// move copies the elements of the dimensions below rank to packed memory, or back from there.
// It returns the end of what it has used there.
static char *move(const struct impi_descriptor *d, int rank, char *at, char *packed, int back)
{
	if (rank == 0) {
		memcpy(back ? at : packed, back ? packed : at, d->elem_len);
		return packed + d->elem_len;
	}
	for (ptrdiff_t i = 0; i < d->dim[rank - 1].extent; i++)
		packed = move(d, rank - 1, at + i * d->dim[rank - 1].sm, packed, back);
	return packed;
}

void impi_packed(struct impi_choice *c, struct impi_descriptor *d, int *code)
{
	begin(c, d);
	if (inOnePiece(d))
		return;
	if ((c->copy = malloc(elements(d) * d->elem_len)) == NULL) {
		failed(code, MPI_ERR_NO_MEM);
		return;
	}
	move(d, d->rank, d->base, c->copy, 0);
	c->at = c->copy;
}

void impi_unpacked(struct impi_choice *c, int out)
{
	if (c->copy != NULL && out)
		move(c->from, c->from->rank, c->from->base, c->copy, 1);
	free(c->copy);
}

void impi_whole(struct impi_choice *c, struct impi_descriptor *d, int *code)
{
	begin(c, d);
	if (!inOnePiece(d))
		failed(code, MPI_ERR_BUFFER);
}

// section makes a datatype of the first n elements of the dimensions below rank, each of which is
// an element of that type.
static int section(const struct impi_descriptor *d, int rank, MPI_Count n, MPI_Datatype element, MPI_Datatype *made)
{
	MPI_Count below = 1;
	MPI_Datatype parts[2];
	int code;

	if (rank == 0)
		return MPI_Type_contiguous_c(n, element, made);
	for (int i = 0; i < rank - 1; i++)
		below *= d->dim[i].extent;
	if ((code = section(d, rank - 1, below, element, &parts[0])) != MPI_SUCCESS)
		return code;
	code = MPI_Type_create_hvector_c(n / below, 1, d->dim[rank - 1].sm, parts[0], made);
	MPI_Type_free(&parts[0]);
	if (code != MPI_SUCCESS || n % below == 0)
		return code;
	parts[0] = *made;
	if ((code = section(d, rank - 1, n % below, element, &parts[1])) == MPI_SUCCESS) {
		code = MPI_Type_create_struct_c(2, (MPI_Count[]){1, 1}, (MPI_Count[]){0, n / below * d->dim[rank - 1].sm}, parts, made);
		MPI_Type_free(&parts[1]);
	}
	MPI_Type_free(&parts[0]);
	return code;
}

// described makes a datatype of count of a type in a section. The type has to lie in one piece and
// to fill elements of the array, for only then it is known where its parts lie.
static int described(const struct impi_descriptor *d, MPI_Count count, MPI_Datatype type, MPI_Datatype *made)
{
	MPI_Count size, lb, extent, n;
	MPI_Datatype element;
	int code;

	if ((code = MPI_Type_size_c(type, &size)) != MPI_SUCCESS || (code = MPI_Type_get_extent_c(type, &lb, &extent)) != MPI_SUCCESS)
		return code;
	if (size <= 0 || lb != 0 || extent != size || (MPI_Count)d->elem_len % size != 0)
		return MPI_ERR_TYPE;
	if (count > elements(d) * (MPI_Count)d->elem_len / size)
		return MPI_ERR_BUFFER;
	n = count * size / (MPI_Count)d->elem_len;
	if (n * (MPI_Count)d->elem_len != count * size)
		return MPI_ERR_TYPE;
	if ((code = MPI_Type_contiguous_c((MPI_Count)d->elem_len / size, type, &element)) != MPI_SUCCESS)
		return code;
	if ((code = section(d, d->rank, n, element, made)) == MPI_SUCCESS)
		code = MPI_Type_commit(made);
	MPI_Type_free(&element);
	return code;
}

void impi_typed(struct impi_choice *c, struct impi_descriptor *d, MPI_Count count, integer type, int *code)
{
	MPI_Datatype made = 0;
	int with;

	begin(c, d);
	c->count = (integer)count;
	c->wide = count;
	c->type = type;
	if (inOnePiece(d) || count <= 0 || d->base == NULL)
		return;
	if ((with = described(d, count, MPI_Type_fromint(impi_int(type)), &made)) != MPI_SUCCESS) {
		failed(code, with);
		return;
	}
	c->made = 1;
	c->wide = c->count = 1;
	c->type = MPI_Type_toint(made);
}

void impi_untyped(struct impi_choice *c)
{
	if (!c->made)
		return;
	MPI_Datatype made = MPI_Type_fromint(impi_int(c->type));
	MPI_Type_free(&made); // what uses it goes on
}
