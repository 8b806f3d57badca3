// What the C code of the fast path has in common: the gate, and what Go has found out about memory,
// datatypes and communicators.

#ifndef IMPI_GATE_H
#define IMPI_GATE_H

#include <limits.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#include <mpi.h>
#include <string.h>
#include "_cgo_export.h"
#include "fastpath.h"

#define W(x) ((GoUintptr)(x))
#define LOAD(x) atomic_load_explicit(&(x), memory_order_acquire)
#define GLANCE(x) atomic_load_explicit(&(x), memory_order_relaxed)
#define ONCE(x) (*(volatile __typeof__(x) *)&(x)) // of memory that the other side can write to
#define COUNTS __builtin_expect(x->counts, 0) // C measures its waits
#define STORE(x, v) atomic_store_explicit(&(x), v, memory_order_release)

static struct fastpath *const x = &impi_fast_path;

static inline void rest(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

// enter_busy passes the gate, unless another thread has, or Go has closed it or wants to. Something
// may need progress meanwhile.
static inline int enter_busy(void)
{
	uint32_t open = OPEN;
	return GLANCE(x->gate) == OPEN && !GLANCE(x->leave_asked) && atomic_compare_exchange_strong_explicit(&x->gate, &open, INSIDE, memory_order_acquire, memory_order_relaxed);
}

static inline void leave(void) { STORE(x->gate, OPEN); }

// enter is enter_busy if nothing needs progress.
static inline int enter(void)
{
	if (GLANCE(x->busy) || !enter_busy())
		return 0;
	if (!GLANCE(x->busy))
		return 1;
	leave();
	return 0;
}

// known reports whether Go has found that there are n bytes of memory at p, at most a page.
static inline int known(_Atomic uintptr_t pages[PAGES], const void *p, uint64_t n)
{
	uintptr_t from = (uintptr_t)p >> PAGE_SHIFT, to = ((uintptr_t)p + n - 1) >> PAGE_SHIFT;
	return n == 0 || (from != 0 && GLANCE(pages[from % PAGES]) == from && GLANCE(pages[to % PAGES]) == to);
}

// held reports whether Go has found that there are n bytes of memory at p.
static inline int held(_Atomic uintptr_t pages[PAGES], const void *p, uint64_t n)
{
	uintptr_t from = (uintptr_t)p >> PAGE_SHIFT, last = ((uintptr_t)p + n - 1) >> PAGE_SHIFT;
	for (uintptr_t page = from; n > 0 && page <= last; page++)
		if (page == 0 || GLANCE(pages[page % PAGES]) != page)
			return 0;
	return 1;
}

// bytes returns the size of a buffer, or UINT64_MAX if C cannot handle it.
static inline uint64_t bytes(MPI_Count count, MPI_Datatype type)
{
	uintptr_t t = (uintptr_t)type;
	if (t >= TYPES || impi_width[t] == 0 || count < 0 || count > INT_MAX)
		return UINT64_MAX;
	return (uint64_t)count * impi_width[t];
}

// there reports whether n bytes at p are known to be writable, or p is NULL.
static inline int there(const void *p, uint64_t n) { return p == NULL || held(impi_writable, p, n); }

// find returns the entry of a communicator, or NULL if Go has not described it. An empty entry has
// handle 0, which no communicator has.
static inline struct comm *find(MPI_Comm comm)
{
	uintptr_t h = (uintptr_t)comm;
	struct comm *c = &x->comms[(h ^ h >> 3 ^ h >> 32) % COMMS];
	return c->handle == h && h != 0 ? c : NULL;
}

// far_move copies to memory that another core reads next, as package plugins/sdk/support/ntcopy
// does.
static inline void far_move(void *to, const void *from, uint64_t n)
{
#if defined(__x86_64__)
	if (n >= FAR_LEAST) {
		char *d = to;
		const char *s = from;
		uint64_t head = -(uintptr_t)d & 63;
		memcpy(d, s, head);
		for (d += head, s += head, n -= head; n >= 64; d += 64, s += 64, n -= 64)
			for (int i = 0; i < 4; i++)
				_mm_stream_si128((__m128i *)d + i, _mm_loadu_si128((const __m128i *)s + i));
		memcpy(d, s, n);
		_mm_sfence();
		return;
	}
#endif
	memcpy(to, from, n);
}

// move copies a few bytes.
static inline void move(void *to, const void *from, uint64_t n)
{
	if (n == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, n);
}

#endif
