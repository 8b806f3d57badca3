// Nonblocking collective operations of procs of one host without entering Go, on the board that
// they share. A member posts when it starts one, and reads in a call that completes it.
//
// Each function does a call completely, or lets Go do it. Go takes over the operations that are
// under way when it closes the gate: see package internal/engine/collective, board_start.go. So C
// starts none while Go has one, and nobody waits for long for what a member in C has not read.

#define _GNU_SOURCE
#include "onboard.h"
#include "faststart.h"
#include "requests.h"

uint32_t impi_rings;

// A member looks for room ROOM_LOOKS times before it leaves a start to Go. A test looks TEST_LOOKS
// times for posts; after VAIN_TESTS tests in vain Go tests the request, since it looks at all
// links.
enum { ROOM_LOOKS = 64, TEST_LOOKS = 8, VAIN_TESTS = 3 };

void impi_ring(uint32_t boards)
{
	for (; boards != 0; boards &= boards - 1)
		fastPathRing(__builtin_ctz(boards));
}

static inline void wake_later(struct op *o)
{
	if (others_asleep(o->b) != 0)
		impi_rings |= 1u << (o->b - x->boards);
}

// vacant_soon is vacant without waiting for more than a moment.
static int vacant_soon(struct op *o, uint64_t n)
{
	struct board *b = o->b;
	uint64_t was = b->written[index_of(o->step) % ENTRIES], least = UINT64_MAX;
	if (n > ROOM && b->rooms[index_of(o->step) % 2] > was)
		was = b->rooms[index_of(o->step) % 2];
	if (was == 0 || b->seen > was)
		return 1;
	for (uint32_t m = 0; m < b->members; m++) {
		if (m == b->me)
			continue;
		uint64_t at = LOAD(*progress(b, m));
		for (int i = x->polls < ROOM_LOOKS ? x->polls : ROOM_LOOKS; at < (was | READ); i--, at = LOAD(*progress(b, m))) {
			if (i <= 0 || GLANCE(x->leave_asked) || others_asleep(b) != 0)
				return 0;
			rest();
		}
		least = at < least ? at : least;
	}
	b->seen = least;
	return 1;
}

// begin passes the gate and makes o the next operation of a communicator, if C may start it.
static inline int begin(struct op *o, MPI_Comm comm, MPI_Request *out)
{
	if (!known(impi_writable, out, sizeof *out) || !enter())
		return 0;
	struct comm *c = find(comm);
	if (c != NULL && c->board != NONE && x->spare != NONE) {
		o->b = &x->boards[c->board];
		if (next_of(o))
			return 1;
	}
	leave();
	return 0;
}

// small reports whether C starts operations with blocks of n bytes. count is the most blocks that a
// member posts or gets, posts how many one posts that posts any. All members get the same answer.
static inline int small(struct op *o, uint64_t n, uint32_t count, uint32_t posts)
{
	return n > 0 && n <= MOST && n * count <= MOST && n * posts < START_MOST && (o->b->members > 2 || n <= PAIR_MOST) && (o->b->lend == 0 || n * posts < o->b->lend);
}

// post_soon reports whether n bytes can be posted now. What this member has posted in an operation
// that is under way must stay there, as Go may look at it.
static inline int post_soon(struct op *o, uint64_t n)
{
	int32_t first = x->begun[o->b - x->boards].first;
	if (first != NONE && index_of(o->step) - index_of(x->table[first].step) >= (n > ROOM ? 2 : ENTRIES))
		return 0;
	return (n <= INLINE || o->b->backed[n > ROOM]) && vacant_soon(o, n);
}

// An operation that begins. The buffers are NULL where they do not matter.
struct call {
	unsigned what;
	int32_t root;
	uint64_t n; // bytes of a block
	const void *send;
	void *recv;
	const void *post; // what this member posts
	uint64_t size;    // of it
	int posts, reads; // whether it posts something, and needs what others do
	MPI_Datatype type;
	MPI_Op op;
	loop *f;
};

// note makes the request of an operation that is under way.
static void note(struct op *o, struct call *a, MPI_Comm comm, MPI_Request *out)
{
	int32_t slot = (int32_t)(o->b - x->boards);
	struct begun *list = &x->begun[slot];
	struct request *r = new(a->reads ? POSTED : DONE, comm, ON_BOARD);
	int32_t i = (int32_t)(r - x->table);
	r->what = a->what;
	r->from = 0;
	*out = handle(r);
	if (!a->reads)
		return;
	r->rank = a->root;
	r->room = a->n;
	r->send = a->send;
	r->buf = a->recv;
	r->step = o->step;
	r->board = slot;
	r->type = (uint32_t)(uintptr_t)a->type;
	r->kind = a->type == MPI_DATATYPE_NULL ? 0 : impi_kind[r->type];
	r->op = a->f == NULL ? 0 : impi_op[(uintptr_t)a->op];
	r->loop = (void *)a->f;
	if (list->first == NONE)
		list->first = i;
	else
		x->table[list->last].next = i;
	list->last = i;
	x->starts++;
}

// begun starts an operation whose post is possible, and leaves the gate. This member's progress on
// the board becomes the first operation of which it still has to read something, or the last one if
// there is none.
//
// If the last waits have found everything there (the program computes before it waits), begun does
// not wait until the other cores can see what it writes: see tell. Otherwise it does: looking at an
// entry that is about to be written takes its cache line from the writer.
static int begun(struct op *o, struct call *a, MPI_Comm comm, MPI_Request *out)
{
	struct begun *list = &x->begun[o->b - x->boards];
	int alone = list->first == NONE;
	o->later = list->found >= FOUND && o->b->rechecks;
	if (alone)
		tell(o, progress(o->b, o->b->me));
	if (a->posts)
		publish(o, a->what, a->post, a->size);
	tally(o, a->posts);
	note(o, a, comm, out);
	wake_later(o);
	leave_and_ring();
	return 1;
}

// start_done starts an operation in which no member has anything to send, so that it is over.
static int start_done(struct op *o, struct call *a, MPI_Comm comm, MPI_Request *out)
{
	a->reads = 0;
	note(o, a, comm, out);
	return done_at_once(o);
}

int impi_ibarrier(MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = BARRIER, .type = MPI_DATATYPE_NULL, .post = "", .posts = 1, .reads = 1 };
	if (!begin(&o, comm, out))
		return 0;
	return post_soon(&o, 0) ? begun(&o, &a, comm, out) : refuse();
}

int impi_ibcast(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = BCAST, .root = root, .n = bytes(count, type), .recv = buf, .post = buf, .type = type };
	if (a.n >= START_MOST || !begin(&o, comm, out))
		return 0;
	if (a.n == 0 && root_in(o.b, root))
		return start_done(&o, &a, comm, out);
	a.size = a.n;
	a.posts = o.b->me == (uint32_t)root;
	a.reads = !a.posts;
	if (!root_in(o.b, root) || (a.posts ? !readable(buf, a.n) || !post_soon(&o, a.size) : !writable(buf, a.n)))
		return refuse();
	return begun(&o, &a, comm, out);
}

int impi_igather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = GATHER, .root = root, .send = send, .post = send };
	if (!begin(&o, comm, out))
		return 0;
	if (!root_in(o.b, root))
		return refuse();
	if ((uint32_t)root != o.b->me) {
		a.n = a.size = bytes(scount, stype);
		if (a.n == 0)
			return start_done(&o, &a, comm, out);
		a.type = stype;
		a.posts = 1;
		if (!small(&o, a.n, 1, 1) || !readable(send, a.n) || !post_soon(&o, a.n))
			return refuse();
		return begun(&o, &a, comm, out);
	}
	if (no_bytes(send, scount, stype, rcount, rtype))
		return start_done(&o, &a, comm, out);
	a.n = bytes(rcount, rtype);
	a.type = rtype;
	a.recv = recv;
	a.reads = 1;
	uint64_t all = a.n * o.b->members;
	if (!small(&o, a.n, o.b->members, 1) || !writable(recv, all))
		return refuse();
	if (send == MPI_IN_PLACE)
		a.send = NULL;
	else if (!same(scount, stype, rcount, rtype) || !readable(send, a.n) || overlap(send, a.n, recv, all))
		return refuse();
	return begun(&o, &a, comm, out);
}

int impi_iscatter(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = SCATTER, .root = root, .recv = recv, .post = send };
	if (!begin(&o, comm, out))
		return 0;
	if (!root_in(o.b, root))
		return refuse();
	if ((uint32_t)root != o.b->me) {
		a.n = bytes(rcount, rtype);
		if (a.n == 0)
			return start_done(&o, &a, comm, out);
		a.type = rtype;
		a.reads = 1;
		if (!small(&o, a.n, o.b->members, o.b->members) || !writable(recv, a.n))
			return refuse();
		return begun(&o, &a, comm, out);
	}
	if (no_bytes(recv, rcount, rtype, scount, stype))
		return start_done(&o, &a, comm, out);
	a.n = bytes(scount, stype);
	a.size = a.n * o.b->members;
	a.type = stype;
	a.posts = 1;
	if (!small(&o, a.n, o.b->members, o.b->members) || !readable(send, a.size))
		return refuse();
	if (recv != MPI_IN_PLACE && (!same(scount, stype, rcount, rtype) || !writable(recv, a.n) || overlap(send, a.size, recv, a.n)))
		return refuse();
	if (!post_soon(&o, a.size))
		return refuse();
	if (recv != MPI_IN_PLACE)
		memcpy(recv, (const char *)send + o.b->me * a.n, a.n);
	o.block = a.n;
	return begun(&o, &a, comm, out);
}

// both is what Iallgather and Ialltoall have in common. posts is how many blocks a member posts.
static inline int both(struct op *o, struct call *a, MPI_Count scount, MPI_Datatype stype, MPI_Count rcount, MPI_Datatype rtype, uint32_t posts)
{
	a->n = bytes(rcount, rtype);
	a->type = rtype;
	a->size = a->n * posts;
	a->posts = a->reads = 1;
	uint64_t all = a->n * o->b->members;
	if (!small(o, a->n, o->b->members, posts) || !writable(a->recv, all))
		return 0;
	if (a->send == MPI_IN_PLACE) {
		a->send = NULL;
		a->post = posts > 1 ? a->recv : (char *)a->recv + o->b->me * a->n;
	} else if (!same(scount, stype, rcount, rtype) || !readable(a->send, a->size) || overlap(a->send, a->size, a->recv, all))
		return 0;
	o->block = posts > 1 ? a->n : 0;
	return post_soon(o, a->size);
}

int impi_iallgather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = ALLGATHER, .send = send, .recv = recv, .post = send };
	if (!begin(&o, comm, out))
		return 0;
	if (no_bytes(send, scount, stype, rcount, rtype))
		return start_done(&o, &a, comm, out);
	return both(&o, &a, scount, stype, rcount, rtype, 1) ? begun(&o, &a, comm, out) : refuse();
}

int impi_ialltoall(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = ALLTOALL, .send = send, .recv = recv, .post = send };
	if (!begin(&o, comm, out))
		return 0;
	if (no_bytes(send, scount, stype, rcount, rtype))
		return start_done(&o, &a, comm, out);
	return both(&o, &a, scount, stype, rcount, rtype, o.b->members) ? begun(&o, &a, comm, out) : refuse();
}

// combines reports whether a member that gets the result of a reduction can combine in its buffers,
// and turns MPI_IN_PLACE to NULL.
static inline int combines(struct call *a)
{
	const void *own = a->send == MPI_IN_PLACE ? a->recv : a->send;
	uint64_t size = impi_width[(uintptr_t)a->type];
	if (!writable(a->recv, a->n) || !aligned(a->recv, size) || !aligned(own, size))
		return 0;
	if (own == a->send && (!readable(own, a->n) || overlap(own, a->n, a->recv, a->n)))
		return 0;
	a->post = own;
	if (own != a->send)
		a->send = NULL;
	return 1;
}

int impi_ireduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = REDUCE, .root = root, .n = bytes(count, type), .send = send, .post = send, .type = type, .op = op, .f = impi_loop_of(op, type) };
	if (a.f == NULL || a.n > MOST || !begin(&o, comm, out))
		return 0;
	if (a.n == 0 && root_in(o.b, root))
		return start_done(&o, &a, comm, out);
	if (!root_in(o.b, root) || !small(&o, a.n, 1, 1))
		return refuse();
	a.size = a.n;
	a.reads = o.b->me == (uint32_t)root;
	a.posts = !a.reads;
	if (a.reads) {
		a.recv = recv;
		return combines(&a) ? begun(&o, &a, comm, out) : refuse();
	}
	return readable(send, a.n) && post_soon(&o, a.n) ? begun(&o, &a, comm, out) : refuse();
}

int impi_iallreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *out)
{
	struct op o;
	struct call a = { .what = ALLREDUCE, .n = bytes(count, type), .send = send, .recv = recv, .posts = 1, .reads = 1, .type = type, .op = op, .f = impi_loop_of(op, type) };
	if (a.f == NULL || a.n > ALLREDUCE_MOST || !begin(&o, comm, out))
		return 0;
	if (a.n == 0)
		return start_done(&o, &a, comm, out);
	a.size = a.n;
	return combines(&a) && post_soon(&o, a.n) ? begun(&o, &a, comm, out) : refuse();
}

// of_root reports whether a member needs only what the root posts.
static inline int of_root(struct request *r) { return r->what == BCAST || r->what == SCATTER; }

// size is how many bytes a member posts in an operation.
static inline uint64_t size_of(struct op *o, struct request *r) { return r->what == SCATTER || r->what == ALLTOALL ? r->room * o->b->members : r->room; }

// fetch reads what the others have posted, all that is needed, and returns 0 if Go has to do that.
static int fetch(struct op *o, struct request *r)
{
	struct board *b = o->b;
	uint64_t n = r->room, all = n * b->members;
	char *recv = r->buf;
	switch (r->what) {
	case BARRIER:
		return 1;
	case BCAST:
		return take(o, (uint32_t)r->rank, recv, n, 0, n);
	case SCATTER:
		return take(o, (uint32_t)r->rank, recv, n, b->me * n, all);
	case ALLTOALL:
		if (r->send != NULL)
			move(recv + b->me * n, (const char *)r->send + b->me * n, n);
		return collect(o, recv, n, b->me * n, all);
	case GATHER:
	case ALLGATHER:
		if (r->send != NULL)
			move(recv + b->me * n, r->send, n);
		return collect(o, recv, n, 0, n);
	default:
		return impi_combine(o, (loop *)r->loop, r->send != NULL ? r->send : r->buf, recv, n, (MPI_Datatype)(uintptr_t)r->type);
	}
}

// over takes an operation that is done out of the list, in which its request must be, and announces
// this member's progress.
static void over(struct op *o, struct request *r)
{
	struct begun *list = &x->begun[r->board];
	int32_t i = (int32_t)(r - x->table), before = NONE;
	for (int32_t k = list->first; k != i; k = x->table[k].next)
		before = k;
	detach(&list->first, &list->last, before, r);
	x->starts--;
	r->state = DONE;
	list->read |= o->read;
	uint64_t at = list->first != NONE ? x->table[list->first].step : GLANCE(o->b->number) << STEP_BITS | (list->read ? READ : 0);
	if (at > GLANCE(*progress(o->b, o->b->me)))
		atomic_exchange(progress(o->b, o->b->me), at);
	if (list->first == NONE)
		list->read = 0;
	wake_later(o);
}

// resume sets o to an operation that was started.
static inline void resume(struct op *o, struct request *r)
{
	o->b = &x->boards[r->board];
	o->step = r->step;
	o->read = o->lent = 0;
	o->to = o->block = 0;
	o->later = 0;
}

// needed is the set of the members whose posts are needed.
static inline uint64_t needed(struct op *o, struct request *r) { return of_root(r) ? (uint64_t)1 << r->rank : others(o->b); }

int impi_await_start(struct request *r)
{
	struct op o;
	if (r->state != POSTED)
		return 0;
	resume(&o, r);
	uint64_t n = size_of(&o, r);
	struct begun *list = &x->begun[r->board];
	list->found += list->found < FOUND;
	for (uint64_t left = needed(&o, r); left != 0; left &= left - 1) {
		uint32_t m = (uint32_t)__builtin_ctzll(left);
		if (LOAD(*(_Atomic uint64_t *)entry(o.b, m, o.step)) < o.step)
			list->found = 0;
		if (!posted(&o, r->what, m, n))
			return 0;
	}
	if (!fetch(&o, r))
		return 0;
	over(&o, r);
	return 1;
}

int impi_try_start(struct request *r)
{
	struct op o;
	resume(&o, r);
	uint64_t n = size_of(&o, r), left = needed(&o, r);
	for (int i = x->polls < TEST_LOOKS ? x->polls : TEST_LOOKS; left != 0; i--) {
		uint32_t m = (uint32_t)__builtin_ctzll(left);
		if (LOAD(*(_Atomic uint64_t *)entry(o.b, m, o.step)) >= o.step) {
			if (!here(&o, r->what, m, n))
				return UNKNOWN; // Go reports what is wrong
			o.read |= n > INLINE;
			left &= left - 1;
		} else if (i > 0)
			rest();
		else
			return r->from++ < VAIN_TESTS && others_asleep(o.b) == 0 ? 0 : UNKNOWN;
	}
	if (!fetch(&o, r))
		return UNKNOWN;
	over(&o, r);
	return 1;
}
