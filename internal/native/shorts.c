//go:build linux

/* Short messages by the site's MPI, without Go: see shorts.go. One thread at a time calls this. */
#include "library.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	RECEIVES = 16,  /* that are posted, of anybody: what comes beyond them the library keeps meanwhile */
	SENDS = 64,     /* that the library has begun */
	TRIES = 1000,   /* in vain, before a trip yields the core: the other side may need it */
};

/* A message that the library has not sent yet. */
struct sending {
	int32_t number;
	char *memory;
};

struct shorts {
	struct impi_shorts seen;
	const struct impi_native *fn;
	int ranks;
	int again; /* the receive of the last message has to be posted again: later, as its receiver wants to go on */
	int out;   /* how many of sends */
	struct sending sends[SENDS];
	char *memory[SENDS]; /* for others, of which some are spare */
	struct impi_short_boxes *boxes[];
};

static inline struct shorts *of(struct impi_shorts *s) { return (struct shorts *)s; }

struct impi_shorts *impi_shorts_begin(const struct impi_native *fn, int ranks)
{
	struct shorts *s = calloc(1, sizeof *s + (size_t)ranks * sizeof s->boxes[0]);
	char *memory = malloc(SENDS * IMPI_SHORT_AREA / IMPI_SHORT_BOXES);
	if (!s || !memory || fn->shorts_begin(IMPI_SHORT_ENVELOPE + IMPI_SHORT_MOST, RECEIVES)) {
		free(s);
		free(memory);
		return NULL;
	}
	s->fn = fn;
	s->ranks = ranks;
	for (int i = 0; i < SENDS; i++)
		s->memory[i] = memory + i * (IMPI_SHORT_AREA / IMPI_SHORT_BOXES);
	s->seen.spare = SENDS;
	return &s->seen;
}

int impi_shorts_end(struct impi_shorts *all)
{
	struct shorts *s = of(all);
	int error = s->again ? s->fn->short_again() : 0;
	s->again = 0;
	return error ? error : s->fn->shorts_end();
}

void impi_shorts_attach(struct impi_shorts *s, struct impi_short_boxes *b)
{
	b->all = s;
	of(s)->boxes[b->rank] = b;
}

/* reap takes back the memory of what has been sent. */
static void reap(struct shorts *s)
{
	int kept = 0;
	for (int i = 0; i < s->out; i++) {
		int error = s->fn->test(s->sends[i].number);
		if (error == IMPI_NATIVE_NONE) {
			s->sends[kept++] = s->sends[i];
			continue;
		}
		if (error && !s->seen.error)
			s->seen.error = error;
		s->memory[s->seen.spare++] = s->sends[i].memory;
	}
	s->out = kept;
}

int impi_shorts_sending(struct impi_shorts *s)
{
	reap(of(s));
	return s->error ? 0 : of(s)->out;
}

enum { OURS, THEIRS }; /* of last and knows */

/* alike reports whether two messages have the same envelope, but for their lengths. */
static inline int alike(const struct impi_short *a, const struct impi_short *b)
{
	return a->at == b->at && a->context == b->context && a->rank == b->rank && a->tag == b->tag && a->kind == b->kind;
}

/* launch sends a message. */
static int launch(struct impi_short_boxes *b, const void *head, size_t heads, const void *data, size_t bytes)
{
	struct shorts *s = of(b->all);
	int32_t number;
	if (s->seen.spare == 0)
		reap(s);
	if (s->seen.spare == 0 || s->seen.error)
		return 0;
	char *memory = s->memory[s->seen.spare - 1];
	memcpy(memory, head, heads);
	if (bytes == 8)
		memcpy(memory + heads, data, 8);
	else if (bytes > 0)
		memcpy(memory + heads, data, bytes);
	int error = s->fn->short_send(b->rank, memory, (int64_t)(heads + bytes), &number);
	if (error) {
		s->seen.error = error;
		return 0;
	}
	if (number != IMPI_NATIVE_NONE)
		s->sends[s->out++] = (struct sending){number, s->memory[--s->seen.spare]};
	return 1;
}

int impi_shorts_put(struct impi_short_boxes *b, struct impi_short *m, uintptr_t data)
{
	if (b->knows[OURS] && alike(m, &b->last[OURS])) {
		const uint8_t head[IMPI_SHORT_FORM_SIZE] = {(uint8_t)m->taken, IMPI_SHORT_ALIKE};
		if (!launch(b, head, sizeof head, (const void *)data, m->bytes))
			return 0;
	} else {
		struct impi_short whole = *m;
		whole.taken = m->taken & 0xff;
		if (!launch(b, &whole, sizeof whole, (const void *)data, m->bytes))
			return 0;
		b->last[OURS] = *m;
		b->knows[OURS] = 1;
	}
	b->said = m->taken;
	b->sent++;
	return 1;
}

void impi_shorts_took(struct impi_short_boxes *b, uint64_t taken)
{
	const uint8_t head[IMPI_SHORT_FORM_SIZE] = {(uint8_t)taken, IMPI_SHORT_TAKEN};
	if ((uint32_t)taken - b->said >= IMPI_SHORT_LAG && launch(b, head, sizeof head, NULL, 0))
		b->said = (uint32_t)taken;
}

/* read_head reads what comes before the data of a message, and gives those. NULL: it is none of ours. */
static const char *read_head(struct impi_short_boxes *b, const uint8_t *memory, int64_t bytes, struct impi_short *m)
{
	if (memory[1] == IMPI_SHORT_ALIKE && b->knows[THEIRS]) {
		*m = b->last[THEIRS];
		m->bytes = (uint32_t)(bytes - IMPI_SHORT_FORM_SIZE);
		return (const char *)memory + IMPI_SHORT_FORM_SIZE;
	}
	if (memory[1] != IMPI_SHORT_WHOLE || bytes < (int64_t)sizeof *m)
		return NULL;
	memcpy(m, memory, sizeof *m);
	if (bytes != (int64_t)sizeof *m + m->bytes)
		return NULL;
	b->last[THEIRS] = *m;
	b->knows[THEIRS] = 1;
	return (const char *)memory + sizeof *m;
}

/* file puts a message into the boxes of its sender. It refuses what no proc of ours sends: one that says that
 * more were taken than were sent, or one for which there is no box, since the sender knows of so many taken. */
static int file(struct shorts *s, const void *memory, int64_t bytes, int32_t source)
{
	struct impi_short_boxes *b = source >= 0 && source < s->ranks ? s->boxes[source] : NULL;
	struct impi_short m;
	if (b == NULL || bytes < IMPI_SHORT_FORM_SIZE)
		return 0;
	if (b->closed)
		return 1;
	uint64_t read = atomic_load_explicit(&b->read, memory_order_relaxed);
	uint8_t more = (uint8_t)(*(const uint8_t *)memory - read);
	if (more > (uint32_t)(b->sent - (uint32_t)read))
		return 0;
	if (more > 0)
		atomic_store_explicit(&b->read, read + more, memory_order_release);
	if (((const uint8_t *)memory)[1] == IMPI_SHORT_TAKEN)
		return bytes == IMPI_SHORT_FORM_SIZE;
	const char *data = read_head(b, memory, bytes, &m);
	if (data == NULL || m.bytes > IMPI_SHORT_MOST || (uint32_t)(b->come - b->said) >= IMPI_SHORT_BOXES)
		return 0;
	size_t i = b->come % IMPI_SHORT_BOXES;
	char *box = b->in[i];
	memcpy(box + 8, &m.context, IMPI_SHORT_ENVELOPE - 8);
	if (m.bytes <= 8)
		memcpy(box + IMPI_SHORT_ENVELOPE, data, m.bytes);
	else if (m.bytes <= IMPI_SHORT_BOX - IMPI_SHORT_ENVELOPE)
		memcpy(box + IMPI_SHORT_ENVELOPE, data, m.bytes);
	else {
		uint32_t at = (uint32_t)(i * (IMPI_SHORT_AREA / IMPI_SHORT_BOXES));
		memcpy(b->data + at, data, m.bytes);
		memcpy(box + IMPI_SHORT_ENVELOPE, &at, sizeof at);
	}
	b->come++;
	s->seen.come++;
	atomic_store_explicit((_Atomic uint64_t *)box, b->come << 32 | m.at, memory_order_release);
	return 1;
}

int impi_shorts_pump(struct impi_shorts *all, int most)
{
	struct shorts *s = of(all);
	if (s->out > 0)
		reap(s);
	for (; most > 0 && !all->error; most--) {
		const void *memory;
		int64_t bytes;
		int32_t source;
		if (s->again && (all->error = s->fn->short_again()))
			break;
		s->again = 0;
		int error = s->fn->short_next(&memory, &bytes, &source);
		if (error == IMPI_NATIVE_NONE)
			break;
		s->again = !error;
		all->error = error || file(s, memory, bytes, source) ? error : IMPI_SHORT_WRONG;
	}
	return all->error;
}

int impi_shorts_trips(struct impi_short_boxes *b, struct impi_short_trips *t)
{
	struct impi_short m = {.at = t->out_at, .bytes = 8};
	uint64_t word = 0;
	for (int i = 0; i < 2 * t->turns; i++) {
		if ((i % 2 == 0) == (t->first != 0)) {
			m.taken = (uint32_t)t->taken;
			while (!impi_shorts_put(b, &m, (uintptr_t)&word))
				if (impi_shorts_pump(b->all, 1))
					return b->all->error;
			continue;
		}
		const char *box = b->in[t->taken % IMPI_SHORT_BOXES];
		for (int looks = 1; atomic_load_explicit((_Atomic uint64_t *)box, memory_order_acquire) != ((t->taken + 1) << 32 | t->in_at); looks++) {
			if (impi_shorts_pump(b->all, 1))
				return b->all->error;
			if (looks > TRIES)
				sched_yield();
		}
		memcpy(&word, box + IMPI_SHORT_ENVELOPE, sizeof word);
		if (++t->taken % IMPI_SHORT_LAG == 0)
			impi_shorts_took(b, t->taken);
	}
	return 0;
}
