// How much time a program spends in which call of MPI: package internal/engine/calls, for C.

#ifndef IMPI_MEASURE_H
#define IMPI_MEASURE_H

#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum { CALLS = 256 };
enum { NOBODY = INT_MIN, NO_TAG = INT_MIN };

enum { COUNTED = 1, TRACED = 2 }; // bits of on
enum { RING = 1 << 14 };

struct sum { _Atomic uint64_t calls, time; };

// A call that waits to be written to a timeline, in a cache line of its own. turn is its place in the order
// of all, from 1 on, once it is complete.
struct event {
	_Atomic uint64_t turn;
	uint64_t begun, ended;
	int64_t size;
	uint64_t comm;
	uint32_t call;
	int32_t peer, tag;
	uint32_t unused[3];
};

// What the thread that writes the timeline changes is in other cache lines than what calls change.
struct measure {
	_Atomic uint32_t on;
	uint32_t ticks, unused[14];
	struct sum sums[CALLS];
	_Atomic uint64_t put, dropped;
	uint64_t unused1[6];
	_Atomic uint64_t taken;
	uint64_t unused2[7];
	struct event events[RING];
};

extern struct measure impi_measure __attribute__((visibility("hidden")));

#define MEASURED __builtin_expect(atomic_load_explicit(&impi_measure.on, memory_order_relaxed), 0)
#define TIMED __attribute__((noinline)) // not cold: it is what runs while calls are measured

static inline uint64_t impi_nanoseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// impi_clock is the time in the unit of package calls: see clock.go there.
static inline uint64_t impi_clock(void)
{
#if defined(__x86_64__)
	if (impi_measure.ticks)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (impi_measure.ticks) {
		uint64_t t;
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
		return t;
	}
#endif
	return impi_nanoseconds();
}

void impi_called(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm);
int64_t impi_size(MPI_Count count, MPI_Datatype type);

#endif
