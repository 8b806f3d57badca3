// Requests of C: nonblocking sends and receives of fast-box messages, and what waits for them. A
// part of fastpath.c.

#ifndef IMPI_FAST_REQUEST_H
#define IMPI_FAST_REQUEST_H

#include "fastrecv.h"

// start_send is isend_fastbox for a handle that can be written.
static int start_send(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *out)
{
	uint64_t n = bytes(count, type);
	struct peer *l;
	int32_t number;
	if (n > most() || tag < 0 || !held(impi_readable, buf, n) || !enter())
		return 0;
	int sent = x->spare == NONE ? 0 : put_allowed(buf, n, type, dest, tag, comm, &l, &number);
	if (sent == AWAY)
		return 0;
	int asleep = sent && atomic_load(l->sleeps) != 0;
	if (sent)
		*out = handle(sending(number, comm, n));
	leave();
	if (asleep)
		fastPathWake((GoInt32)(l - x->peers));
	return sent;
}

static int isend_fastbox(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request *out)
{
	return known(impi_writable, out, sizeof *out) && start_send(buf, count, type, dest, tag, comm, out);
}

// match receives fast-box message p of peer l for the oldest receive that it matches. It returns 0
// if there is none, or the message does not fit. The gate is passed.
static int match(struct peer *l, struct place *p)
{
	int peer = (int)(l - x->peers), before = NONE;
	uint64_t context = ONCE(p->context);
	int32_t rank = ONCE(p->rank), tag = ONCE(p->tag);
	uint32_t n = ONCE(p->len);
	for (int i = x->first; i != NONE; before = i, i = x->table[i].next) {
		struct request *r = &x->table[i];
		if ((r->peer != peer && r->peer != EVERY) || !fits(context, rank, tag, r->context, r->rank, r->tag))
			continue;
		if (r->peer == EVERY && !of(find((MPI_Comm)r->comm), rank, l))
			return 0;
		int32_t number = NONE;
		if (is_apart(l, p, n)) {
			if (n > r->room || !held(impi_writable, r->buf, n) || x->carriers.fetch(l->carrier, r->buf, n, &number) != 0)
				return 0;
		} else {
			const char *data = content(l, p, n);
			if (data == NULL || n > r->room || !held(impi_writable, r->buf, n) || !whole(p, n) || !fetch(r->buf, p, data, n))
				return 0;
		}
		take(l, n);
		r->source = rank, r->from = tag, r->bytes = n;
		r->state = DONE;
		detach(&x->first, &x->last, before, r);
		if (number != NONE)
			join(r, number);
		return 1;
	}
	return 0;
}

// receive has the oldest receives get the next messages of a peer, as far as they match, until r is
// done. The gate is passed.
static inline void receive(struct peer *l, struct request *r)
{
	for (struct place *p = next(l); r->state == POSTED && p != NULL && !review(l) && match(l, p);)
		p = next(l);
}

// begin is irecv_fastbox once the gate is passed.
static int begin(void *buf, uint64_t space, int source, int tag, MPI_Comm comm, MPI_Request *out)
{
	struct comm *c = find(comm);
	struct peer *l = to(c, source);
	if (c == NULL || (source == MPI_ANY_SOURCE ? !every_takes(c) : l == NULL || !l->takes) || x->spare == NONE || tag > c->tag_ub)
		return 0;
	struct request *r = new(POSTED, comm, source == MPI_ANY_SOURCE ? EVERY : (int)(l - x->peers));
	int i = (int)(r - x->table);
	r->context = c->context;
	r->buf = buf;
	r->room = space;
	r->rank = source;
	r->tag = tag;
	if (x->last == NONE)
		x->first = i;
	else
		x->table[x->last].next = i;
	x->last = i;
	*out = handle(r);
	if (r->peer != EVERY)
		receive(l, r);
	for (int k = 0; r->peer == EVERY && k < x->top; k++)
		if (x->peers[k].in != NULL)
			receive(&x->peers[k], r);
	return 1;
}

static int irecv_fastbox(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *out)
{
	uint64_t space = bytes(count, type);
	if (space == UINT64_MAX || (tag < 0 && tag != MPI_ANY_TAG) || !known(impi_writable, out, sizeof *out))
		return 0;
	if (!known(impi_writable, buf, space < IN_FASTBOX ? space : IN_FASTBOX) || !enter())
		return 0;
	int begun = begin(buf, space, source, tag, comm, out);
	leave();
	return begun;
}

// glance is look for any peer that has something for the receives that wait. It returns 0 if
// nothing comes soon, or something for Go. The gate is passed.
static int glance(void)
{
	uint64_t begun = COUNTS ? impi_clock() : 0;
	struct wait w = wait_for_any();
	int first = w.looks;
	do {
		for (int k = 0; k < x->top; k++) {
			struct peer *l = &x->peers[k];
			if (l->in == NULL)
				continue;
			if (!l->takes || review(l))
				return 0;
			struct place *p = next(l);
			if (p != NULL && begun != 0 && w.looks != first)
				l->waited += impi_clock() - begun, begun = 0;
			if (p != NULL && whole(p, ONCE(p->len)))
				return match(l, p);
			if (GLANCE(*l->bytes) != l->in_at || (l->carrier != NULL && behind(l)))
				return 0;
		}
		rest_for_all();
	} while (any_goes_on(&w));
	return 0;
}

// gather has the receives that wait get what has come by carriers, as far as it matches. The gate
// is passed.
static void gather(void)
{
	x->carriers.pump(x->carriers.all, 1);
	for (int k = 0; k < x->top; k++) {
		struct peer *l = &x->peers[k];
		if (l->carrier == NULL || !l->takes)
			continue;
		for (struct place *p = next(l); x->first != NONE && p != NULL && !review(l) && match(l, p);)
			p = next(l);
	}
}

// await_move waits for a request whose data are moving, and lets others begin to. The gate is
// passed.
static int await_move(struct request *r)
{
	struct wait w = wait_for((int)(r->bytes / LOOK_BYTES));
	do {
		if (moved(r))
			return 1;
		if (x->first != NONE)
			gather();
	} while (r->board != NONE && goes_on(&w));
	return 0;
}

// await waits for a request, as long as nothing else has to be done. The gate is passed.
static inline int await(struct request *r)
{
	if (r->peer == ON_BOARD)
		return r->state == DONE || impi_await_start(r);
	while (r->state == POSTED) {
		if (r->peer == EVERY) {
			if (!glance())
				return 0;
			continue;
		}
		struct peer *l = &x->peers[r->peer];
		struct place *p = look(l);
		for (int i = x->polls; p != NULL && !whole(p, ONCE(p->len)) && i > 0 && !GLANCE(x->leave_asked); i--)
			rest();
		if (p == NULL || !match(l, p))
			return 0;
	}
	return r->state == DONE || (r->state == MOVING && await_move(r));
}

// end stores the status of a request that is done, and frees it. The gate is passed.
static inline void end(MPI_Request *h, struct request *r, MPI_Status *status)
{
	if (r->peer == NONE || r->peer == ON_BOARD)
		fill(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
	else
		fill(status, r->source, r->from, r->bytes);
	r->gen++;
	r->state = FREE;
	r->next = x->spare;
	x->spare = (int32_t)(r - x->table);
	*h = MPI_REQUEST_NULL;
}

// see_through ends a blocking call whose data are moving, and leaves the gate. What takes longer Go
// waits for.
static int see_through(struct request *r, MPI_Status *status)
{
	MPI_Request h = handle(r);
	int done = await(r);
	if (done)
		end(&h, r, status);
	leave_and_review();
	return done || abiWait(W(&h), W(status)) == MPI_SUCCESS; // after an error Go's own call fails, too
}

// ours reports whether a handle can be of a request of C's.
static inline int ours(MPI_Request h) { return (uint32_t)(uintptr_t)h >> KIND_SHIFT == KIND; }

// tired_of_waits is tired for a call that waits for requests. The gate is passed.
static inline int tired_of_waits(void)
{
	if (x->carriers.pump != NULL && x->carried++ % CARRIED != CARRIED - 1)
		return 0;
	return x->streak++ % STREAK == STREAK - 1;
}

// finish_wait is wait_fastbox for a handle that can be written.
static int finish_wait(MPI_Request *h, MPI_Status *status)
{
	if (!ours(*h) || !enter())
		return 0;
	struct request *r = request(*h);
	// tired_of_waits leaves some waits to Go; of operations on the board Go starts every SELDOMth
	int done = r != NULL && (r->peer == ON_BOARD || !tired_of_waits()) && await(r);
	if (done)
		end(h, r, status);
	leave_and_review();
	return done;
}

static int wait_fastbox(MPI_Request *h, MPI_Status *status)
{
	return known(impi_writable, h, sizeof *h) && there(status, sizeof *status) && finish_wait(h, status);
}

static int test_fastbox(MPI_Request *h, int *flag, MPI_Status *status)
{
	if (!known(impi_writable, h, sizeof *h) || !ours(*h) || !there(status, sizeof *status) || !known(impi_writable, flag, sizeof *flag) || !enter())
		return 0;
	struct request *r = request(*h);
	int done = UNKNOWN;
	if (r != NULL && x->streak++ % STREAK != STREAK - 1)
		done = r->state == DONE ? 1 : r->state == MOVING ? moved(r) : r->state == POSTED && r->peer == ON_BOARD ? impi_try_start(r) : UNKNOWN;
	if (done == 1)
		end(h, r, status);
	if (done != UNKNOWN)
		*flag = done;
	leave_and_review();
	return done != UNKNOWN;
}

// all waits for n requests. The gate is passed.
static int all(int n, MPI_Request h[])
{
	for (int i = 0; i < n; i++) {
		struct request *r = request(h[i]);
		if (h[i] != MPI_REQUEST_NULL && (r == NULL || !await(r)))
			return 0;
	}
	return 1;
}

static int waitall_fastboxes(int n, MPI_Request h[], MPI_Status *statuses)
{
	if (n <= 0 || n > REQUESTS || !there(h, (uint64_t)n * sizeof *h) || !there(statuses, (uint64_t)n * sizeof *statuses))
		return 0;
	if (h == NULL || !(ours(h[0]) || h[0] == MPI_REQUEST_NULL) || !enter())
		return 0;
	int done = !tired_of_waits() && all(n, h);
	for (int i = 0; done && i < n; i++) {
		MPI_Status *status = statuses == NULL ? NULL : &statuses[i];
		struct request *r = request(h[i]);
		if (r != NULL)
			end(&h[i], r, status);
		else { // null, or there twice
			fill(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
			h[i] = MPI_REQUEST_NULL;
		}
	}
	leave_and_review();
	return done;
}

#endif
