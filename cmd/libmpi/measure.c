#include "measure.h"
#include "fastpath.h"
#include <sched.h>

struct measure impi_measure __attribute__((aligned(64)));
__thread char impi_thread __attribute__((tls_model("initial-exec")));

enum { YIELD = 64 }; // looks at a lock before the core is offered
#define PAUSED (1u << 31) // of event.more: something else came between the calls
// so many calls before it is used the cache line of an event is fetched from the thread that has
// read it
enum { AHEAD = 4 };

// put adds the n events of an entry to those that wait to be written, or counts its calls as left
// out. how is PAUSED or 0.
static void put(struct measure *m, const struct event *from, uint32_t n, uint64_t begun, uint64_t ended, uint32_t how)
{
	uint64_t turn = atomic_load_explicit(&m->turns, memory_order_relaxed);
	do {
		if (turn + n - atomic_load_explicit(&m->taken, memory_order_acquire) > RING) {
			for (uint32_t i = 0; i < n; i++)
				atomic_fetch_add_explicit(&m->dropped, from[i].times, memory_order_relaxed);
			return;
		}
	} while (!atomic_compare_exchange_weak(&m->turns, &turn, turn + n));
	for (uint32_t i = 0; i < n; i++) {
		struct event *e = &m->events[(turn + i) % RING];
		e->begun = begun, e->ended = ended, e->size = from[i].size, e->comm = from[i].comm;
		e->call = from[i].call, e->peer = from[i].peer, e->tag = from[i].tag, e->source = from[i].source;
		e->times = from[i].times, e->more = (n - 1 - i) | how;
		atomic_store_explicit(&e->number, turn + i + 1, memory_order_release);
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

// close_burst passes on what has been merged, to be written. The burst is locked, here and below.
static void close_burst(struct measure *m)
{
	struct burst *b = &m->burst;
	if (b->kinds > 0)
		put(m, b->calls, b->kinds, b->from, b->last, 0);
	b->kinds = 0;
}

// end_streak is the method ends in run.go of internal/engine/calls.
static void end_streak(struct run *r)
{
	if (r->since == 0)
		return;
	r->steady = r->steady + r->since < 4 * STEADY ? r->steady + r->since : 4 * STEADY;
	atomic_store_explicit(&r->streak, r->steady >= STEADY ? ENOUGH - AGAIN : 0, memory_order_relaxed);
	r->since = 0;
	r->steady /= 2;
}

// merge adds short calls of a name to the burst, or begins another.
static void merge(struct measure *m, const struct event *e)
{
	struct burst *b = &m->burst;
	uint32_t k = 0;
	if ((int64_t)(e->begun - b->last) > (int64_t)m->gap) {
		close_burst(m);
		end_streak(&b->run);
	} else if (b->kinds > 0 && (int64_t)(e->ended - b->from) > (int64_t)m->longest)
		close_burst(m);
	uint32_t streak = atomic_load_explicit(&b->run.streak, memory_order_relaxed);
	if (streak < ENOUGH)
		atomic_store_explicit(&b->run.streak, streak + e->times, memory_order_relaxed);
	b->run.since += e->times;
	while (k < b->kinds && b->calls[k].call != e->call)
		k++;
	if (k == KINDS) {
		close_burst(m);
		k = 0;
	}
	if (b->kinds == 0)
		b->from = b->last = (int64_t)(e->begun - b->last) > 0 ? e->begun : b->last;
	if ((int64_t)(e->ended - b->last) > 0)
		b->last = e->ended;
	struct event *s = &b->calls[k];
	if (k == b->kinds) {
		s->call = e->call, s->peer = e->peer, s->tag = e->tag, s->source = e->source, s->size = e->size, s->comm = e->comm, s->times = e->times;
		b->kinds++;
		return;
	}
	s->times += e->times;
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

// settle_run adds the calls that were counted since the last look at the clock to the burst, as if
// the last one had ended at until. If that time is too long for calls that follow each other
// closely, they become an entry of their own, which is marked as PAUSED.
static void settle_run(struct measure *m, uint64_t until)
{
	struct burst *b = &m->burst;
	uint64_t from = b->last;
	struct event list[TALLIES];
	uint32_t kinds = 0;
	if ((int64_t)(until - from) < 0)
		until = from;
	for (int k = 0; k < TALLIES; k++) {
		struct tally *t = &b->run.tallies[k];
		int64_t n = (int64_t)(atomic_load_explicit(&t->total, memory_order_relaxed) - t->taken);
		if (n <= 0) // below 0 if a counted receive has waited later
			continue;
		t->taken += (uint64_t)n;
		list[kinds++] = (struct event){ .begun = from, .ended = until, .size = t->size * n, .comm = t->comm, .call = t->call, .peer = t->peer, .tag = t->tag, .source = NOBODY, .times = (uint32_t)n };
	}
	if (kinds == 0)
		return;
	if (until - from <= m->gap) {
		for (uint32_t k = 0; k < kinds; k++)
			merge(m, &list[k]);
		return;
	}
	close_burst(m);
	put(m, list, kinds, from, until, PAUSED);
	b->last = until;
	end_streak(&b->run);
}

// renew has the next calls that are like this one counted without a look at the clock, if it is
// part of a run, and the run is this thread's. The caller has looked at the clock for this call;
// all calls that were counted before are in the burst.
static void renew(struct burst *b, const struct event *e)
{
	struct run *r = &b->run;
	int k = e->call == CALL_SEND ? SENDS : e->call == CALL_RECV ? RECEIVES : TALLIES;
	if (k == TALLIES || atomic_load_explicit(&r->streak, memory_order_relaxed) < ENOUGH || e->size < 0 || e->size > RUN_MOST || e->peer < 0)
		return;
	if (r->owner == 0)
		r->owner = (uintptr_t)&impi_thread;
	if (r->owner != (uintptr_t)&impi_thread)
		return;
	struct tally *t = &r->tallies[k];
	t->call = e->call, t->peer = e->peer, t->tag = e->tag, t->size = e->size, t->comm = e->comm;
	r->left = STRIDE;
}

// impi_uncount takes back a receive that was counted and then had to wait, and returns the time.
uint64_t impi_uncount(void)
{
	struct measure *m = &impi_measure;
	struct burst *b = &m->burst;
	uint64_t now = impi_clock();
	lock(b);
	atomic_fetch_sub_explicit(&b->run.tallies[RECEIVES].total, 1, memory_order_relaxed);
	settle(m);
	settle_run(m, now);
	unlock(b);
	return now;
}

// impi_pends announces a call that receives. If impi_over follows, the call is merged as one that
// was over at once; otherwise impi_called has to follow. It returns 0 if a call of another thread
// is announced already, and where calls are not merged.
int impi_pends(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm)
{
	struct measure *m = &impi_measure;
	struct burst *b = &m->burst;
	if (!LATE)
		return 0;
	lock(b);
	settle(m);
	settle_run(m, begun);
	int free = b->pending.begun == 0;
	if (free) {
		b->pending.begun = b->pending.ended = begun, b->pending.size = size, b->pending.comm = comm, b->pending.times = 1;
		b->pending.call = (uint32_t)call, b->pending.peer = peer, b->pending.tag = tag, b->pending.source = NOBODY;
		atomic_store_explicit(&b->open, 1, memory_order_relaxed);
		renew(b, &b->pending);
	}
	unlock(b);
	return free;
}

// impi_since is the beginning of a call that has begun at a time of impi_begun_late, and is not
// over at once.
uint64_t impi_since(uint64_t begun)
{
	if (begun == 0)
		begun = atomic_load_explicit(&impi_measure.burst.stalled, memory_order_relaxed);
	return begun != 0 ? begun : impi_clock();
}

// impi_called counts a call that has begun at a time of impi_clock; 0: it was over at once, unless
// it stalled.
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
		put(m, &e, 1, begun, ended, 0);
		return;
	}
	struct burst *b = &m->burst;
	lock(b);
	if (b->pending.begun == begun && b->pending.call == e.call) { // it has waited
		b->pending.begun = 0;
		impi_over();
	}
	settle(m);
	settle_run(m, begun);
	if ((int64_t)(ended - begun) < (int64_t)m->brief) {
		merge(m, &e);
		renew(b, &e);
	} else {
		close_burst(m);
		end_streak(&b->run);
		put(m, &e, 1, begun, ended, 0);
	}
	unlock(b);
}

// impi_size is the size of a buffer, or -1 if only Go knows it.
int64_t impi_size(MPI_Count count, MPI_Datatype type)
{
	uintptr_t t = (uintptr_t)type;
	return t < TYPES && impi_width[t] > 0 && count >= 0 ? count * impi_width[t] : -1;
}
