// Receives of fast-box messages: from one peer or from any, with a request that Go or C has posted
// or without one. A part of fastpath.c.

#ifndef IMPI_FAST_RECV_H
#define IMPI_FAST_RECV_H

#include "fastsend.h"
#include "faststart.h"

// next returns the next fast-box message of a peer, or NULL. The gate is passed.
static inline struct place *next(struct peer *l)
{
	struct place *p = &l->in[l->taken % FASTBOXES];
	return LOAD(p->mark) == ((l->taken + 1) << 32 | (l->in_at & UINT32_MAX)) ? p : NULL;
}

// behind reports whether Go has to read the stream of a peer before its next fast-box message,
// which is there. C does not see what comes by the stream of a carrier, and would wait for that
// message in vain. The gate is passed.
static inline int behind(struct peer *l)
{
	uint64_t mark = LOAD(l->in[l->taken % FASTBOXES].mark);
	return mark >> 32 == (uint32_t)(l->taken + 1) && (uint32_t)mark != (uint32_t)l->in_at;
}

// content returns the data of a message whose length was read as n, or NULL if there can be no such
// message. The gate is passed.
static inline const char *content(struct peer *l, struct place *p, uint32_t n)
{
	if (n <= IN_FASTBOX)
		return p->data;
	uint64_t at = ONCE(*(uint32_t *)p->data);
	return n <= l->in_area / FASTBOX_SHARE && at <= l->in_area - n ? l->in_data + at : NULL;
}

// fetch copies the n bytes of a message, as they come. It gives up if they do not come soon;
// another one begins anew. The gate is passed.
static inline int fetch(void *to, struct place *p, const char *data, uint32_t n)
{
	if (n <= FASTBOX_PIECE) {
		move(to, data, n);
		return 1;
	}
	uint32_t done = 0;
	for (int i = x->polls; i >= 0 && !GLANCE(x->leave_asked); i--) {
		uint32_t part = LOAD(*filled(p));
		if (part > done) {
			part = part < n ? part : n;
			memcpy((char *)to + done, data + done, part - done);
			done = part;
			i = x->polls;
		}
		if (done == n)
			return 1;
		rest();
	}
	return 0;
}

// late_review is set once take finds that Go has to tell a peer a new allowance. The gate guards
// it.
static int late_review;

// take frees the place of the next fast-box message, of n bytes. The gate is passed.
static inline void take(struct peer *l, uint32_t n)
{
	l->taken++;
	l->received += cost(n);
	if (l->carrier != NULL && l->received >= l->review)
		late_review = 1;
	if (n > IN_FASTBOX)
		l->owed += n;
	if (l->carrier != NULL || l->taken % FASTBOX_LAG == 0 || (l->owed > 0 && l->owed >= l->in_area / FASTBOX_OWED)) {
		l->owed = 0;
		STORE(*l->told, l->taken);
	}
	if (l->carrier != NULL && l->taken % FASTBOX_LAG == 0)
		x->carriers.took(l->carrier, l->taken);
}

// review reports whether Go has to tell a peer a new allowance before more of its messages are
// taken. If Go were entered for that in the middle of a call, it would go on with all receives that
// wait, which by a carrier costs more than the messages: so there the call ends first. A sender
// that lacks an allowance sends packets. The gate is passed.
static inline int review(struct peer *l) { return l->carrier == NULL && l->received >= l->review; }

// leave_and_review leaves the gate, and has Go tell peers with a carrier new allowances if that is
// due.
static inline void leave_and_review(void)
{
	int late = late_review;
	late_review = 0;
	leave_and_ring();
	if (late)
		fastPathReview();
}

// gaze_at_carrier is gaze for a peer with a carrier.
static struct place *gaze_at_carrier(struct peer *l)
{
	for (struct wait w = wait_for(0);;) {
		struct place *p = next(l);
		if (p != NULL)
			return p;
		if (GLANCE(*l->bytes) != l->in_at || behind(l) || !goes_on(&w))
			return NULL;
		x->carriers.pump(x->carriers.all, 1);
	}
}

// gaze is look for a peer whose messages C may take.
static inline struct place *gaze(struct peer *l)
{
	if (l->carrier != NULL)
		return gaze_at_carrier(l);
	for (int i = x->polls;; i--) {
		struct place *p = next(l);
		if (p != NULL)
			return p;
		if (i <= 0 || GLANCE(*l->bytes) != l->in_at || GLANCE(x->leave_asked))
			return NULL;
		rest();
	}
}

// wait_for_any is a wait for anybody's messages.
static inline struct wait wait_for_any(void) { return x->carriers.pump != NULL ? wait_for(0) : (struct wait){ .looks = x->polls }; }

// any_goes_on is goes_on for it.
static inline int any_goes_on(struct wait *w) { return x->carriers.pump != NULL ? goes_on(w) : w->looks-- > 0 && !GLANCE(x->leave_asked); }

TIMED static struct place *timed_gaze(struct peer *l)
{
	uint64_t begun = impi_clock();
	struct place *p = gaze(l);
	l->waited += impi_clock() - begun;
	return p;
}

// look waits for the next fast-box message, until Go wants to enter or something else comes. The
// gate is passed.
static inline struct place *look(struct peer *l)
{
	if (review(l))
		return NULL;
	return COUNTS && next(l) == NULL ? timed_gaze(l) : gaze(l);
}

// watch is look, and sets how to LONG and when the call has begun if that takes more than a moment.
static inline struct place *watch(struct peer *l, int *how, uint64_t *begun)
{
	for (int i = x->polls < BRIEF_LOOKS ? x->polls : BRIEF_LOOKS; !review(l); i--) {
		struct place *p = next(l);
		if (p != NULL)
			return p;
		if (i <= 0)
			break;
		rest_for(l);
	}
	*how = LONG;
	*begun = impi_waits(*begun);
	return look(l);
}

// fill stores what was received, but for the error.
static inline void fill(MPI_Status *status, int source, int tag, uint32_t n)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = source;
	status->MPI_TAG = tag;
	memset(status->MPI_internal, 0, sizeof status->MPI_internal);
	status->MPI_internal[0] = (int)n;
}

// fits reports whether a message matches a receive: want_rank and want_tag may be wildcards. The
// message was read once, into the arguments.
static inline int fits(uint64_t context, int32_t rank, int32_t tag, uint64_t want_context, int want_rank, int want_tag)
{
	return context == want_context && (rank == want_rank || want_rank == MPI_ANY_SOURCE) && (tag == want_tag || want_tag == MPI_ANY_TAG) && tag >= 0;
}

// of reports whether the process with a rank in a communicator is at the other end of a peer.
static inline int of(struct comm *c, int rank, struct peer *l) { return to(c, rank) == l; }

// whole reports whether all n bytes of a message have been written. A receive that may get another
// message instead writes nothing before that.
static inline int whole(struct place *p, uint32_t n) { return n <= FASTBOX_PIECE || LOAD(*filled(p)) >= n; }

// get_apart is get for a message that matches and whose data come apart. The gate is passed.
static int get_apart(struct peer *l, struct place *p, uint32_t n, void *buf, MPI_Comm comm, MPI_Status *status, struct request **moves)
{
	int32_t number, rank = p->rank, from = p->tag;
	if (x->spare == NONE || x->carriers.fetch(l->carrier, buf, n, &number) != 0)
		return 0;
	take(l, n);
	if (number == NONE) {
		fill(status, rank, from, n);
		return 1;
	}
	struct request *r = *moves = new(MOVING, comm, (int)(l - x->peers));
	r->buf = buf;
	r->source = rank, r->from = from, r->bytes = n;
	join(r, number);
	return 1;
}

// get receives the next fast-box message p of a peer, if it matches. If its data are still moving,
// moves is the request for that. The gate is passed.
static inline int get(struct peer *l, struct place *p, struct comm *c, void *buf, uint64_t space, int source, int tag, MPI_Status *status, struct request **moves)
{
	int32_t rank = ONCE(p->rank), from = ONCE(p->tag);
	uint32_t n = ONCE(p->len);
	if (is_apart(l, p, n))
		return fits(p->context, rank, from, c->context, source, tag) && of(c, rank, l) && n <= space && held(impi_writable, buf, n) &&
		       get_apart(l, p, n, buf, (MPI_Comm)c->handle, status, moves);
	const char *data = content(l, p, n);
	if (data == NULL || !fits(ONCE(p->context), rank, from, c->context, source, tag) || !of(c, rank, l) || n > space || !held(impi_writable, buf, n))
		return 0;
	if ((source == MPI_ANY_SOURCE && !whole(p, n)) || !fetch(buf, p, data, n))
		return 0;
	take(l, n);
	fill(status, rank, from, n);
	return 1;
}

// every_takes reports whether C may take all messages that can match a receive from any source. The
// gate is passed.
static inline int every_takes(struct comm *c)
{
	for (int k = 0; k < x->top; k++)
		if (x->peers[k].in != NULL && (!x->peers[k].takes || review(&x->peers[k])))
			return 0;
	return c->whole;
}

// get_any receives from any source, if a message comes soon. The gate is passed.
static int get_any(struct comm *c, void *buf, uint64_t space, int tag, MPI_Status *status, struct request **moves)
{
	uint64_t begun = COUNTS ? impi_clock() : 0;
	if (!every_takes(c))
		return 0;
	struct wait w = wait_for_any();
	int first = w.looks;
	do {
		for (int k = 0; k < x->top; k++) {
			struct peer *l = &x->peers[k];
			if (l->in == NULL)
				continue;
			struct place *p = next(l);
			if (p != NULL && begun != 0 && w.looks != first)
				l->waited += impi_clock() - begun, begun = 0;
			if (p != NULL && whole(p, ONCE(p->len)))
				// if the message does not match, Go keeps it for later
				return get(l, p, c, buf, space, MPI_ANY_SOURCE, tag, status, moves);
			if (GLANCE(*l->bytes) != l->in_at || (l->carrier != NULL && behind(l)))
				return 0;
		}
		rest_for_all();
	} while (any_goes_on(&w));
	return 0;
}

// tired reports whether a receive from l, or from anybody if it is NULL, has to be done by Go,
// which looks whether anything else has come. The gate is passed.
static inline int tired(struct peer *l)
{
	if (l != NULL && l->carrier != NULL && x->carried++ % CARRIED != CARRIED - 1)
		return 0;
	return x->streak++ % STREAK == STREAK - 1;
}

// get_one is received without the gate, which is passed, and without waiting for data that move.
static inline int get_one(void *buf, uint64_t space, int source, int tag, MPI_Comm comm, MPI_Status *status, uint64_t *begun, struct request **moves)
{
	struct comm *c = find(comm);
	int how = BRIEFLY;
	if (c == NULL || x->first != NONE)
		return 0;
	struct peer *l = to(c, source);
	if (tired(l))
		return 0;
	if (source == MPI_ANY_SOURCE)
		return get_any(c, buf, space, tag, status, moves) ? LONG : 0;
	if (l == NULL || !l->takes)
		return 0;
	struct place *p = begun != NULL ? watch(l, &how, begun) : look(l);
	return p != NULL && get(l, p, c, buf, space, source, tag, status, moves) ? space > FASTBOX_PIECE ? LONG : how : 0;
}

static inline int received(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status, uint64_t *begun)
{
	uint64_t space = bytes(count, type);
	if (space == UINT64_MAX || (tag < 0 && tag != MPI_ANY_TAG))
		return 0;
	if (!there(status, sizeof *status) || !enter())
		return 0;
	struct request *moves = NULL;
	int how = get_one(buf, space, source, tag, comm, status, begun, &moves);
	if (moves != NULL)
		return see_through(moves, status) ? LONG : 0;
	leave_and_review();
	return how;
}

static int recv_fastbox(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	return received(buf, count, type, source, tag, comm, status, NULL);
}

// recv_watched is recv_fastbox for a call that is traced and begins at a time of impi_receives: it
// returns BRIEFLY if it took no more than a moment.
static int recv_watched(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status, uint64_t *begun)
{
	return received(buf, count, type, source, tag, comm, status, begun);
}

#endif
