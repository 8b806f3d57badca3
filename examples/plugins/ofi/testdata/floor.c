// What half a round trip costs if nothing is sent: N processes in a row hand a number on through
// shared memory, to the last one and back. Each polls, and offers its core after each look that finds
// nothing. With 2 processes it is what two procs without a relay could reach, with 4 what two procs
// and two plugins could.
//
//	cc -O2 -o floor floor.c && chrt -r 1 ./floor 2 && chrt -r 1 ./floor 4
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most = 16, rounds = 20000, repeats = 5 };

struct cell {
	_Alignas(128) atomic_long there, back;
};

static long await(atomic_long *word, long than)
{
	long x;
	while ((x = atomic_load_explicit(word, memory_order_acquire)) == than)
		sched_yield();
	return x;
}

static int less(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 4;
	struct cell *cells = mmap(NULL, most * sizeof *cells, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double took[repeats];

	if (n < 2 || n > most || cells == MAP_FAILED)
		return 1;
	for (int i = 1; i < n; i++) {
		pid_t child = fork();
		if (child < 0)
			return 1;
		if (child > 0)
			continue;
		for (long k = 0; k < (long)rounds * repeats; k++) {
			long x = await(&cells[i].there, k);
			if (i < n - 1) {
				atomic_store_explicit(&cells[i + 1].there, x, memory_order_release);
				x = await(&cells[i].back, k);
			}
			atomic_store_explicit(&cells[i - 1].back, x, memory_order_release);
		}
		return 0;
	}
	for (int r = 0; r < repeats; r++) {
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		for (long k = (long)r * rounds; k < (long)(r + 1) * rounds; k++) {
			atomic_store_explicit(&cells[1].there, k + 1, memory_order_release);
			await(&cells[0].back, k);
		}
		clock_gettime(CLOCK_MONOTONIC, &to);
		took[r] = ((to.tv_sec - from.tv_sec) * 1e6 + (to.tv_nsec - from.tv_nsec) / 1e3) / rounds / 2;
	}
	while (wait(NULL) > 0)
		;
	qsort(took, repeats, sizeof *took, less);
	printf("%d processes: %.2f us, the median of %d\n", n, took[repeats / 2], repeats);
	return 0;
}
