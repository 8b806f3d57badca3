// How much time a program spends in which call of MPI: package internal/engine/calls, for C.

#ifndef IMPI_MEASURE_H
#define IMPI_MEASURE_H

#include "measure_layout.h"
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum { COUNTED_ONLY = 1 }; // instead of a time: the call is counted already
enum { BRIEF_LOOKS = 64 }; // for a message, during which a call need not look at the clock
enum { BRIEFLY = 1, LONG = 2 }; // how a call was done: without much waiting, or perhaps not

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

// LATE reports whether calls that are over at once are merged without looking at the clock when
// they begin.
#define LATE ((atomic_load_explicit(&impi_measure.on, memory_order_relaxed) & (COUNTED | MERGED)) == MERGED)

// impi_begun_late is the beginning of a call that sends, or 0: most are over at once, and while
// they leave somebody may wait for the message.
static inline uint64_t impi_begun_late(void)
{
	if (!LATE)
		return impi_clock();
	atomic_store_explicit(&impi_measure.burst.stalled, 0, memory_order_relaxed);
	return 0;
}

// impi_stalls notes when a call that sends found that it has to wait.
static inline void impi_stalls(void)
{
	if (LATE && atomic_load_explicit(&impi_measure.burst.stalled, memory_order_relaxed) == 0)
		atomic_store_explicit(&impi_measure.burst.stalled, impi_clock(), memory_order_relaxed);
}

// impi_over ends a call that impi_pends has announced and that has not waited long.
static inline void impi_over(void) { atomic_store_explicit(&impi_measure.burst.open, 0, memory_order_release); }

// impi_thread is there for its address, which identifies the thread.
extern __thread char impi_thread __attribute__((visibility("hidden"), tls_model("initial-exec")));

// impi_counted counts a call if it need not be looked at.
static inline int impi_counted(int k, int peer, int tag, int64_t size, uintptr_t comm)
{
	struct run *r = &impi_measure.burst.run;
	struct tally *t = &r->tallies[k];
	if (!LATE || r->left == 0 || atomic_load_explicit(&r->streak, memory_order_relaxed) < ENOUGH)
		return 0;
	if (t->peer != peer || t->tag != tag || t->size != size || t->comm != comm || atomic_load_explicit(&r->owner, memory_order_relaxed) != (uintptr_t)&impi_thread)
		return 0;
	r->left--;
	atomic_store_explicit(&t->total, atomic_load_explicit(&t->total, memory_order_relaxed) + 1, memory_order_relaxed);
	return 1;
}

// impi_sent is impi_counted for a call that has sent and began at a time of impi_begun_late.
static inline int impi_sent(uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm)
{
	return begun == 0 && atomic_load_explicit(&impi_measure.burst.stalled, memory_order_relaxed) == 0 && impi_counted(SENDS, peer, tag, size, comm);
}

uint64_t impi_uncount(void);

// impi_waits is the beginning of a call that receives and has not found its message within
// BRIEF_LOOKS: begun, or now if that is COUNTED_ONLY.
static inline uint64_t impi_waits(uint64_t begun) { return begun == COUNTED_ONLY ? impi_uncount() : begun; }

uint64_t impi_since(uint64_t begun);
int impi_pends(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm);
void impi_called(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm);
void impi_exchanged(int call, uint64_t begun, int peer, int tag, int source, int64_t size, uintptr_t comm);
int64_t impi_size(MPI_Count count, MPI_Datatype type);

// impi_receives begins a call that receives, and returns the time, or COUNTED_ONLY if the call is
// counted already. If it sets *pends and the message comes within BRIEF_LOOKS, only impi_over is to
// be called, and for COUNTED_ONLY nothing.
static inline uint64_t impi_receives(int call, int *pends, int peer, int tag, int64_t size, uintptr_t comm)
{
	*pends = 1;
	if (impi_counted(RECEIVES, peer, tag, size, comm))
		return COUNTED_ONLY;
	uint64_t begun = impi_clock();
	*pends = impi_pends(call, begun, peer, tag, size, comm);
	return begun;
}

#endif
