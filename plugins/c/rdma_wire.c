/* The headers of the messages that the two sides of a connection send each other: version 1 of the
 * protocol of package fabric of the SDK for Go, so that a plugin in C and one in Go can be peers. */
#include "rdma.h"

#include <string.h>

enum { WIRE_VERSION = 1 };

static void put(uint8_t *to, uint64_t v, int n)
{
	while (n-- > 0)
		*to++ = (uint8_t)(v >> 8 * n);
}

static uint64_t get(const uint8_t *from, int n)
{
	uint64_t v = 0;
	while (n-- > 0)
		v = v << 8 | *from++;
	return v;
}

void header_put(const struct header *h, uint8_t to[HEADER])
{
	to[0] = h->kind;
	to[1] = WIRE_VERSION;
	put(to + 2, h->key, 2);
	put(to + 4, h->allowed, 4);
	put(to + 8, h->number, 8);
	put(to + 16, h->length, 8);
	put(to + 24, h->offset, 8);
}

int header_parse(struct header *h, const uint8_t from[HEADER], size_t n)
{
	if (n < HEADER)
		return rules_broken("the peer sends a message of %zu bytes, the header has %d", n, HEADER);
	*h = (struct header){ from[0], (uint16_t)get(from + 2, 2), (uint32_t)get(from + 4, 4), get(from + 8, 8), get(from + 16, 8), get(from + 24, 8) };
	size_t rest = n - HEADER;
	int data = h->kind == EAGER || h->kind == PIECE;
	if (from[1] != WIRE_VERSION)
		return rules_broken("the peer speaks version %d, this side %d", from[1], WIRE_VERSION);
	if (h->kind < HELLO || h->kind > PIECE)
		return rules_broken("the peer sends a message of kind %d", h->kind);
	if ((data && (rest == 0 || rest != h->length)) || (!data && rest != h->key) || h->key > KEY_BYTES)
		return rules_broken("the peer sends a message of kind %d with %zu bytes behind its header, which says %llu and a key of %u", h->kind, rest,
			(unsigned long long)h->length, h->key);
	return 0;
}
