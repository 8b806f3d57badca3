/* What comes from the peer. */
#include "rdma.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

struct offered *rdma_open(struct rdma *x, uint64_t number)
{
	for (int i = 0; number != 0 && i < SLOTS; i++)
		if (x->open[i].number == number)
			return &x->open[i];
	return NULL;
}

static int hello(struct rdma *x, const struct header *h)
{
	if (h->number == 0 || h->number > 1 << 16 || h->length == 0 || h->length > MAX_LENGTH || h->allowed != 0)
		return rules_broken("the peer has room for %llu messages of %llu bytes", (unsigned long long)h->number, (unsigned long long)h->length);
	x->most = x->allowed = (uint32_t)h->number;
	x->peer_slot = (size_t)h->length;
	x->answers = (h->offset & ANSWERS_ASKS) != 0;
	return 0;
}

/* eager takes a message whose first bytes are in x->keys. The others are in its slot already, unless
 * parts are being fetched. */
static int eager(struct rdma *x, const struct header *h, uint8_t *slot)
{
	size_t n = (size_t)h->length, first = n < KEY_BYTES ? n : KEY_BYTES;
	if (h->length > x->port.slot_size || slot == NULL)
		return rules_broken("the peer sends a message of %llu bytes, slots have %zu", (unsigned long long)h->length, x->port.slot_size);
	memcpy(slot, x->keys, first);
	if (x->slow_n > 0)
		memcpy(slot + first, x->scratch, n - first);
	return port_arrive(&x->port, n);
}

static int offered(struct rdma *x, const struct header *h)
{
	struct offered *m = x->open;
	while (m < x->open + SLOTS && m->number != 0)
		m++;
	if (m == x->open + SLOTS || h->number != x->last_offer + 1 || h->length == 0 || h->length > MAX_LENGTH)
		return rules_broken("the peer offers message %llu of %llu bytes after %llu", (unsigned long long)h->number, (unsigned long long)h->length,
			(unsigned long long)x->last_offer);
	x->last_offer = h->number;
	*m = (struct offered){ .number = h->number, .offset = h->offset, .length = h->length, .key_size = h->key };
	memcpy(m->key, x->keys, h->key);
	return port_complete(&x->port, (struct entry){ .kind = OFFERED, .message = h->number, .length = h->length });
}

static int message(struct rdma *x, const struct header *h, uint8_t *slot)
{
	if ((h->kind == HELLO) != (x->peer_slot == 0))
		return rules_broken("the peer sends a message of kind %d, hello comes first and once", h->kind);
	if (h->kind == HELLO)
		return hello(x, h);
	if (h->kind == EAGER || h->kind == OFFER) {
		if (x->given == 0 || x->peer_over)
			return rules_broken("the peer sends more messages than it may, or one after its end");
		x->given--;
	}
	if ((uint64_t)x->allowed + h->allowed > x->most)
		return rules_broken("the peer allows %u more messages, this side may send %u of %u", h->allowed, x->allowed, x->most);
	x->allowed += h->allowed;
	switch (h->kind) {
	case EAGER:
		return eager(x, h, slot);
	case OFFER:
		return offered(x, h);
	case TAKEN:
		return rdma_peer_took(x, h);
	case ASKS:
		return rdma_wanted(x, h);
	case PIECE:
		return rdma_fetched(x, h);
	case ENDED_ALL:
		if (x->peer_over)
			return rules_broken("the peer has ended twice");
		x->peer_over = 1;
		return port_complete(&x->port, (struct entry){ .kind = PEER_ENDED });
	}
	return 0; /* MORE */
}

/* Bytes go into the slot in which the proc gets them, but for the first ones: a key must not be where
 * the proc can change it. What is fetched goes elsewhere. */
int rdma_receive(struct rdma *x)
{
	uint8_t head[HEADER];
	struct header h;
	int moved = 0;
	while (!x->conn_ended) {
		uint8_t *slot = port_receive_slot(&x->port);
		struct iovec pieces[3] = { { head, sizeof head }, { x->keys, sizeof x->keys },
			{ slot ? slot + KEY_BYTES : NULL, slot ? x->port.slot_size - KEY_BYTES : 0 } };
		if (x->slow_n > 0)
			pieces[2] = (struct iovec){ x->scratch, x->port.slot_size };
		ssize_t n = x->ops->recv(x->conn.state, pieces, pieces[2].iov_len > 0 ? 3 : 2);
		if (n == IMPI_ENDED && x->peer_over) {
			x->conn_ended = 1;
			port_deaf(&x->port);
			return 1;
		}
		if (n < 0)
			return rdma_lost("receive: %s", n == IMPI_ENDED ? "the peer has closed the connection before the end of its messages" : strerror(errno));
		if (n == 0)
			break;
		if (header_parse(&h, head, (size_t)n) != 0 || message(x, &h, slot) != 0)
			return -1;
		moved = 1;
	}
	return moved;
}
