//go:build linux

/* Short messages by the site's MPI, without Go: see shorts.go. One thread at a time calls this. */
#include "library.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	RECEIVES = 16,  /* that are posted, of anybody: what comes beyond them the library keeps meanwhile */
	SENDS = 64,     /* that the library has begun */
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
	if (!launch(b, m, sizeof *m, (const void *)data, m->bytes))
		return 0;
	b->said = m->taken;
	b->sent++;
	return 1;
}

void impi_shorts_took(struct impi_short_boxes *b, uint64_t taken)
{
	uint32_t n = (uint32_t)taken;
	if (n - b->said >= IMPI_SHORT_LAG && launch(b, &n, sizeof n, NULL, 0))
		b->said = n;
}

/* file puts a message into the boxes of its sender. It refuses what no proc of ours sends: one that says that
 * more were taken than were sent, or one for which there is no box, since the sender knows of so many taken. */
static int file(struct shorts *s, const void *memory, int64_t bytes, int32_t source)
{
	struct impi_short_boxes *b = source >= 0 && source < s->ranks ? s->boxes[source] : NULL;
	struct impi_short m;
	if (b == NULL || (bytes != sizeof m.taken && bytes < (int64_t)sizeof m))
		return 0;
	if (b->closed)
		return 1;
	memcpy(&m.taken, memory, sizeof m.taken);
	uint64_t read = atomic_load_explicit(&b->read, memory_order_relaxed);
	if ((uint32_t)(m.taken - (uint32_t)read) > (uint32_t)(b->sent - (uint32_t)read))
		return 0;
	atomic_store_explicit(&b->read, read + (uint32_t)(m.taken - (uint32_t)read), memory_order_release);
	if (bytes == sizeof m.taken)
		return 1;
	memcpy(&m, memory, sizeof m);
	if (bytes != (int64_t)sizeof m + m.bytes || m.bytes > IMPI_SHORT_MOST || (uint32_t)(b->come - b->said) >= IMPI_SHORT_BOXES)
		return 0;
	size_t i = b->come % IMPI_SHORT_BOXES;
	const char *data = (const char *)memory + sizeof m;
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
