/* Ends a shim as a program in Go does, without exit: exit SHIM.so. It writes whether the handlers
 * of exit of that MPI's library have run by then. */
#define _GNU_SOURCE
#include "shim/shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	void *shim = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : 0;
	const struct impi_native *f = shim ? dlsym(shim, "impi_native") : 0;
	int (*at_exit)(void (*)(void *), void *, void *) = 0;
	/* a function of that library that leaves a trace, and a handle as the library's own */
	void (*handler)(void *) = 0;
	static int ran, handle, provided, rank, size;
	if (f) {
		*(void **)&at_exit = dlsym(shim, "__cxa_atexit");
		*(void **)&handler = dlsym(shim, "MPI_Initialized");
	}
	if (!at_exit || !handler || at_exit(handler, &ran, &handle)) {
		fprintf(stderr, "exit: %s\n", dlerror());
		return 1;
	}
	if (f->init(IMPI_NATIVE_SERIALIZED, &provided, &rank, &size) || f->finalize())
		return 1;
	dprintf(1, "the handlers have%s run\n", ran ? "" : " not");
	_exit(0);
}
