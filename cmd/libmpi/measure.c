#include "measure.h"
#include "fastpath.h"

struct measure impi_measure __attribute__((aligned(64)));

enum { AHEAD = 4 }; // how many calls before it is used a cache line is asked of the thread that has read it

// impi_called counts a call that has begun at a time of impi_clock.
void impi_called(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm)
{
	struct measure *m = &impi_measure;
	uint64_t ended = impi_clock();
	uint32_t on = atomic_load_explicit(&m->on, memory_order_relaxed);
	if (on & COUNTED) {
		struct sum *s = &m->sums[call];
		atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&s->time, ended - begun, memory_order_relaxed);
	}
	if (!(on & TRACED))
		return;
	uint64_t turn = atomic_load_explicit(&m->put, memory_order_relaxed);
	do {
		if (turn - atomic_load_explicit(&m->taken, memory_order_acquire) >= RING) {
			atomic_fetch_add_explicit(&m->dropped, 1, memory_order_relaxed);
			return;
		}
	} while (!atomic_compare_exchange_weak(&m->put, &turn, turn + 1));
	struct event *e = &m->events[turn % RING];
	e->begun = begun, e->ended = ended, e->size = size, e->comm = comm;
	e->call = (uint32_t)call, e->peer = peer, e->tag = tag;
	atomic_store_explicit(&e->turn, turn + 1, memory_order_release);
	__builtin_prefetch(&m->events[(turn + AHEAD) % RING], 1);
}

// impi_size is the size of a buffer, or -1 if only Go knows it.
int64_t impi_size(MPI_Count count, MPI_Datatype type)
{
	uintptr_t t = (uintptr_t)type;
	return t < TYPES && impi_width[t] > 0 && count >= 0 ? count * impi_width[t] : -1;
}
