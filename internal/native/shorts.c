//go:build linux

/* Short messages by the site's MPI, without Go: see shorts.go. One thread at a time calls this. */
#include "library.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* receives that are posted, for messages of any proc: the library keeps what comes beyond that */
	RECEIVES = 16,
	SENDS = 64,     /* most sends that the library may have begun */
	SPACE = 8192,   /* memory for one send, envelope included */
	TRIES = 1000,   /* looks in vain until a trip yields the core: the other side may need it */
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
	uint32_t piece, most; /* most bytes of data in a piece, and of a message that goes in pieces */
	/* the receive of the last message has yet to be posted again, which waits until the receiver of
	 * the message has gone on */
	int again;
	int out;   /* how many of sends are in use */
	struct sending sends[SENDS];
	char *memory[SENDS]; /* memory for sends: the first spare ones are free */
	struct sending *drops; /* data that are received although nobody wants them */
	int dropping;
	struct impi_short_boxes *boxes[];
};

static inline struct shorts *of(struct impi_shorts *s) { return (struct shorts *)s; }

static uint32_t between(uint32_t least, int64_t n, uint32_t most) { return n < least ? least : n > most ? most : (uint32_t)n; }

struct impi_shorts *impi_shorts_begin(const struct impi_native *fn, int ranks)
{
	struct shorts *s = calloc(1, sizeof *s + (size_t)ranks * sizeof s->boxes[0]);
	char *memory = malloc(SENDS * SPACE);
	uint32_t piece = between(IMPI_PIECE_LEAST, fn->piece, IMPI_PIECE_MOST);
	if (!s || !memory || fn->shorts_begin(IMPI_SHORT_ENVELOPE + piece, RECEIVES)) {
		free(s);
		free(memory);
		return NULL;
	}
	s->fn = fn;
	s->ranks = ranks;
	s->piece = piece;
	s->most = between(IMPI_SHORT_LEAST, fn->most, IMPI_SHORT_MOST);
	for (int i = 0; i < SENDS; i++)
		s->memory[i] = memory + i * SPACE;
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

/* reap_drops frees the memory of what has come and nobody wants. */
static void reap_drops(struct shorts *s)
{
	int kept = 0;
	for (int i = 0; i < s->dropping; i++) {
		int error = s->fn->test(s->drops[i].number);
		if (error == IMPI_NATIVE_NONE) {
			s->drops[kept++] = s->drops[i];
			continue;
		}
		if (error && !s->seen.error)
			s->seen.error = error;
		free(s->drops[i].memory);
	}
	s->dropping = kept;
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
	if (s->dropping > 0)
		reap_drops(s);
}

int impi_shorts_sending(struct impi_shorts *s)
{
	reap(of(s));
	return s->error ? 0 : of(s)->out + of(s)->dropping;
}

enum { OURS, THEIRS }; /* of last and knows */

/* alike reports whether two messages have the same envelope, but for their lengths. */
static inline int alike(const struct impi_short *a, const struct impi_short *b)
{
	return a->at == b->at && a->context == b->context && a->rank == b->rank && a->tag == b->tag && a->kind == b->kind;
}

/* spare reports whether there is memory to send n messages now. */
static inline int spare(struct shorts *s, int n)
{
	if (s->seen.spare < n)
		reap(s);
	return s->seen.spare >= n && !s->seen.error;
}

/* launch sends a message, for which there has to be memory. */
static int launch(struct impi_short_boxes *b, const void *head, size_t heads, const void *data, size_t bytes)
{
	struct shorts *s = of(b->all);
	int32_t number;
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

/* A form without an envelope, and the message's length if it does not follow from that of the
 * data. */
struct brief {
	uint8_t taken, form;
	uint8_t bytes[IMPI_LENGTH_SIZE];
};

/* post sends an envelope, whole or by a form that leaves it out, with n bytes behind it. */
static inline int post(struct impi_short_boxes *b, struct impi_short *m, int whole, int like, const void *data, size_t n)
{
	if (b->knows[OURS] && alike(m, &b->last[OURS])) {
		struct brief head = {(uint8_t)m->taken, (uint8_t)like, {0}};
		memcpy(head.bytes, &m->bytes, sizeof head.bytes);
		if (!launch(b, &head, like == IMPI_SHORT_ALIKE ? IMPI_SHORT_FORM_SIZE : sizeof head, data, n))
			return 0;
	} else {
		struct impi_short all = *m;
		all.taken = (m->taken & 0xff) | (uint32_t)whole << 8;
		if (!launch(b, &all, sizeof all, data, n))
			return 0;
		b->last[OURS] = *m;
		b->knows[OURS] = 1;
	}
	b->said = m->taken;
	b->sent++;
	return 1;
}

int impi_shorts_put(struct impi_short_boxes *b, struct impi_short *m, uintptr_t data)
{
	uint32_t piece = of(b->all)->piece;
	if (m->bytes <= piece)
		return spare(of(b->all), 1) && post(b, m, IMPI_SHORT_WHOLE, IMPI_SHORT_ALIKE, (const void *)data, m->bytes);
	if (!spare(of(b->all), IMPI_SHORT_PIECES) || !post(b, m, IMPI_SHORT_WHOLE, IMPI_SHORT_LONG_ALIKE, (const void *)data, piece))
		return 0;
	for (uint32_t at = piece; at < m->bytes; at += piece) {
		const struct brief head = {(uint8_t)m->taken, IMPI_SHORT_MORE, {0}};
		uint32_t n = m->bytes - at < piece ? m->bytes - at : piece;
		if (!launch(b, &head, IMPI_SHORT_FORM_SIZE, (const char *)data + at, n))
			return 0;
	}
	return 1;
}

int impi_shorts_lend(struct impi_short_boxes *b, struct impi_short *m, uintptr_t data, int32_t *number)
{
	struct shorts *s = of(b->all);
	*number = IMPI_NATIVE_NONE;
	if (m->bytes <= s->most)
		return impi_shorts_put(b, m, data);
	if (!spare(s, 1) || !post(b, m, IMPI_SHORT_APART, IMPI_SHORT_APART_ALIKE, NULL, 0))
		return 0;
	int error = s->fn->long_send(b->rank, (const void *)data, m->bytes, number);
	if (error)
		s->seen.error = error;
	return 1; /* the envelope has left: whoever polls next hears of the error */
}

int impi_shorts_fetch(struct impi_short_boxes *b, uintptr_t to, uint64_t bytes, int32_t *number)
{
	struct shorts *s = of(b->all);
	*number = IMPI_NATIVE_NONE;
	if (!s->seen.error)
		s->seen.error = s->fn->long_recv(b->rank, (void *)to, (int64_t)bytes, number);
	return s->seen.error;
}

int impi_shorts_drop(struct impi_short_boxes *b, uint64_t bytes)
{
	struct shorts *s = of(b->all);
	struct sending *all = realloc(s->drops, ((size_t)s->dropping + 1) * sizeof *all), one;
	if (!all || !(one.memory = malloc(bytes)))
		return s->seen.error = s->seen.error ? s->seen.error : IMPI_SHORT_MEMORY;
	s->drops = all;
	int error = impi_shorts_fetch(b, (uintptr_t)one.memory, bytes, &one.number);
	if (error || one.number == IMPI_NATIVE_NONE)
		free(one.memory);
	else
		s->drops[s->dropping++] = one;
	return error;
}

int impi_shorts_close(struct impi_short_boxes *b, uint64_t taken)
{
	int error = 0;
	b->closed = 1;
	for (; taken < b->come && !error; taken++) {
		/* the first 8 bytes of a box are its mark: taken and at are not in it */
		struct impi_short *m = (struct impi_short *)b->in[taken % IMPI_SHORT_BOXES];
		if (m->bytes > of(b->all)->most)
			error = impi_shorts_drop(b, m->bytes);
	}
	return error;
}

void impi_shorts_took(struct impi_short_boxes *b, uint64_t taken)
{
	const uint8_t head[IMPI_SHORT_FORM_SIZE] = {(uint8_t)taken, IMPI_SHORT_TAKEN};
	if ((uint32_t)taken - b->said >= IMPI_SHORT_LAG && spare(of(b->all), 1) && launch(b, head, sizeof head, NULL, 0))
		b->said = (uint32_t)taken;
}

/* read_apart is read_head for a message whose data come apart. */
static const char *read_apart(struct impi_short_boxes *b, const uint8_t *memory, int64_t bytes, struct impi_short *m)
{
	if (memory[1] == IMPI_SHORT_APART_ALIKE && b->knows[THEIRS] && bytes == IMPI_SHORT_FORM_SIZE + IMPI_LENGTH_SIZE) {
		*m = b->last[THEIRS];
		memcpy(&m->bytes, memory + IMPI_SHORT_FORM_SIZE, sizeof m->bytes);
	} else if (memory[1] == IMPI_SHORT_APART && bytes == (int64_t)sizeof *m) {
		memcpy(m, memory, sizeof *m);
		b->last[THEIRS] = *m;
		b->knows[THEIRS] = 1;
	} else
		return NULL;
	return m->bytes > of(b->all)->most && m->bytes <= IMPI_LONG_MOST ? (const char *)memory : NULL;
}

/* read_head reads what comes before the data of a message, and gives those. NULL: it is none of
 * ours. */
static const char *read_head(struct impi_short_boxes *b, const uint8_t *memory, int64_t bytes, struct impi_short *m)
{
	uint32_t piece = of(b->all)->piece, most = of(b->all)->most;
	if (memory[1] == IMPI_SHORT_ALIKE && b->knows[THEIRS]) {
		*m = b->last[THEIRS];
		m->bytes = (uint32_t)(bytes - IMPI_SHORT_FORM_SIZE);
		return m->bytes <= piece ? (const char *)memory + IMPI_SHORT_FORM_SIZE : NULL;
	}
	if (memory[1] == IMPI_SHORT_LONG_ALIKE && b->knows[THEIRS] && bytes == (int64_t)sizeof(struct brief) + piece) {
		*m = b->last[THEIRS];
		memcpy(&m->bytes, memory + IMPI_SHORT_FORM_SIZE, sizeof m->bytes);
		return m->bytes > piece && m->bytes <= most ? (const char *)memory + sizeof(struct brief) : NULL;
	}
	if (memory[1] != IMPI_SHORT_WHOLE || bytes < (int64_t)sizeof *m)
		return NULL;
	memcpy(m, memory, sizeof *m);
	if (m->bytes > most || bytes != (int64_t)sizeof *m + (m->bytes < piece ? m->bytes : piece))
		return NULL;
	b->last[THEIRS] = *m;
	b->knows[THEIRS] = 1;
	return (const char *)memory + sizeof *m;
}

static inline char *box_of(struct impi_short_boxes *b) { return b->in[b->come % IMPI_SHORT_BOXES]; }

/* place_of is where the data of the next message go: each of as many messages as there are boxes
 * has another place. */
static inline uint32_t place_of(struct impi_short_boxes *b) { return (uint32_t)((b->come - b->base) % IMPI_SHORT_BOXES * IMPI_SHORT_PLACE); }

/* publish says that the message in the next box is complete. at is its place in the stream. */
static inline void publish(struct shorts *s, struct impi_short_boxes *b, uint32_t at)
{
	char *box = box_of(b);
	b->come++;
	s->seen.come++;
	atomic_store_explicit((_Atomic uint64_t *)box, b->come << 32 | at, memory_order_release);
}

/* file_more puts another piece of a message behind those that are there. */
static int file_more(struct shorts *s, struct impi_short_boxes *b, const char *data, uint32_t bytes)
{
	if (b->closed) {
		b->rest = 0;
		return 1;
	}
	if (b->rest == 0 || bytes != (b->rest < s->piece ? b->rest : s->piece))
		return 0;
	const struct impi_short *m = (const struct impi_short *)box_of(b); /* but for the first 8 bytes */
	memcpy(b->data + place_of(b) + m->bytes - b->rest, data, bytes);
	b->rest -= bytes;
	if (b->rest == 0)
		publish(s, b, b->rest_at);
	return 1;
}

/* box puts a message, or its first piece, into the next box, which is free. */
static void box(struct shorts *s, struct impi_short_boxes *b, const struct impi_short *m, const char *data, int apart)
{
	char *box = box_of(b);
	if (atomic_load_explicit(&b->told, memory_order_acquire) == b->come)
		b->base = b->come; /* the same places again, which are in the cache */
	memcpy(box + 8, &m->context, IMPI_SHORT_ENVELOPE - 8);
	if (m->bytes <= 8)
		memcpy(box + IMPI_SHORT_ENVELOPE, data, m->bytes);
	else if (m->bytes <= IMPI_SHORT_BOX - IMPI_SHORT_ENVELOPE)
		memcpy(box + IMPI_SHORT_ENVELOPE, data, m->bytes);
	else {
		const uint32_t where[2] = {apart ? IMPI_IS_APART : place_of(b), m->bytes};
		memcpy(box + IMPI_SHORT_ENVELOPE, where, sizeof where);
		if (!apart && m->bytes > s->piece) {
			memcpy(b->data + where[0], data, s->piece);
			b->rest = m->bytes - s->piece;
			b->rest_at = m->at;
			return;
		}
		if (!apart)
			memcpy(b->data + where[0], data, m->bytes);
	}
	publish(s, b, m->at);
}

/* file puts a message into the boxes of its sender. It refuses what no proc of ours sends: one that
 * says that more were taken than were sent, or one for which there is no box, since the sender
 * knows of so many taken. */
static int file(struct shorts *s, const void *memory, int64_t bytes, int32_t source)
{
	struct impi_short_boxes *b = source >= 0 && source < s->ranks ? s->boxes[source] : NULL;
	struct impi_short m;
	if (b == NULL || bytes < IMPI_SHORT_FORM_SIZE)
		return 0;
	int form = ((const uint8_t *)memory)[1];
	if (form == IMPI_SHORT_MORE)
		return file_more(s, b, (const char *)memory + IMPI_SHORT_FORM_SIZE, (uint32_t)(bytes - IMPI_SHORT_FORM_SIZE));
	uint64_t read = atomic_load_explicit(&b->read, memory_order_relaxed);
	uint8_t more = (uint8_t)(*(const uint8_t *)memory - read);
	if (b->rest > 0 || more > (uint32_t)(b->sent - (uint32_t)read))
		return 0;
	if (more > 0)
		atomic_store_explicit(&b->read, read + more, memory_order_release);
	if (form == IMPI_SHORT_TAKEN)
		return bytes == IMPI_SHORT_FORM_SIZE;
	int apart = form == IMPI_SHORT_APART || form == IMPI_SHORT_APART_ALIKE;
	const char *data = apart ? read_apart(b, memory, bytes, &m) : read_head(b, memory, bytes, &m);
	if (data == NULL)
		return 0;
	if (b->closed)
		return !apart || !impi_shorts_drop(b, m.bytes);
	if ((uint32_t)(b->come - b->said) >= IMPI_SHORT_BOXES)
		return 0;
	box(s, b, &m, data, apart);
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
		if (error || !file(s, memory, bytes, source))
			all->error = error ? error : all->error ? all->error : IMPI_SHORT_WRONG;
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
