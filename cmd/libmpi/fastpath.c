// Short messages between procs of one host without entering Go: fast-box messages, written and read in
// memory that both procs have mapped. Each function here does a call completely, or changes nothing
// and lets Go do it. Go reports all errors.

#include "gate.h"
#include "fastboard.h"
#include "fastlong.h"
#include "faststart.h"
#include "fastwindow.h"
#include "measure.h"
#include "patience.h"
#include "requests.h"

#define WEAK(name) __attribute__((weak, alias(#name)))

struct fastpath impi_fast_path = { .gate = CLOSED };
uint8_t impi_width[TYPES], impi_kind[TYPES], impi_number[TYPES], impi_op[OP_HANDLES];
_Atomic uintptr_t impi_readable[PAGES], impi_writable[PAGES];

// to returns the peer with a rank, or NULL.
static inline struct peer *to(struct comm *c, int rank)
{
	if (c == NULL || rank < 0 || rank >= RANKS || c->peer[rank] == NONE)
		return NULL;
	return &x->peers[c->peer[rank]];
}

// cost is what a message of n bytes counts in the limit of what a receiver keeps.
static inline uint64_t cost(uint32_t n) { return ENVELOPE_COST + (n <= 128 ? 128 : 1ull << (32 - __builtin_clz(n - 1))); }

// look_at_taken finds out how many messages a peer has taken. It ignores an impossible number.
static inline void look_at_taken(struct peer *l)
{
	uint64_t seen = LOAD(*l->read);
	if (l->sent - seen > FASTBOXES || l->sent - seen >= l->sent - l->seen)
		return;
	l->seen = seen;
	l->freed = l->ends[(seen - 1) % FASTBOXES];
}

// filled is how many of its data have been written if a message has more than FASTBOX_PIECE.
static inline _Atomic uint32_t *filled(struct place *p) { return (_Atomic uint32_t *)(p->data + 4); }

// room returns the place for the next fast-box message, and where its n bytes of data go, or NULL.
// The gate is passed.
static inline struct place *room(struct peer *l, uint64_t n, char **data)
{
	if (l->charged + cost((uint32_t)n) > l->limit)
		return NULL;
	if (l->sent - l->seen >= FASTBOXES) {
		look_at_taken(l);
		if (l->sent - l->seen >= FASTBOXES)
			return NULL;
	}
	struct place *p = &l->out[l->sent % FASTBOXES];
	if (n <= IN_FASTBOX) {
		*data = p->data;
		return p;
	}
	uint64_t at = l->placed, rest = l->out_area - (at & (l->out_area - 1)); // in one piece
	if (rest < n)
		at += rest;
	if (at + n - l->freed > l->out_area) {
		look_at_taken(l);
		if (at + n - l->freed > l->out_area)
			return NULL;
	}
	l->placed = (at + n + FASTBOX_ALIGN - 1) & ~(uint64_t)(FASTBOX_ALIGN - 1);
	*(uint32_t *)p->data = (uint32_t)(at & (l->out_area - 1));
	*filled(p) = 0;
	*data = l->out_data + (at & (l->out_area - 1));
	return p;
}

// room_soon is room, once the peer has taken something, if that is soon: Go would send a packet, which is
// slower, and all messages would be packets until the peer has read it.
static inline struct place *room_soon(struct peer *l, uint64_t n, char **data)
{
	for (int i = l->vain == l->seen + 1 ? 0 : x->polls;; i--) { // once for a peer that takes nothing
		struct place *p = room(l, n, data);
		if (p == NULL && MEASURED)
			impi_stalls();
		if (p == NULL && i <= 0)
			l->vain = l->seen + 1;
		if (p != NULL || i <= 0 || l->charged + cost((uint32_t)n) > l->limit || GLANCE(x->leave_asked) || atomic_load(l->sleeps) != 0)
			return p;
		rest();
	}
}

// rest_for lets a moment pass until something may have come from a peer.
static inline void rest_for(struct peer *l)
{
	if (l->carrier != NULL)
		x->carriers.pump(x->carriers.all, 1);
	else
		rest();
}

// rest_for_all is rest_for for all peers.
static inline void rest_for_all(void)
{
	if (x->carriers.pump != NULL)
		x->carriers.pump(x->carriers.all, 1);
	else
		rest();
}

// carry sends a message to a peer with a carrier. number is that of data that go apart and have not left, or
// NONE. The gate is passed.
static int carry(struct peer *l, struct comm *c, const void *buf, uint64_t n, MPI_Datatype type, int tag, int32_t *number)
{
	if (l->charged + cost((uint32_t)n) > l->limit || (n > CARRIED_MOST && !lends(n)))
		return 0;
	struct carried m = { (uint32_t)l->taken, (uint32_t)l->out_at, c->context, c->rank, tag, (uint32_t)n, impi_kind[(uintptr_t)type] };
	for (struct wait w = wait_for(0);;) {
		if (l->sent - l->seen >= FASTBOXES)
			look_at_taken(l);
		if (l->sent - l->seen < FASTBOXES && (n > CARRIED_MOST ? x->carriers.lend(l->carrier, &m, (uintptr_t)buf, number) : x->carriers.put(l->carrier, &m, (uintptr_t)buf)))
			break;
		if (l->vain == l->seen + 1 || !goes_on(&w)) { // once for a peer that takes nothing
			l->vain = l->seen + 1;
			return 0;
		}
		x->carriers.pump(x->carriers.all, 1);
	}
	l->charged += cost((uint32_t)n);
	l->sent++;
	l->payload += n;
	return 1;
}

// put sends a message as a fast-box message. number is as that of carry. The gate is passed.
static inline int put(const void *buf, uint64_t n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, struct peer **by, int32_t *number)
{
	struct comm *c = find(comm);
	struct peer *l = to(c, dest);
	if (l == NULL || !l->sends || tag > c->tag_ub)
		return 0;
	*by = l;
	*number = NONE;
	if (l->carrier != NULL)
		return carry(l, c, buf, n, type, tag, number);
	char *data;
	if (n > IN_FASTBOX && n > l->out_area / FASTBOX_SHARE)
		return 0;
	struct place *p = room_soon(l, n, &data);
	if (p == NULL)
		return 0;
	p->context = c->context;
	p->rank = c->rank;
	p->tag = tag;
	p->len = (uint32_t)n;
	p->kind = impi_kind[(uintptr_t)type];
	l->ends[l->sent % FASTBOXES] = l->placed;
	l->charged += cost((uint32_t)n);
	l->sent++;
	l->payload += n;
	uint64_t mark = l->sent << 32 | (l->out_at & UINT32_MAX);
	if (n <= FASTBOX_PIECE) {
		if (n < FAR_LEAST)
			move(data, buf, n);
		else
			far_move(data, buf, n);
		atomic_exchange(&p->mark, mark);
		return 1;
	}
	STORE(p->mark, mark);
	for (uint64_t part = 0; part < n;) { // the reader copies at the same time
		uint64_t k = n - part < FASTBOX_PIECE ? n - part : FASTBOX_PIECE;
		far_move(data + part, (const char *)buf + part, k);
		part += k;
		atomic_exchange(filled(p), (uint32_t)part);
	}
	return 1;
}

// AWAY: nothing was sent, and the gate is another's.
enum { AWAY = -1 };

// put_allowed is put, and has Go look for a new allowance if a peer with a carrier needs one: only Go sees it come,
// and without it Go would send packets, of which long ones are copied on both sides.
static int put_allowed(const void *buf, uint64_t n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, struct peer **by, int32_t *number)
{
	*by = NULL;
	if (put(buf, n, type, dest, tag, comm, by, number))
		return 1;
	struct peer *l = *by;
	if (l == NULL || l->carrier == NULL || l->charged + cost((uint32_t)n) <= l->limit)
		return 0;
	leave();
	fastPathHear();
	if (!enter())
		return AWAY;
	return x->spare != NONE && put(buf, n, type, dest, tag, comm, by, number); // another thread may have taken the last
}

static int see_through(struct request *r, MPI_Status *status);

static int send_fastbox(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	uint64_t n = bytes(count, type);
	struct peer *l;
	int32_t number;
	if (n > most() || tag < 0 || !held(impi_readable, buf, n) || !enter())
		return 0;
	int sent = put_allowed(buf, n, type, dest, tag, comm, &l, &number);
	if (sent == AWAY)
		return 0;
	if (sent && number != NONE)
		return see_through(sending(number, comm, n), NULL);
	int asleep = sent && atomic_load(l->sleeps) != 0;
	leave();
	if (asleep)
		fastPathWake((GoInt32)(l - x->peers));
	return sent;
}

// next returns the next fast-box message of a peer, or NULL. The gate is passed.
static inline struct place *next(struct peer *l)
{
	struct place *p = &l->in[l->taken % FASTBOXES];
	return LOAD(p->mark) == ((l->taken + 1) << 32 | (l->in_at & UINT32_MAX)) ? p : NULL;
}

// behind reports whether Go has to read the stream of a peer before its next fast-box message, which is there. C does
// not see what comes by the stream of a carrier, and would wait for that message in vain. The gate is passed.
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

// fetch copies the n bytes of a message, as they come. It gives up if they do not come soon; another one
// begins anew. The gate is passed.
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

static int late_review; // take has found that Go has to tell a peer a new allowance; guarded by the gate

// take frees the place of the next fast-box message, of n bytes. The gate is passed.
static inline void take(struct peer *l, uint32_t n)
{
	l->taken++;
	l->received += cost(n);
	if (l->carrier != NULL && l->received >= l->review)
		late_review = 1;
	if (n > IN_FASTBOX)
		l->owed += n;
	if (l->carrier != NULL || l->taken % FASTBOX_LAG == 0 || (l->owed > 0 && l->owed >= l->in_area / FASTBOX_SHARE / 2)) {
		l->owed = 0;
		STORE(*l->told, l->taken);
	}
	if (l->carrier != NULL && l->taken % FASTBOX_LAG == 0)
		x->carriers.took(l->carrier, l->taken);
}

// review reports whether Go has to tell a peer a new allowance before more of its messages are taken. If Go were
// entered for that in the middle of a call, it would go on with all receives that wait, which by a carrier costs
// more than the messages: so there the call ends first. A sender that lacks an allowance sends packets. The gate is
// passed.
static inline int review(struct peer *l) { return l->carrier == NULL && l->received >= l->review; }

// leave_and_review leaves the gate, and has Go tell peers with a carrier new allowances if that is due.
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

// look waits for the next fast-box message, until Go wants to enter or something else comes. The gate is passed.
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

// fits reports whether a message matches a receive: want_rank and want_tag may be wildcards. The message
// was read once, into the arguments.
static inline int fits(uint64_t context, int32_t rank, int32_t tag, uint64_t want_context, int want_rank, int want_tag)
{
	return context == want_context && (rank == want_rank || want_rank == MPI_ANY_SOURCE) && (tag == want_tag || want_tag == MPI_ANY_TAG) && tag >= 0;
}

// of reports whether the process with a rank in a communicator is at the other end of a peer.
static inline int of(struct comm *c, int rank, struct peer *l) { return to(c, rank) == l; }

// whole reports whether all n bytes of a message have been written. A receive that may get another message
// instead writes nothing before that.
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

// get receives the next fast-box message p of a peer, if it matches. If its data are still moving, moves is the
// request for that. The gate is passed.
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
				return get(l, p, c, buf, space, MPI_ANY_SOURCE, tag, status, moves); // Go sets another one aside
			if (GLANCE(*l->bytes) != l->in_at || (l->carrier != NULL && behind(l)))
				return 0;
		}
		rest_for_all();
	} while (any_goes_on(&w));
	return 0;
}

// tired reports whether a receive from l, or from anybody if it is NULL, has to be done by Go, which looks
// whether anything else has come. The gate is passed.
static inline int tired(struct peer *l)
{
	if (l != NULL && l->carrier != NULL && x->carried++ % CARRIED != CARRIED - 1)
		return 0;
	return x->streak++ % STREAK == STREAK - 1;
}

// get_one is received once the gate is passed.
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

// recv_watched is recv_fastbox for a call that is traced and begins at a time of impi_receives: it returns BRIEFLY if it
// took no more than a moment.
static int recv_watched(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status, uint64_t *begun)
{
	return received(buf, count, type, source, tag, comm, status, begun);
}

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

// match receives fast-box message p of peer l for the oldest receive that it matches. It returns 0 if
// there is none, or the message does not fit. The gate is passed.
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

// receive has the oldest receives get the next messages of a peer, as far as they match, until r is done.
// The gate is passed.
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

// glance is look for any peer that has something for the receives that wait. It returns 0 if nothing comes
// soon, or something for Go. The gate is passed.
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

// gather has the receives that wait get what has come by carriers, as far as it matches. The gate is passed.
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

// await_move waits for a request whose data are moving, and lets others begin to. The gate is passed.
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

// see_through ends a blocking call whose data are moving, and leaves the gate. What takes longer Go waits for.
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
	int done = r != NULL && (r->peer == ON_BOARD || !tired_of_waits()) && await(r); // Go starts every SELDOMth there
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

#include "fastpath_calls.h"

// If the send has left but the receive has to be done by Go, the call goes on with MPI_PROC_NULL as the
// destination. which is 1 for MPI_Sendrecv_c.
static inline int exchange(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status, int which)
{
	int any = source >= 0 || source == MPI_ANY_SOURCE;
	if (any && x->carriers.lend != NULL && bytes(sendcount, sendtype) > CARRIED_MOST) {
		MPI_Request sends; // as a send that waits for its receiver would keep this proc from receiving
		if (start_send(sendbuf, sendcount, sendtype, dest, sendtag, comm, &sends)) {
			int error = MPI_SUCCESS, late = MPI_SUCCESS;
			if (!recv_fastbox(recvbuf, recvcount, recvtype, source, recvtag, comm, status))
				error = abiSendrecv(W(sendbuf), 0, W(sendtype), MPI_PROC_NULL, sendtag, W(recvbuf), recvcount, W(recvtype), source, recvtag, W(comm), W(status), which);
			if (!finish_wait(&sends, MPI_STATUS_IGNORE))
				late = abiWait(W(&sends), W(MPI_STATUS_IGNORE));
			return error ? error : late;
		}
	} else if (any && send_fastbox(sendbuf, sendcount, sendtype, dest, sendtag, comm)) {
		if (recv_fastbox(recvbuf, recvcount, recvtype, source, recvtag, comm, status))
			return MPI_SUCCESS;
		dest = MPI_PROC_NULL;
	}
	return abiSendrecv(W(sendbuf), sendcount, W(sendtype), dest, sendtag, W(recvbuf), recvcount, W(recvtype), source, recvtag, W(comm), W(status), which);
}

TIMED static int timed_exchange(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status, int which)
{
	uint64_t begun = impi_clock();
	int error = exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, which);
	impi_exchanged(SENDRECV, begun, dest, sendtag, source, impi_size(sendcount, sendtype), W(comm));
	return error;
}

int PMPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
	return MEASURED ? timed_exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 0) : exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 0);
}
int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status) WEAK(PMPI_Sendrecv);

int PMPI_Sendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
	return MEASURED ? timed_exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 1) : exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 1);
}
int MPI_Sendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status) WEAK(PMPI_Sendrecv_c);
