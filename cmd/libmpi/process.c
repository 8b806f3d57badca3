// What the library does when it is loaded and when the process ends.

#define _GNU_SOURCE
#include "_cgo_export.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

// A program that is linked to another MPI library as well, and to that one first, would call its
// functions with our handles, and die of that without a word of why. Tools that stand between
// define MPI_Init alone (MPI-4.1, 15.2). An address in the program itself is no other library's: a
// program that is not position-independent has a function's address in its own table.
__attribute__((constructor)) static void isFirst(void)
{
	Dl_info used, own, main;
	void *program = dlopen(NULL, RTLD_LAZY); // RTLD_DEFAULT looks in this library first
	void *init = program ? dlsym(program, "PMPI_Init") : NULL;
	if (!init || !dladdr(init, &used) || !dladdr((void *)isFirst, &own) || used.dli_fbase == own.dli_fbase)
		return;
	if (dladdr((void *)getauxval(AT_ENTRY), &main) && main.dli_fbase == used.dli_fbase)
		return;
	fprintf(stderr,
		"impi: abort: two MPI libraries are in one process, and the program calls %s and not %s: "
		"compile it, and the libraries that it uses, with impicc (or impicxx, impifort) alone\n",
		used.dli_fname, own.dli_fname);
	_exit(MPI_ERR_OTHER);
}

static pid_t resting; // the process that has sessions no more, and never had MPI_Init

static void leave(void)
{
	if (resting == getpid()) // a child has no threads of Go's
		restEnds();
}

void restsNow(void)
{
	if (!resting)
		at_quick_exit(leave); // exit has the destructor
	resting = getpid();
}

__attribute__((destructor)) static void leaveAtExit(void) { leave(); }
