#ifndef IMPI_NATIVE_LIBRARY_H
#define IMPI_NATIVE_LIBRARY_H

#include "shim/shim.h"

enum impi_native_phase {
	IMPI_NATIVE_BARRIER = 1, IMPI_NATIVE_BCAST, IMPI_NATIVE_REDUCE, IMPI_NATIVE_ALLREDUCE,
	IMPI_NATIVE_GATHER, IMPI_NATIVE_ALLGATHER, IMPI_NATIVE_ALLTOALL
};

struct impi_native_phase_args {
	int32_t comm, phase, type, op, root;
	int64_t n; /* bytes, or elements of reductions */
	uintptr_t in, out;
};

/* Finds the table of functions of a shim; the result is why that failed, or NULL. */
const char *impi_native_load(const char *path, const struct impi_native **fn);

/* The functions of the table, for Go, which cannot call pointers to functions. Buffers are numbers: they are
 * pinned, or not Go's, and Go would look for pointers in all of what a buffer is a part of. */
int impi_native_version(const struct impi_native *, char *text, int room);
int impi_native_describe(const struct impi_native *, int error, char *text, int room);
int impi_native_init(const struct impi_native *, int threads, int *provided, int *rank, int *size);
int impi_native_finalize(const struct impi_native *);
int impi_native_send(const struct impi_native *, int to, int tag, uintptr_t buf, int64_t bytes, int32_t *number);
int impi_native_poll(const struct impi_native *, void *buf, int64_t room, struct impi_native_message *m);
int impi_native_recv(const struct impi_native *, int32_t held, uintptr_t buf, int64_t bytes, int32_t *number);
int impi_native_open(const struct impi_native *, const int *ranks, int count, int tag, int32_t *comm);
int impi_native_close(const struct impi_native *, int32_t comm);
/* A phase, whose number is that of enum impi_native_phase. */
int impi_native_begin(const struct impi_native *, const struct impi_native_phase_args *, int32_t *number);
int impi_native_test(const struct impi_native *, int32_t number);

#endif
