// Sends of fast-box messages. A part of fastpath.c.

#ifndef IMPI_FAST_SEND_H
#define IMPI_FAST_SEND_H

#include "fastlong.h"
#include "gate.h"
#include "measure.h"
#include "patience.h"
#include "requests.h"

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

// room_soon is room, once the peer has taken something, if that is soon: Go would send a packet,
// which is slower, and all messages would be packets until the peer has read it.
static inline struct place *room_soon(struct peer *l, uint64_t n, char **data)
{
	for (int i = l->full_at == l->seen + 1 ? 0 : x->polls;; i--) { // once for a peer that takes nothing
		struct place *p = room(l, n, data);
		if (p == NULL && MEASURED)
			impi_stalls();
		if (p == NULL && i <= 0)
			l->full_at = l->seen + 1;
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

// carry sends a message to a peer with a carrier. number is that of data that go apart and have not
// left, or NONE. The gate is passed.
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
		if (l->full_at == l->seen + 1 || !goes_on(&w)) { // once for a peer that takes nothing
			l->full_at = l->seen + 1;
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

// put_allowed is put, and has Go look for a new allowance if a peer with a carrier needs one: only
// Go sees it come, and without it Go would send packets, of which long ones are copied on both
// sides.
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
	// another thread may have taken the last spare request
	return x->spare != NONE && put(buf, n, type, dest, tag, comm, by, number);
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

#endif
