// What blocking and nonblocking collective operations on the board have in common: see fastboard.c
// and faststart.c.

#ifndef IMPI_ON_BOARD_H
#define IMPI_ON_BOARD_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE first"
#endif
#include <sys/uio.h>
#include <time.h>
#include "copies.h"
#include "gate.h"
#include "loops.h"
#include "measure.h"
#include "patience.h"

// An operation under way.
struct op {
	struct board *b;
	uint64_t step;
	uint64_t posted; // bytes; 0: none
	int read;        // something in an area was read, or in a member's memory
	int lent;        // what is posted is lent
	uint64_t to;     // the members to which this one has lent memory
	unsigned what;   // the operation, if memory is lent
	const void *from; // that memory
	uint64_t size;
	int later;       // this member goes on before the others can see what it has posted
	// bytes of this member's own block in what it posts, which nobody reads; 0: there is none
	uint64_t block;
};

static inline _Atomic uint64_t *progress(struct board *b, uint32_t m) { return (_Atomic uint64_t *)(b->slot + SLOT_HEAD + m * MEMBER); }

static inline uint64_t index_of(uint64_t step) { return step >> STEP_BITS; }

static inline char *entry(struct board *b, uint32_t m, uint64_t step) { return b->slot + SLOT_HEAD + m * MEMBER + ENTRIES_AT + index_of(step) % ENTRIES * ENTRY; }

// data returns the memory of the n bytes that a member posts.
static inline char *data(struct board *b, uint32_t m, uint64_t step, uint64_t n)
{
	if (n <= INLINE)
		return entry(b, m, step) + 16;
	char *area = b->areas + (uint64_t)m * AREA;
	return n > ROOM ? area + ENTRIES * ROOM + index_of(step) % 2 * HALF : area + index_of(step) % ENTRIES * ROOM;
}

static inline uint64_t header(unsigned what, uint64_t n) { return (uint64_t)what << 56 | n; }

// others_asleep is the set of the members that sleep, except this one.
static inline uint64_t others_asleep(struct board *b) { return atomic_load((_Atomic uint64_t *)b->slot) & ~((uint64_t)1 << b->me); }

// next_of makes o the next operation of its communicator, if C may do that.
static inline int next_of(struct op *o)
{
	if (o->b->busy || o->b->ops % SELDOM == SELDOM - 1)
		return 0;
	o->step = (GLANCE(o->b->number) + 1) << STEP_BITS;
	o->posted = 0;
	o->read = o->lent = o->later = 0;
	o->to = o->block = 0;
	return 1;
}

// start passes the gate and makes o the next operation of a communicator, if C may do that.
// Otherwise it leaves the gate again and returns 0: Go does the operation.
static inline int start(struct op *o, MPI_Comm comm)
{
	if (!enter())
		return 0;
	struct comm *c = find(comm);
	if (c != NULL && c->board != NONE) {
		o->b = &x->boards[c->board];
		if (x->begun[c->board].first == NONE && next_of(o))
			return 1; // otherwise Go first waits for the operations that were started before
	}
	leave();
	return 0;
}

// refuse leaves a call to Go.
static inline int refuse(void)
{
	leave();
	return 0;
}

// done_at_once ends a call in which no member has anything to send, so that none waits for another.
static inline int done_at_once(struct op *o)
{
	o->b->ops++;
	leave();
	return 1;
}

// give_back says that this member has read all that it needs of the operation, which cannot fail
// any more.
static inline void give_back(struct op *o)
{
	if (o->read)
		atomic_exchange(progress(o->b, o->b->me), o->step | READ);
	o->read = 0;
}

static inline int reached(struct op *o, uint32_t m, _Atomic uint64_t *word, uint64_t want);

// returned reports whether those to whom memory is lent have read it, or do within a few looks. It
// returns 0 also if one of them cannot read it, and asks for it: Go then posts it.
static inline int returned(struct op *o)
{
	for (uint64_t left = o->to; left != 0; left &= left - 1) {
		uint32_t m = __builtin_ctzll(left);
		_Atomic uint64_t *at = progress(o->b, m), *asked = at + ASKED_AT / sizeof *at;
		if (!reached(o, m, at, o->step | READ) || LOAD(*asked) == o->step)
			return 0;
	}
	return 1;
}

// tally counts an operation, and notes what this member has posted in it.
static inline void tally(struct op *o, int posts)
{
	struct board *b = o->b;
	if (posts) {
		b->written[index_of(o->step) % ENTRIES] = o->step;
		if (o->posted > ROOM)
			b->rooms[index_of(o->step) % 2] = o->step;
	}
	atomic_store_explicit(&b->number, index_of(o->step), memory_order_relaxed);
	b->ops++;
}

// finish ends an operation that is done, once nobody needs this member's memory any more. From then
// on Go must not do it again.
static inline int finish(struct op *o)
{
	struct board *b = o->b;
	tally(o, o->posted > 0);
	give_back(o);
	int asleep = others_asleep(b) != 0;
	GoInt32 slot = (GoInt32)(b - x->boards);
	int over = returned(o);
	leave();
	if (!over)
		return fastPathReturned(slot, o->to, o->step, o->what, W(o->from), o->size);
	if (asleep)
		fastPathRing(slot);
	return 1;
}

// tell writes a step where the others look for it. The caller then looks whether one of them
// sleeps, and has to wake it. An exchange waits until the others can see the step, so that no
// sleeper is missed. A store, for o->later, lets the program go on: it may miss a member that has
// just gone to sleep, which looks again a moment later.
static inline void tell(struct op *o, _Atomic uint64_t *word)
{
	if (o->later)
		STORE(*word, o->step);
	else
		atomic_exchange(word, o->step);
}

// arrive says that this member has begun the operation.
static inline void arrive(struct op *o) { atomic_exchange(progress(o->b, o->b->me), o->step); }

// until waits until a word is at least want. It gives up where Go should wait, which can sleep,
// finds out by its yields that other threads compute, and can wake those that sleep.
static inline int until(struct op *o, _Atomic uint64_t *word, uint64_t want)
{
	if (others_asleep(o->b) != 0)
		return 0;
	for (int i = x->polls; i > 0 && !GLANCE(x->leave_asked); i--) {
		rest();
		if (LOAD(*word) >= want)
			return 1;
	}
	if (!x->yields || x->serves)
		return 0;
	uint64_t begun = impi_nanoseconds(), before = begun, after;
	do {
		sched_yield();
		int over = LOAD(*word) >= want;
		for (int i = 1; i < LOOKS && !over; i++) {
			rest();
			over = LOAD(*word) >= want;
		}
		after = impi_nanoseconds();
		observe(after - before);
		if (over)
			return 1;
		if (after - before > STOLEN)
			return 0;
		before = after;
	} while (after - begun < PATIENCE && !GLANCE(x->leave_asked));
	return 0;
}

TIMED static int timed_until(struct op *o, uint32_t m, _Atomic uint64_t *word, uint64_t want)
{
	uint64_t begun = impi_clock();
	int over = until(o, word, want);
	x->waited[o->b - x->boards][m] += impi_clock() - begun;
	return over;
}

// reached is until for a word of a member, with the time that it takes counted if that is wanted.
static inline int reached(struct op *o, uint32_t m, _Atomic uint64_t *word, uint64_t want)
{
	if (LOAD(*word) >= want)
		return 1;
	return COUNTS ? timed_until(o, m, word, want) : until(o, word, want);
}

// vacant waits until n bytes can be posted.
static inline int vacant(struct op *o, uint64_t n)
{
	struct board *b = o->b;
	uint64_t was = b->written[index_of(o->step) % ENTRIES];
	if (n > ROOM && b->rooms[index_of(o->step) % 2] > was)
		was = b->rooms[index_of(o->step) % 2];
	if (was == 0 || b->seen > was)
		return 1;
	uint64_t least = UINT64_MAX;
	for (uint32_t m = 0; m < b->members; m++) {
		if (m == b->me)
			continue;
		if (!reached(o, m, progress(b, m), was | READ))
			return 0;
		uint64_t at = LOAD(*progress(b, m));
		least = at < least ? at : least;
	}
	b->seen = least;
	return 1;
}

// copy_out copies n bytes to where others read them.
static inline void copy_out(char *to, const char *from, uint64_t n)
{
	if (n >= FAR_LEAST)
		far_move(to, from, n);
	else
		move(to, from, n);
}

// publish is post once there is room.
static inline void publish(struct op *o, unsigned what, const void *from, uint64_t n)
{
	struct board *b = o->b;
	char *to = data(b, b->me, o->step, n);
	if (o->block == 0 || n <= INLINE)
		copy_out(to, from, n);
	else {
		uint64_t at = b->me * o->block, behind = at + o->block;
		copy_out(to, from, at);
		copy_out(to + behind, (const char *)from + behind, n - behind);
	}
	char *e = entry(b, b->me, o->step);
	*(uint64_t *)(e + 8) = header(what, n);
	tell(o, (_Atomic uint64_t *)e);
	o->posted = n;
}

// post posts n bytes.
static inline int post(struct op *o, unsigned what, const void *from, uint64_t n)
{
	struct board *b = o->b;
	if ((n > INLINE && !b->backed[n > ROOM]) || !vacant(o, n))
		return 0;
	publish(o, what, from, n);
	return 1;
}

// give posts n bytes, or lends them to a set of members.
static inline int give(struct op *o, unsigned what, const void *from, uint64_t n, uint64_t to)
{
	if (!o->lent)
		return post(o, what, from, n);
	if (!vacant(o, LEND_SIZE))
		return 0;
	char *e = entry(o->b, o->b->me, o->step);
	*(uint64_t *)(e + 16) = (uintptr_t)from;
	*(uint64_t *)(e + 8) = header(what | LENT, n);
	atomic_exchange((_Atomic uint64_t *)e, o->step);
	o->posted = LEND_SIZE;
	o->to = to;
	o->what = what;
	o->from = from;
	o->size = n;
	return 1;
}

// here reports whether a member has posted n bytes, or lends them.
static inline int here(struct op *o, unsigned what, uint32_t m, uint64_t n)
{
	char *e = entry(o->b, m, o->step);
	return LOAD(*(_Atomic uint64_t *)e) == o->step && *(uint64_t *)(e + 8) == header(o->lent ? what | LENT : what, n);
}

// posted waits until a member has posted n bytes, or lends them.
static inline int posted(struct op *o, unsigned what, uint32_t m, uint64_t n)
{
	char *e = entry(o->b, m, o->step);
	if (!reached(o, m, (_Atomic uint64_t *)e, o->step) || !here(o, what, m, n))
		return 0; // Go reports what is wrong
	o->read |= o->lent || n > INLINE;
	return 1;
}

// impi_between is memory through which take copies what others lend, where copying it straight to
// its destination would be slow (impi_is_slow). Only a thread that has passed the gate may use it.
extern char impi_between[PIECE + AHEAD_PAGE] __attribute__((visibility("hidden")));

// take copies n bytes from offset at on of the whole that a member has posted or lends. The
// member's key, which is read in the same system call, proves that the memory is still its own.
static inline int take(struct op *o, uint32_t m, void *to, uint64_t n, uint64_t at, uint64_t whole)
{
	if (!o->lent) {
		move(to, data(o->b, m, o->step, whole) + at, n);
		return 1;
	}
	const struct memory_key *f = &o->b->keys[m];
	uint64_t found[2];
	char *from = (char *)(uintptr_t)*(uint64_t *)(entry(o->b, m, o->step) + 16) + at;
	int slow = n >= AHEAD_LEAST && impi_is_slow(to, from);
	uint64_t most = slow ? PIECE : FETCH;
	for (uint64_t done = 0, k; done < n; done += k) {
		k = n - done < most ? n - done : most;
		char *into = slow ? impi_between + (uintptr_t)(from + done) % AHEAD_PAGE : (char *)to + done;
		struct iovec local[] = { { found, sizeof found }, { into, k } };
		struct iovec remote[] = { { (void *)(uintptr_t)f->addr, sizeof found }, { from + done, k } };
		ssize_t got = process_vm_readv((pid_t)f->process, local, 2, remote, 2, 0);
		if (got != (ssize_t)(k + sizeof found) || found[0] != f->cookie[0] || found[1] != f->cookie[1] || GLANCE(x->leave_asked))
			return 0;
		if (slow)
			memcpy((char *)to + done, into, k);
	}
	return 1;
}

// all_posted waits until all other members have posted n bytes.
static inline int all_posted(struct op *o, unsigned what, uint64_t n)
{
	struct board *b = o->b;
	for (uint32_t m = b->me + 1; m < b->members; m++)
		if (!posted(o, what, m, n))
			return 0;
	for (uint32_t m = 0; m < b->me; m++)
		if (!posted(o, what, m, n))
			return 0;
	return 1;
}

static inline int readable(const void *p, uint64_t n) { return held(impi_readable, p, n); }
static inline int writable(const void *p, uint64_t n) { return held(impi_writable, p, n); }

static inline int overlap(const void *a, uint64_t n, const void *b, uint64_t m) { return (uintptr_t)a < (uintptr_t)b + m && (uintptr_t)b < (uintptr_t)a + n; }

// block reports whether C handles blocks of n bytes, and notes whether they are lent. count is the
// most blocks that a member posts or gets, posts how many one posts that posts any.
static inline int block(struct op *o, uint64_t n, uint32_t count, uint32_t posts)
{
	if (n == 0 || n > LEND_MOST || n * count > LEND_MOST)
		return 0;
	o->lent = o->b->lend != 0 && n * posts >= o->b->lend;
	return o->lent || (n * count <= MOST && (o->b->members > 2 || n <= PAIR_MOST));
}

// others is the set of all members but this one.
static inline uint64_t others(struct board *b) { return ~(uint64_t)0 >> (64 - b->members) & ~((uint64_t)1 << b->me); }

// same reports whether two buffers have the same elements and the same length.
static inline int same(MPI_Count scount, MPI_Datatype stype, MPI_Count rcount, MPI_Datatype rtype)
{
	return bytes(scount, stype) == bytes(rcount, rtype) && bytes(scount, stype) != UINT64_MAX && impi_kind[(uintptr_t)stype] == impi_kind[(uintptr_t)rtype];
}

// no_bytes reports whether neither buffer has anything in it. The first may be MPI_IN_PLACE.
static inline int no_bytes(const void *send, MPI_Count scount, MPI_Datatype stype, MPI_Count rcount, MPI_Datatype rtype)
{
	return bytes(rcount, rtype) == 0 && (send == MPI_IN_PLACE || bytes(scount, stype) == 0);
}

// root_in reports whether there is a member with this rank.
static inline int root_in(struct board *b, int root) { return root >= 0 && (uint32_t)root < b->members; }

// collect copies the blocks of n bytes that the other members have posted or lend, each from offset
// at on.
static inline int collect(struct op *o, char *recv, uint64_t n, uint64_t at, uint64_t whole)
{
	for (uint32_t m = 0; m < o->b->members; m++)
		if (m != o->b->me && !take(o, m, recv + m * n, n, at, whole))
			return 0;
	return 1;
}

// aligned reports whether a buffer may have elements of size bytes, which is mostly a power of 2.
static inline int aligned(const void *p, uint64_t size) { return ((uintptr_t)p & (size - 1)) == 0; }

// impi_combine combines the operands of all members, from the last rank to the first, and stores
// the result. own is this member's. It changes nothing and returns 0 if there are NaNs: which of
// several becomes the result Go decides for all members.
int impi_combine(struct op *o, loop *f, const void *own, void *recv, uint64_t n, MPI_Datatype type) __attribute__((visibility("hidden")));

#endif
