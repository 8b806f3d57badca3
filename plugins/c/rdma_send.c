/* What goes to the peer: messages of slots, offers of lent memory, and parts of it that the peer cannot
 * read by itself. */
#include "rdma.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

size_t piece_size(const struct rdma *x) { return x->peer_slot < x->port.slot_size ? x->peer_slot : x->port.slot_size; }

int rdma_post(struct rdma *x, struct header h, const void *data, size_t n)
{
	uint8_t head[HEADER];
	struct iovec pieces[2] = { { head, sizeof head }, { (void *)data, n } };
	if (x->conn_ended)
		return 0;
	h.allowed = x->owed;
	header_put(&h, head);
	int sent = x->ops->send(x->conn.state, pieces, n > 0 ? 2 : 1);
	if (sent < 0)
		return rdma_lost("send: %s", strerror(errno));
	if (sent > 0) {
		x->given += x->owed;
		x->owed = 0;
	}
	return sent > 0;
}

static int lent(const struct rdma *x)
{
	int n = x->loans_n;
	for (int i = 0; i < x->queued; i++)
		n += x->queue[i].e.kind == SEND_LOAN;
	return n;
}

/* enqueue takes what has to go in the order in which the proc has submitted it. */
static int enqueue(struct rdma *x, const struct entry *e)
{
	struct submission s = { .e = *e };
	int ended = x->queued > 0 && x->queue[x->queued - 1].e.kind == PROC_ENDED;
	if (x->queued == 2 * SLOTS + 1 || ended || x->over)
		return rules_broken("the proc sends more than its slots and loans, or after its end");
	if (e->kind == SEND_LOAN) {
		if (lent(x) >= SLOTS)
			return rules_broken("the proc lends a message beside %d that it has not had back", lent(x));
		if ((s.from = rdma_find(x, e)) == NULL)
			return -1;
		cache_hold(s.from); /* whatever the proc says of the region meanwhile */
	}
	x->queue[x->queued++] = s;
	return 0;
}

static int submitted(struct rdma *x, const struct entry *e)
{
	struct offered *m;
	switch (e->kind) {
	case FREE_SLOT:
		x->owed++;
		return 0;
	case MESSAGE_DONE:
		if ((m = rdma_open(x, e->message)) == NULL || rdma_is_read(x, e->message))
			return rules_broken("the proc is done with message %llu, which is not open or is being read", (unsigned long long)e->message);
		m->number = 0;
		if (x->taken_n == MAX_TAKEN)
			return rules_broken("the peer offers messages and does not take the answers");
		x->taken[x->taken_n++] = e->message;
		x->owed++;
		return 0;
	case READ_PART:
		return rdma_begin_read(x, e);
	case FORGET:
		return rdma_forget(x, e);
	}
	return enqueue(x, e);
}

int rdma_submissions(struct rdma *x)
{
	struct entry e;
	int moved = 0, more;
	while ((more = port_next(&x->port, &e)) > 0) {
		if (submitted(x, &e) != 0)
			return -1;
		moved = 1;
	}
	return more < 0 ? -1 : moved;
}

/* copy_out sends bytes in messages as far as the peer has room for them. It gives how many; -1: the
 * connection is broken. */
static int64_t copy_out(struct rdma *x, const uint8_t *data, uint64_t n)
{
	uint64_t sent = 0;
	while (sent < n && x->allowed > 0) {
		size_t k = n - sent < piece_size(x) ? (size_t)(n - sent) : piece_size(x);
		int r = rdma_post(x, (struct header){ .kind = EAGER, .length = k }, data + sent, k);
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		x->allowed--;
		sent += k;
	}
	return (int64_t)sent;
}

/* offer tells the peer of a message in lent memory. If that cannot be registered it leaves
 * s->copied. */
static int offer(struct rdma *x, struct submission *s)
{
	struct use u;
	if (cache_use(s->from, &u) != 0)
		return -1;
	uint8_t *data = u.mem + s->e.offset;
	if (!u.registered) {
		s->copied = data;
		s->rest = s->e.length;
		return 0;
	}
	int r = rdma_post(x, (struct header){ .kind = OFFER, .number = x->offers + 1, .length = s->e.length, .offset = s->e.offset,
		.key = (uint16_t)u.key_size }, u.key, u.key_size);
	if (r <= 0) {
		cache_unuse(s->from);
		return r;
	}
	x->allowed--;
	x->loans[x->loans_n++] = (struct loan){ ++x->offers, s->e.number, s->from, data, s->e.length };
	cache_reclaim(s->from); /* it is in use now */
	s->from = NULL;
	return 1;
}

static struct loan first_loan(struct rdma *x)
{
	struct loan first = x->loans[0];
	memmove(x->loans, x->loans + 1, (size_t)--x->loans_n * sizeof first);
	return first;
}

/* loans_copied completes the oldest loans, as far as they were copied. */
static int loans_copied(struct rdma *x)
{
	while (x->loans_n > 0 && x->loans[0].message == 0)
		if (port_complete(&x->port, (struct entry){ .kind = LOAN_SENT, .number = first_loan(x).number }) != 0)
			return -1;
	return 0;
}

/* copy_loan sends lent memory that cannot be registered like messages in slots. */
static int copy_loan(struct rdma *x, struct submission *s)
{
	int64_t n = copy_out(x, s->copied, s->rest);
	if (n < 0)
		return -1;
	s->copied += n;
	s->rest -= (uint64_t)n;
	if (s->rest > 0)
		return 0;
	cache_unuse(s->from);
	cache_reclaim(s->from);
	s->from = NULL;
	s->copied = NULL;
	x->loans[x->loans_n++] = (struct loan){ .number = s->e.number };
	return loans_copied(x) == 0 ? 1 : -1;
}

/* send_next passes on one submission; 0: that is not possible now. */
static int send_next(struct rdma *x, struct submission *s)
{
	int r;
	if (s->e.kind == PROC_ENDED) {
		if ((r = rdma_post(x, (struct header){ .kind = ENDED_ALL }, NULL, 0)) > 0)
			x->over = 1;
		return r;
	}
	if (x->allowed == 0)
		return 0;
	if (s->e.kind == SEND_LOAN) {
		if (s->copied == NULL && ((r = offer(x, s)) != 0 || s->copied == NULL))
			return r;
		return copy_loan(x, s);
	}
	int64_t n = copy_out(x, port_send_slot(&x->port, s->e.slot) + s->sent, s->e.length - s->sent);
	if (n < 0)
		return -1;
	if ((s->sent += (uint64_t)n) < s->e.length)
		return 0;
	return port_complete(&x->port, (struct entry){ .kind = SLOT_SENT, .slot = s->e.slot }) == 0 ? 1 : -1;
}

/* send_wanted sends what the peer has asked for. */
static int send_wanted(struct rdma *x)
{
	int moved = 0;
	while (x->wanted_n > 0) {
		struct owing *o = &x->wanted[0];
		int r = rdma_post(x, (struct header){ .kind = PIECE, .number = o->message, .offset = o->at, .length = o->length }, o->data, o->length);
		if (r <= 0)
			return r < 0 ? -1 : moved;
		memmove(o, o + 1, (size_t)--x->wanted_n * sizeof *o);
		moved = 1;
	}
	return moved;
}

/* answers tells the peer what it has to know of what it has sent. */
static int answers(struct rdma *x)
{
	int moved = 0, r;
	while (x->taken_n > 0) {
		if ((r = rdma_post(x, (struct header){ .kind = TAKEN, .number = x->taken[0] }, NULL, 0)) <= 0)
			return r < 0 ? -1 : moved;
		memmove(x->taken, x->taken + 1, (size_t)--x->taken_n * sizeof x->taken[0]);
		moved = 1;
	}
	/* First, since what waits may wait for the other side's allowance, and that for this one. */
	if (x->owed >= SLOTS / 2 && (x->queued == 0 || x->allowed == 0)) {
		if ((r = rdma_post(x, (struct header){ .kind = MORE }, NULL, 0)) <= 0)
			return r < 0 ? -1 : moved;
		moved = 1;
	}
	return moved;
}

int rdma_send(struct rdma *x)
{
	int moved = 0, r;
	if (!x->begun) {
		x->owed = 0;
		r = rdma_post(x, (struct header){ .kind = HELLO, .number = SLOTS, .length = x->port.slot_size, .offset = ANSWERS_ASKS }, NULL, 0);
		if (r <= 0)
			return r;
		x->begun = moved = 1;
		x->given = SLOTS;
	}
	if ((r = answers(x)) < 0)
		return -1;
	moved |= r;
	if ((r = send_wanted(x)) < 0)
		return -1;
	moved |= r;
	while (x->queued > 0) {
		if ((r = send_next(x, &x->queue[0])) <= 0)
			return r < 0 ? -1 : moved;
		memmove(x->queue, x->queue + 1, (size_t)--x->queued * sizeof x->queue[0]);
		moved = 1;
	}
	return moved;
}

int rdma_wanted(struct rdma *x, const struct header *h)
{
	for (int i = 0; i < x->loans_n; i++) {
		struct loan *l = &x->loans[i];
		if (l->message == 0 || l->message != h->number)
			continue;
		if (h->offset > l->length || h->length == 0 || h->length > l->length - h->offset || h->length > piece_size(x) || x->wanted_n == MAX_FETCHES)
			break;
		x->wanted[x->wanted_n++] = (struct owing){ h->number, h->offset, l->data + h->offset, h->length };
		return 0;
	}
	return rules_broken("the peer wants %llu bytes at %llu of message %llu, which was not offered or is shorter, beside %d others",
		(unsigned long long)h->length, (unsigned long long)h->offset, (unsigned long long)h->number, x->wanted_n);
}

int rdma_peer_took(struct rdma *x, const struct header *h)
{
	int owes = 0;
	for (int i = 0; i < x->wanted_n; i++)
		owes |= x->wanted[i].message == h->number;
	if (x->loans_n == 0 || h->number == 0 || x->loans[0].message != h->number || owes)
		return rules_broken("the peer has taken message %llu, which is not the oldest of the %d that it was offered", (unsigned long long)h->number, x->loans_n);
	struct loan l = first_loan(x);
	cache_unuse(l.file);
	if (port_complete(&x->port, (struct entry){ .kind = LOAN_SENT, .number = l.number }) != 0)
		return -1;
	return loans_copied(x);
}

void rdma_release_sends(struct rdma *x)
{
	for (int i = 0; i < x->loans_n; i++)
		if (x->loans[i].message != 0)
			cache_unuse(x->loans[i].file);
	for (int i = 0; i < x->queued; i++) {
		if (x->queue[i].copied != NULL)
			cache_unuse(x->queue[i].from);
		if (x->queue[i].from != NULL)
			cache_reclaim(x->queue[i].from);
	}
}
