#include "measure.h"
#include "fastpath.h"
#include <sched.h>

struct measure impi_measure __attribute__((aligned(64)));

enum { YIELD = 64 }; // looks at a lock before the core is offered
enum { AHEAD = 4 }; // how many calls before it is used a cache line is asked of the thread that has read it

// put adds the n events of an entry to those that wait to be written, or counts its calls as left out.
static void put(struct measure *m, const struct event *from, uint32_t n, uint64_t begun, uint64_t ended)
{
	uint64_t turn = atomic_load_explicit(&m->put, memory_order_relaxed);
	do {
		if (turn + n - atomic_load_explicit(&m->taken, memory_order_acquire) > RING) {
			for (uint32_t i = 0; i < n; i++)
				atomic_fetch_add_explicit(&m->dropped, from[i].times, memory_order_relaxed);
			return;
		}
	} while (!atomic_compare_exchange_weak(&m->put, &turn, turn + n));
	for (uint32_t i = 0; i < n; i++) {
		struct event *e = &m->events[(turn + i) % RING];
		e->begun = begun, e->ended = ended, e->size = from[i].size, e->comm = from[i].comm;
		e->call = from[i].call, e->peer = from[i].peer, e->tag = from[i].tag, e->source = from[i].source;
		e->times = from[i].times, e->more = n - 1 - i;
		atomic_store_explicit(&e->turn, turn + i + 1, memory_order_release);
	}
	__builtin_prefetch(&m->events[(turn + n - 1 + AHEAD) % RING], 1);
}

static void lock(struct burst *b)
{
	for (int i = 1; atomic_exchange_explicit(&b->lock, 1, memory_order_acquire) != 0; i++)
		if (i % YIELD == 0)
			sched_yield(); // who has it may wait for this core
}

static void unlock(struct burst *b) { atomic_store_explicit(&b->lock, 0, memory_order_release); }

// close writes what has been merged. The burst is locked, here and below.
static void close_burst(struct measure *m)
{
	struct burst *b = &m->burst;
	if (b->kinds > 0)
		put(m, b->calls, b->kinds, b->from, b->last);
	b->kinds = 0;
}

// merge adds a short call to the burst, or begins another.
static void merge(struct measure *m, const struct event *e)
{
	struct burst *b = &m->burst;
	uint32_t k = 0;
	if (b->kinds > 0 && ((int64_t)(e->begun - b->last) > (int64_t)m->gap || (int64_t)(e->ended - b->from) > (int64_t)m->longest))
		close_burst(m);
	while (k < b->kinds && b->calls[k].call != e->call)
		k++;
	if (k == KINDS) {
		close_burst(m);
		k = 0;
	}
	if (b->kinds == 0)
		b->from = b->last = e->begun;
	if ((int64_t)(e->ended - b->last) > 0)
		b->last = e->ended;
	struct event *s = &b->calls[k];
	if (k == b->kinds) {
		s->call = e->call, s->peer = e->peer, s->tag = e->tag, s->source = e->source, s->size = e->size, s->comm = e->comm, s->times = 1;
		b->kinds++;
		return;
	}
	s->times++;
	if (e->size > 0)
		s->size = (s->size > 0 ? s->size : 0) + e->size;
	if (s->peer != e->peer)
		s->peer = NOBODY;
	if (s->tag != e->tag)
		s->tag = NO_TAG;
	if (s->source != e->source)
		s->source = NOBODY;
	if (s->comm != e->comm)
		s->comm = 0;
}

// settle merges the call that was announced, if it is over.
static void settle(struct measure *m)
{
	struct burst *b = &m->burst;
	if (b->pending.begun == 0 || atomic_load_explicit(&b->open, memory_order_acquire) != 0)
		return;
	merge(m, &b->pending);
	b->pending.begun = 0;
}

// impi_pends announces a call that receives: it is merged, as one that was over at once, if impi_over is
// the next that is said of it. Otherwise impi_called says more. It returns 0 if another thread's waits.
int impi_pends(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm)
{
	struct measure *m = &impi_measure;
	struct burst *b = &m->burst;
	if (!LATE)
		return 0;
	lock(b);
	settle(m);
	int free = b->pending.begun == 0;
	if (free) {
		b->pending.begun = b->pending.ended = begun, b->pending.size = size, b->pending.comm = comm;
		b->pending.call = (uint32_t)call, b->pending.peer = peer, b->pending.tag = tag, b->pending.source = NOBODY;
		atomic_store_explicit(&b->open, 1, memory_order_relaxed);
	}
	unlock(b);
	return free;
}

// impi_since is the beginning of a call that has begun at a time of impi_begun_late, and is not over at once.
uint64_t impi_since(uint64_t begun)
{
	if (begun == 0)
		begun = atomic_load_explicit(&impi_measure.burst.stalled, memory_order_relaxed);
	return begun != 0 ? begun : impi_clock();
}

// impi_called counts a call that has begun at a time of impi_clock; 0: it was over at once, unless it stalled.
void impi_called(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm)
{
	impi_exchanged(call, begun, peer, tag, NOBODY, size, comm);
}

// impi_exchanged is impi_called for a call that sends and receives, from source.
void impi_exchanged(int call, uint64_t begun, int peer, int tag, int source, int64_t size, uintptr_t comm)
{
	struct measure *m = &impi_measure;
	uint64_t ended = impi_clock();
	uint32_t on = atomic_load_explicit(&m->on, memory_order_relaxed);
	if (on & COUNTED && begun != 0) {
		struct sum *s = &m->sums[call];
		atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&s->time, ended - begun, memory_order_relaxed);
	}
	if (!(on & TRACED))
		return;
	if (begun == 0)
		begun = atomic_load_explicit(&m->burst.stalled, memory_order_relaxed);
	if (begun == 0)
		begun = ended;
	struct event e = { .begun = begun, .ended = ended, .size = size, .comm = comm, .call = (uint32_t)call, .peer = peer, .tag = tag, .source = source, .times = 1 };
	if (!(on & MERGED)) {
		put(m, &e, 1, begun, ended);
		return;
	}
	struct burst *b = &m->burst;
	lock(b);
	if (b->pending.begun == begun && b->pending.call == e.call) { // it has waited
		b->pending.begun = 0;
		impi_over();
	}
	settle(m);
	if ((int64_t)(ended - begun) < (int64_t)m->brief)
		merge(m, &e);
	else {
		close_burst(m);
		put(m, &e, 1, begun, ended);
	}
	unlock(b);
}

// impi_size is the size of a buffer, or -1 if only Go knows it.
int64_t impi_size(MPI_Count count, MPI_Datatype type)
{
	uintptr_t t = (uintptr_t)type;
	return t < TYPES && impi_width[t] > 0 && count >= 0 ? count * impi_width[t] : -1;
}
