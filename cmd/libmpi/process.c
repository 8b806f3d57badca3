// What the library does when the process ends.

#include "_cgo_export.h"
#include <stdlib.h>
#include <unistd.h>

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
