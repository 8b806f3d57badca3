// One-sided operations in memory that the procs of a machine share, without entering Go
// (docs/decisions/0054). Go does them in the same memory in the same way (internal/engine/window,
// direct.go), so either may do each operation.
//
// Each function does a call completely, or changes nothing and lets Go do it, which reports all
// errors.

#define _GNU_SOURCE
#include "onboard.h"
#include "fastwindow.h"
#include "loops.h"

// window_of returns the entry of a window, or NULL if C knows nothing of it. The gate is passed.
static inline struct window *window_of(MPI_Win win)
{
	uintptr_t h = (uintptr_t)win;
	struct window *w = &x->windows[(h ^ h >> 3 ^ h >> 32) % WINDOWS];
	return w->handle == h && h != 0 ? w : NULL;
}

// target_of returns a rank of a window at which C may do operations now, or NULL. The gate is
// passed.
static inline struct target *target_of(struct window *w, int rank)
{
	if (w == NULL || rank < 0 || (uint32_t)rank >= w->ranks)
		return NULL;
	struct target *t = &w->targets[rank];
	return t->base != NULL && (w->every | t->open) ? t : NULL;
}

// place returns where n bytes are at a displacement of a rank, or NULL.
static inline char *place(struct target *t, MPI_Aint disp, uint64_t n)
{
	int64_t at;
	if (t == NULL || disp < 0 || __builtin_mul_overflow((int64_t)disp, t->unit, &at) || at > t->size || n > (uint64_t)(t->size - at))
		return NULL;
	return t->base + at;
}

// copy copies what may overlap. A word is copied at once, since others may look at it.
static inline void copy(void *to, const void *from, uint64_t n)
{
	uint64_t word;
	if (n == sizeof word) {
		memcpy(&word, from, sizeof word);
		memcpy(to, &word, sizeof word);
	} else
		memmove(to, from, n);
}

// size returns how many bytes both sides of an operation have, 0 if Go has to do the operation.
static inline uint64_t size(MPI_Count count, MPI_Datatype type, MPI_Count there, MPI_Datatype ttype)
{
	uint64_t n = bytes(count, type);
	return n <= WINDOW_MOST && n == bytes(there, ttype) ? n : 0;
}

int impi_put(const void *from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Win win)
{
	uint64_t n = size(count, type, there, ttype);
	if (n == 0 || !held(impi_readable, from, n) || !enter_busy())
		return 0;
	struct window *w = window_of(win);
	char *to = place(target_of(w, rank), disp, n);
	if (to != NULL) {
		w->used = 1;
		copy(to, from, n);
	}
	leave();
	return to != NULL;
}

int impi_get(void *to, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Win win)
{
	uint64_t n = size(count, type, there, ttype);
	if (n == 0 || !held(impi_writable, to, n) || !enter_busy())
		return 0;
	struct window *w = window_of(win);
	const char *from = place(target_of(w, rank), disp, n);
	if (from != NULL) {
		w->used = 1;
		copy(to, from, n);
	}
	leave();
	return from != NULL;
}

enum { SPINS = 32 };

// lock takes the lock of a target's operations that are atomic, if it is soon free: Go lets other
// procs run while it waits, one of which may hold it. Where there is none, the gate is enough.
static inline int lock(struct target *t)
{
	if (t->lock == NULL)
		return 1;
	for (int i = 0; i < SPINS; i++) {
		uint32_t none = 0;
		if (GLANCE(*t->lock) == 0 && atomic_compare_exchange_strong_explicit(t->lock, &none, 1, memory_order_acquire, memory_order_relaxed))
			return 1;
		rest();
	}
	return 0;
}

static inline void unlock(struct target *t)
{
	if (t->lock != NULL)
		STORE(*t->lock, 0);
}

// apart reports whether two buffers of n bytes do not overlap.
static inline int apart(const void *a, const void *b, uint64_t n) { return (uintptr_t)a + n <= (uintptr_t)b || (uintptr_t)b + n <= (uintptr_t)a; }

// combines reports whether C can do an operation on elements of a type: by a loop, or without one.
static inline int combines(MPI_Op op, MPI_Datatype type, loop **f)
{
	*f = NULL;
	if (op == MPI_REPLACE || op == MPI_NO_OP)
		return 1;
	return (*f = impi_loop_of(op, type)) != NULL;
}

// ready reports whether a loop can be applied to two buffers.
static inline int ready(loop *f, const void *from, const void *to, uint64_t width) { return f == NULL || ((uintptr_t)from | (uintptr_t)to) % width == 0; }

int impi_accumulate(const void *from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Op op, MPI_Win win)
{
	uint64_t n = size(count, type, there, ttype);
	loop *f;
	if (n == 0 || type != ttype || op == MPI_NO_OP || !combines(op, type, &f) || !held(impi_readable, from, n) || !enter_busy())
		return 0;
	struct window *w = window_of(win);
	struct target *t = target_of(w, rank);
	char *to = place(t, disp, n);
	uint64_t width = impi_width[(uintptr_t)type];
	int done = to != NULL && apart(from, to, n) && ready(f, from, to, width) && lock(t);
	if (done) {
		w->used = 1;
		if (f != NULL)
			f(from, to, n / width);
		else
			copy(to, from, n);
		unlock(t);
	}
	leave();
	return done;
}

int impi_get_accumulate(const void *from, MPI_Count count, MPI_Datatype type, void *result, MPI_Count rcount, MPI_Datatype rtype, int rank, MPI_Aint disp, MPI_Count there, MPI_Datatype ttype, MPI_Op op, MPI_Win win)
{
	uint64_t n = size(rcount, rtype, there, ttype);
	int looks = op == MPI_NO_OP; // and changes nothing
	loop *f;
	if (n == 0 || rtype != ttype || !combines(op, ttype, &f) || !held(impi_writable, result, n))
		return 0;
	if (!looks && (type != ttype || bytes(count, type) != n || !held(impi_readable, from, n) || !apart(from, result, n)))
		return 0;
	if (!enter_busy())
		return 0;
	struct window *w = window_of(win);
	struct target *t = target_of(w, rank);
	char *to = place(t, disp, n);
	uint64_t width = impi_width[(uintptr_t)ttype];
	int done = to != NULL && apart(result, to, n) && (looks || (apart(from, to, n) && ready(f, from, to, width))) && lock(t);
	if (done) {
		w->used = 1;
		copy(result, to, n);
		if (f != NULL)
			f(from, to, n / width);
		else if (!looks)
			copy(to, from, n);
		unlock(t);
	}
	leave();
	return done;
}

int impi_compare_and_swap(const void *from, const void *compare, void *result, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Win win)
{
	uint64_t n = size(1, type, 1, type);
	int sort = n > 0 ? impi_number[(uintptr_t)type] & SORT : 0;
	if ((sort != SIGNED && sort != UNSIGNED) || !held(impi_readable, from, n) || !held(impi_readable, compare, n) || !held(impi_writable, result, n) || !enter_busy())
		return 0;
	struct window *w = window_of(win);
	struct target *t = target_of(w, rank);
	char *to = place(t, disp, n);
	int done = to != NULL && apart(result, to, n) && apart(result, from, n) && apart(result, compare, n) && lock(t);
	if (done) {
		w->used = 1;
		copy(result, to, n);
		if (memcmp(result, compare, n) == 0)
			copy(to, from, n);
		unlock(t);
	}
	leave();
	return done;
}

// order makes what this proc has stored visible before anything that it loads from now on. On
// x86-64 passing the gate has done that already.
static inline void order(void)
{
#if !defined(__x86_64__)
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

// idle ends a call that has nothing to do but to order what this proc has loaded and stored, and
// leaves each WINDOW_SELDOMth to Go, which makes progress: programs call it in loops, until another
// proc has done something. The gate is passed.
static inline int idle(struct window *w, int may)
{
	int done = may && (w->idle + 1) % WINDOW_SELDOM != 0;
	if (done)
		w->idle++;
	leave();
	if (done)
		order();
	return done;
}

int impi_flush(int rank, MPI_Win win)
{
	if (!enter_busy())
		return 0;
	struct window *w = window_of(win);
	return idle(w, target_of(w, rank) != NULL && w->passive);
}

int impi_flush_all(MPI_Win win)
{
	if (!enter_busy())
		return 0;
	struct window *w = window_of(win);
	return idle(w, w != NULL && w->whole && w->passive);
}

int impi_sync(MPI_Win win)
{
	if (!enter_busy())
		return 0;
	struct window *w = window_of(win);
	return idle(w, w != NULL);
}

// impi_fence is Go's Fence for windows whose operations are complete when their calls return: an
// Allreduce of the members' error codes, all of which have to be none. Otherwise Go does it.
int impi_fence(int assert, MPI_Win win)
{
	static const int32_t none;
	struct op o;
	if ((assert & ~(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE)) != 0 || !enter())
		return 0;
	struct window *w = window_of(win);
	if (w == NULL || !w->fences || w->board == NONE)
		return refuse();
	o.b = &x->boards[w->board];
	if (o.b->members != w->ranks || x->begun[w->board].first != NONE || !next_of(&o))
		return refuse();
	arrive(&o);
	if (!post(&o, ALLREDUCE, &none, sizeof none) || !all_posted(&o, ALLREDUCE, sizeof none))
		return refuse();
	for (uint32_t m = 0; m < o.b->members; m++)
		if (memcmp(data(o.b, m, o.step, sizeof none), &none, sizeof none) != 0)
			return refuse(); // Go reports what has failed
	w->fenced = 1;
	w->used = 0;
	return finish(&o);
}
