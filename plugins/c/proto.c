/* Protobuf: the few kinds of fields that the protocol has. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void *need(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	if (n > b->cap - b->n) {
		b->cap = 2 * b->cap + n + 64;
		b->p = need(realloc(b->p, b->cap));
	}
	if (n > 0)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

void buf_free(struct buf *b)
{
	free(b->p);
	memset(b, 0, sizeof *b);
}

static void put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)v | 0x80;
	bytes[n++] = (uint8_t)v;
	buf_put(b, bytes, n);
}

/* The kinds of fields: varint, 8 bytes, counted bytes, 4 bytes. */
enum { VARINT = 0, EIGHT = 1, COUNTED = 2, FOUR = 5 };

void put_uint(struct buf *b, unsigned field, uint64_t v)
{
	if (v == 0)
		return;
	put_varint(b, field << 3 | VARINT);
	put_varint(b, v);
}

void put_text(struct buf *b, unsigned field, const char *s)
{
	if (s == NULL || *s == 0)
		return;
	put_varint(b, field << 3 | COUNTED);
	put_varint(b, strlen(s));
	buf_put(b, s, strlen(s));
}

void put_double(struct buf *b, unsigned field, double d)
{
	uint64_t bits;
	uint8_t bytes[8];
	memcpy(&bits, &d, 8);
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(bits >> 8 * i);
	put_varint(b, field << 3 | EIGHT);
	buf_put(b, bytes, 8);
}

void put_message(struct buf *b, unsigned field, struct buf *m)
{
	put_varint(b, field << 3 | COUNTED);
	put_varint(b, m->n);
	buf_put(b, m->p, m->n);
	buf_free(m);
}

static int get_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; shift < 64 && *p < end; shift += 7) {
		uint8_t c = *(*p)++;
		*v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80)
			return 1;
	}
	return 0;
}

static uint64_t get_fixed(const uint8_t *p, int n)
{
	uint64_t v = 0;
	for (int i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

int next_field(const uint8_t **p, const uint8_t *end, struct field *f)
{
	uint64_t tag, n;
	if (*p == end)
		return 0;
	if (!get_varint(p, end, &tag) || tag >> 3 == 0 || tag >> 3 > 1u << 29)
		return -1;
	memset(f, 0, sizeof *f);
	f->number = (unsigned)(tag >> 3);
	f->wire = tag & 7;
	switch (f->wire) {
	case VARINT:
		return get_varint(p, end, &f->value) ? 1 : -1;
	case COUNTED:
		if (!get_varint(p, end, &n) || n > (uint64_t)(end - *p))
			return -1;
		f->p = *p;
		f->n = (size_t)n;
		*p += n;
		return 1;
	case EIGHT:
	case FOUR:
		n = f->wire == EIGHT ? 8 : 4;
		if ((uint64_t)(end - *p) < n)
			return -1;
		f->value = get_fixed(*p, (int)n);
		*p += n;
		return 1;
	default:
		return -1;
	}
}

char *field_text(const struct field *f)
{
	char *s = need(malloc(f->n + 1));
	if (f->n > 0)
		memcpy(s, f->p, f->n);
	s[f->n] = 0;
	return s;
}
