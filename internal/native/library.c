//go:build linux

#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>

enum { SHORTS_AT_A_TIME = 8 };

const char *impi_native_load(const char *path, const struct impi_native **fn)
{
	/* RTLD_DEEPBIND: the shim and that MPI find that MPI's functions before ours, which have the
	 * same names. */
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!handle)
		return dlerror();
	*fn = dlsym(handle, "impi_native");
	return *fn ? 0 : dlerror();
}

int impi_native_version(const struct impi_native *f, char *text, int room, int *standard) { return f->version(text, room, standard); }
int impi_native_describe(const struct impi_native *f, int error, char *text, int room) { return f->describe(error, text, room); }
int impi_native_init(const struct impi_native *f, int threads, int *provided, int *rank, int *size) { return f->init(threads, provided, rank, size); }
int impi_native_finalize(const struct impi_native *f) { return f->finalize(); }
int impi_native_send(const struct impi_native *f, int to, int tag, uintptr_t buf, int64_t bytes, int32_t *number) { return f->send(to, tag, (const void *)buf, bytes, number); }
int impi_native_poll(const struct impi_native *f, struct impi_shorts *shorts, void *buf, int64_t room, struct impi_native_message *m)
{
	int error = shorts ? impi_shorts_pump(shorts, SHORTS_AT_A_TIME) : 0;
	return error ? error : f->poll(buf, room, m);
}
int impi_native_recv(const struct impi_native *f, int32_t held, uintptr_t buf, int64_t bytes, int32_t *number) { return f->recv(held, (void *)buf, bytes, number); }
int impi_native_open(const struct impi_native *f, const int *ranks, int count, int tag, int32_t *comm) { return f->open(ranks, count, tag, comm); }
int impi_native_close(const struct impi_native *f, int32_t comm) { return f->close(comm); }

int impi_native_begin(const struct impi_native *f, const struct impi_native_phase_args *a, int32_t *number)
{
	const void *in = (const void *)a->in;
	void *out = (void *)a->out;
	switch (a->phase) {
	case IMPI_NATIVE_BARRIER:
		return f->barrier(a->comm, number);
	case IMPI_NATIVE_BCAST:
		return f->bcast(a->comm, out, a->n, a->root, number);
	case IMPI_NATIVE_REDUCE:
		return f->reduce(a->comm, in, out, a->n, a->type, a->op, a->root, number);
	case IMPI_NATIVE_ALLREDUCE:
		return f->allreduce(a->comm, in, out, a->n, a->type, a->op, number);
	case IMPI_NATIVE_GATHER:
		return f->gather(a->comm, in, out, a->n, a->root, number);
	case IMPI_NATIVE_ALLGATHER:
		return f->allgather(a->comm, in, out, a->n, number);
	default:
		return f->alltoall(a->comm, in, out, a->n, number);
	}
}

void impi_native_fail(const struct impi_native *f, int kind) { f->fail(kind); }
int impi_native_test(const struct impi_native *f, int32_t number) { return f->test(number); }
