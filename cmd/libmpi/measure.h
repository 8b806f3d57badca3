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

enum { COUNTED = 1, TRACED = 2, MERGED = 4 }; // bits of on
enum { RING = 1 << 14, KINDS = 8 };
// See run.go in internal/engine/calls.
enum { ENOUGH = 256, STEADY = 1024, AGAIN = 16, STRIDE = 16, RUN_MOST = 4 << 10, SENDS = 0, RECEIVES, TALLIES, COUNTED_ONLY = 1 };
enum { CALL_SEND = 3, CALL_RECV = 7 };
enum { BRIEF_LOOKS = 64 }; // for a message, during which a call need not look at the clock
enum { BRIEFLY = 1, LONG = 2 }; // how a call was done: without much waiting, or perhaps not

struct sum { _Atomic uint64_t calls, time; };

// A call that waits to be written to a timeline, in a cache line of its own. turn is its place in
// the order of all, from 1 on, once it is complete.
struct event {
	_Atomic uint64_t turn;
	uint64_t begun, ended;
	int64_t size;
	uint64_t comm;
	uint32_t call;
	int32_t peer, tag;
	uint32_t times, more;
	int32_t source; // for a call that sends to peer and also receives: from whom
};

// Calls that are the same, counted without a look at the clock.
struct tally {
	_Atomic uint64_t total;
	uint64_t taken;
	int64_t size;
	uint64_t comm;
	uint32_t call;
	int32_t peer, tag;
	uint32_t unused[5];
};

// Calls that have followed each other closely for long: see run.go in package
// internal/engine/calls. owner is the thread that writes what the lock of the burst does not guard.
struct run {
	_Atomic uintptr_t owner;
	_Atomic uint32_t streak;
	uint32_t left;
	uint64_t ofgo[2];
	uint64_t since; // short calls since the last pause
	uint64_t unused[3];
	struct tally tallies[TALLIES];
};

// Short calls that follow each other closely: see merge.go in package internal/engine/calls.
// Whoever has set lock may use the rest, but for open and stalled.
struct burst {
	_Atomic uint32_t lock;
	uint32_t kinds;
	_Atomic uint64_t open, stalled;
	uint64_t from, last, unused[3];
	struct event pending, calls[KINDS];
	struct run run;
};

// What the thread that writes the timeline changes is in other cache lines than what calls change.
struct measure {
	_Atomic uint32_t on;
	uint32_t ticks;
	uint64_t brief, gap, longest, unused[4];
	struct sum sums[CALLS];
	_Atomic uint64_t put, dropped;
	uint64_t unused1[6];
	_Atomic uint64_t taken;
	uint64_t unused2[7];
	struct event events[RING];
	struct burst burst;
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
