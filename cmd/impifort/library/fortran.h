// How gfortran calls C: lower case and an underscore behind, every argument by its
// address, the lengths of strings as size_t behind all others. INTEGER and LOGICAL are
// int, .TRUE. is 1. A handle is the integer that MPI_X_toint gives.
#ifndef IMPI_FORTRAN_H
#define IMPI_FORTRAN_H

#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

// impi_nomemory is the error of calls that lack memory for an array of handles.
static inline int impi_nomemory(MPI_Comm comm)
{
	MPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
	return MPI_ERR_NO_MEM;
}

// Strings. Those of Fortran have a length, and blanks at their ends.

static inline void impi_give(const char *text, char *out, size_t length, int *resultlen)
{
	size_t n = strlen(text);

	if (n > length)
		n = length;
	memcpy(out, text, n);
	memset(out + n, ' ', length - n);
	if (resultlen != NULL)
		*resultlen = (int)n;
}

// impi_take gives a string of C with leading and trailing blanks left out. The caller
// frees it. It is NULL if there is no memory.
static inline char *impi_take(const char *in, size_t length)
{
	while (length > 0 && in[length - 1] == ' ')
		length--;
	while (length > 0 && *in == ' ')
		in++, length--;
	char *text = malloc(length + 1);
	if (text != NULL) {
		memcpy(text, in, length);
		text[length] = 0;
	}
	return text;
}

// Arrays of requests.

// impi_requests is an array of requests as C has it: on the stack of the caller, unless they
// are many. impi_gone is called with it later.
struct impi_requests {
	MPI_Request own[64], *all;
	int n;
};

static inline int impi_come(struct impi_requests *r, int n, const int *in)
{
	r->n = n > 0 ? n : 0;
	r->all = r->own;
	if (r->n > 64 && (r->all = malloc(r->n * sizeof *r->all)) == NULL)
		return impi_nomemory(MPI_COMM_SELF);
	for (int i = 0; i < r->n; i++)
		r->all[i] = MPI_Request_fromint(in[i]);
	return MPI_SUCCESS;
}

static inline void impi_gone(struct impi_requests *r, int *out)
{
	for (int i = 0; i < r->n; i++)
		out[i] = MPI_Request_toint(r->all[i]);
	if (r->all != r->own)
		free(r->all);
}

// impi_place counts from 1 what C counts from 0.
static inline void impi_place(int *index)
{
	if (*index != MPI_UNDEFINED)
		++*index;
}

static inline void impi_places(int n, int *indices)
{
	for (int i = 0; n != MPI_UNDEFINED && i < n; i++)
		indices[i]++;
}

#endif
