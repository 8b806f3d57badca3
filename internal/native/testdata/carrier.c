/* Two procs that exchange messages by shorts.c, by an MPI of this test: it delivers short messages
 * and long ones without an order between the two, ends requests when it likes, reads what it was
 * given to send only when it ends the request, and spoils the memory of a message that was
 * taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int blocks; /* that shorts.c has */
static void *counted(void *p) { return blocks += p != NULL, p; }
static void uncounted(void *p) { blocks -= p != NULL, free(p); }
#define malloc(n) counted(malloc(n))
#define calloc(n, m) counted(calloc(n, m))
#define realloc(p, n) (blocks -= (p) != NULL, counted(realloc(p, n)))
#define free(p) uncounted(p)
#include "shorts.c"
#undef malloc
#undef calloc
#undef realloc
#undef free

enum { MESSAGES = 3000, MOST = 40000, REQUESTS = 4096, SLOTS_MOST = 64 };

static int wrong, seed;
#define CHECK(what)                                                                                  \
	do {                                                                                             \
		if (!(what) && ++wrong < 20)                                                                 \
			printf("seed %d, proc %d: line %d: not so: %s\n", seed, me, __LINE__, #what);            \
	} while (0)

static uint64_t state;
static int below(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

static int me; /* the proc whose turn it is */
static int fails; /* what the library gives for whatever is begun */
static uint32_t most; /* bytes of a message that goes in pieces */
static int briefs; /* short messages that had no envelope before their data */

struct request {
	int used, late; /* tests in vain until it is done; < 0: as long as nobody matches it */
	char *to;
	const char *from;
	int64_t bytes;
};
static struct request requests[2][REQUESTS];
static int in_use[2];

struct letter {
	int64_t bytes;
	int number; /* of its sender's request; NONE: data has all */
	const char *data;
	char *own;
};
struct queue { struct letter *of; int first, count; };
static struct queue shorts_to[2], longs_to[2]; /* to each */
static struct { int count, next, filled; int64_t room; char *memory[SLOTS_MOST]; int64_t bytes[SLOTS_MOST]; } posted[2];

static int32_t begin_request(int who, int late)
{
	for (int32_t i = 0; i < REQUESTS; i++)
		if (!requests[who][i].used) {
			requests[who][i] = (struct request){ .used = 1, .late = late };
			in_use[who]++;
			return i;
		}
	abort();
}

static void add(struct queue *q, struct letter l)
{
	q->of = realloc(q->of, (size_t)(q->first + q->count + 1) * sizeof *q->of);
	q->of[q->first + q->count++] = l;
}

static int test(int32_t number)
{
	struct request *r = &requests[me][number];
	CHECK(number >= 0 && number < REQUESTS && r->used);
	if (r->late < 0 || r->late-- > 0)
		return IMPI_NATIVE_NONE;
	if (r->to)
		memcpy(r->to, r->from, (size_t)r->bytes);
	r->used = 0;
	in_use[me]--;
	return 0;
}

static int shorts_begin(int64_t room, int count)
{
	posted[me].room = room, posted[me].count = count, posted[me].next = posted[me].filled = 0;
	for (int i = 0; i < count; i++)
		posted[me].memory[i] = malloc((size_t)room);
	return 0;
}

static int short_send(int to, const void *buf, int64_t bytes, int32_t *number)
{
	struct letter l = { .bytes = bytes, .number = IMPI_NATIVE_NONE, .data = buf };
	CHECK(to == !me && bytes <= posted[to].room);
	if (fails)
		return fails;
	int form = ((const uint8_t *)buf)[1];
	briefs += form == IMPI_SHORT_ALIKE || form == IMPI_SHORT_LONG_ALIKE || form == IMPI_SHORT_APART_ALIKE;
	if (below(2)) {
		l.own = memcpy(malloc((size_t)bytes + 1), buf, (size_t)bytes);
		l.data = l.own;
	} else
		l.number = begin_request(me, -1);
	*number = l.number;
	add(&shorts_to[to], l);
	return 0;
}

static int short_next(const void **buf, int64_t *bytes, int32_t *source)
{
	struct queue *q = &shorts_to[me];
	/* so the library makes progress */
	while (q->count > 0 && posted[me].filled < posted[me].count && below(3)) {
		struct letter *l = &q->of[q->first++];
		int at = (posted[me].next + posted[me].filled++) % posted[me].count;
		q->count--;
		memcpy(posted[me].memory[at], l->data, (size_t)l->bytes);
		posted[me].bytes[at] = l->bytes;
		free(l->own);
		if (l->number != IMPI_NATIVE_NONE)
			requests[!me][l->number].late = below(3);
	}
	if (posted[me].filled == 0)
		return IMPI_NATIVE_NONE;
	*buf = posted[me].memory[posted[me].next];
	*bytes = posted[me].bytes[posted[me].next];
	*source = !me;
	return 0;
}

static int short_again(void)
{
	CHECK(posted[me].filled > 0);
	memset(posted[me].memory[posted[me].next], 0xee, (size_t)posted[me].room);
	posted[me].next = (posted[me].next + 1) % posted[me].count;
	posted[me].filled--;
	return 0;
}

static int shorts_end(void)
{
	CHECK(posted[me].filled == 0);
	for (int i = 0; i < posted[me].count; i++)
		free(posted[me].memory[i]);
	return 0;
}

static int long_send(int to, const void *buf, int64_t bytes, int32_t *number)
{
	if (fails)
		return fails;
	*number = begin_request(me, -1);
	add(&longs_to[to], (struct letter){ .bytes = bytes, .number = *number, .data = buf });
	return 0;
}

static int long_recv(int from, void *buf, int64_t bytes, int32_t *number)
{
	struct queue *q = &longs_to[me];
	if (fails)
		return fails;
	CHECK(from == !me && q->count > 0 && q->of[q->first].bytes == bytes);
	struct letter *l = &q->of[q->first++];
	q->count--;
	if (below(4) == 0) {
		memcpy(buf, l->data, (size_t)bytes);
		requests[!me][l->number].late = below(3);
		*number = IMPI_NATIVE_NONE;
		return 0;
	}
	*number = begin_request(me, below(4));
	requests[me][*number].to = buf, requests[me][*number].bytes = bytes;
	/* a copy, as the sender may change its memory from now on; never freed, as it is small */
	char *copy = malloc((size_t)bytes);
	requests[me][*number].from = memcpy(copy, l->data, (size_t)bytes);
	requests[!me][l->number].late = below(3);
	return 0;
}

static struct impi_native fake = { .abi = IMPI_NATIVE_ABI, .size = sizeof fake, .test = test, .shorts_begin = shorts_begin, .short_send = short_send, .short_next = short_next,
	.short_again = short_again, .shorts_end = shorts_end, .long_send = long_send, .long_recv = long_recv };

static struct proc {
	struct impi_shorts *all;
	struct impi_short_boxes *b;
	int sent, taken, closed;
	struct { int used; int32_t number; char *data; } lent[64];
	int32_t waits; /* for data of the message that was taken last; NONE: for none */
	char *into;
} procs[2];

/* What message i of a proc is: of a few envelopes, so that many are as the one before. */
static uint32_t length(int who, int i)
{
	static const uint32_t some[] = { 0, 1, 8, 9, 95, 96, 97, 1000, IMPI_PIECE_LEAST, IMPI_PIECE_MOST + 1, IMPI_SHORT_MOST, IMPI_SHORT_MOST + 1, MOST, 8, 8, IMPI_SHORT_LEAST + 1, 16384, 12000, 12001 };
	return some[(i * 7 + i / 16 * 3 + i / 400 + who) % 19];
}
static uint32_t place(int i) { return (uint32_t)(i / 23 * 5); }
static struct impi_short envelope(int who, int i) { return (struct impi_short){ .at = place(i), .context = 7 + (uint64_t)(i / 53 % 2), .rank = who, .tag = i / 10 % 3, .bytes = length(who, i), .kind = 3 + (uint32_t)(i / 71 % 2) }; }
static char byte_of(int who, int i, uint32_t k) { return (char)((unsigned)i * 31 + k + (unsigned)who); }

static int is_filled(const char *data, int who, int i, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (data[k] != byte_of(who, i, k))
			return 0;
	return 1;
}

/* send sends the next message of a proc, if it may and can. */
static void send(struct proc *p)
{
	uint64_t read = atomic_load(&p->b->read);
	CHECK(read <= (uint64_t)procs[!me].taken && read <= (uint64_t)p->sent);
	for (int k = 0; k < 64; k++)
		if (p->lent[k].used && (p->lent[k].number == IMPI_NATIVE_NONE || test(p->lent[k].number) == 0)) {
			p->lent[k].used = 0;
			memset(p->lent[k].data, 0x11, MOST);
			free(p->lent[k].data);
		}
	int k = p->sent % 64;
	if (p->sent == MESSAGES || (uint64_t)p->sent - read >= IMPI_SHORT_BOXES || p->lent[k].used)
		return;
	struct impi_short m = envelope(me, p->sent);
	m.taken = (uint32_t)p->taken;
	char *data = malloc(MOST);
	for (uint32_t i = 0; i < m.bytes; i++)
		data[i] = byte_of(me, p->sent, i);
	int done;
	if (m.bytes > IMPI_SHORT_LEAST) {
		if ((done = impi_shorts_lend(p->b, &m, (uintptr_t)data, &p->lent[k].number))) {
			CHECK((p->lent[k].number != IMPI_NATIVE_NONE) == (m.bytes > most));
			p->lent[k].used = 1, p->lent[k].data = data, data = NULL;
		}
	} else {
		done = impi_shorts_put(p->b, &m, (uintptr_t)data);
		memset(data, 0x22, m.bytes);
	}
	free(data);
	p->sent += done;
}

/* take takes the next message, if there is one, and looks whether it is the one that was sent. */
static void take(struct proc *p)
{
	if (p->waits != IMPI_NATIVE_NONE) {
		if (test(p->waits) != 0)
			return;
		p->waits = IMPI_NATIVE_NONE;
		CHECK(is_filled(p->into, !me, p->taken - 1, length(!me, p->taken - 1)));
	}
	char *box = p->b->in[p->taken % IMPI_SHORT_BOXES];
	uint64_t mark = atomic_load_explicit((_Atomic uint64_t *)box, memory_order_acquire);
	if (mark >> 32 != (uint64_t)p->taken + 1)
		return;
	struct impi_short want = envelope(!me, p->taken), m;
	memcpy(&m, box, sizeof m);
	CHECK((uint32_t)mark == want.at && m.context == want.context && m.rank == want.rank && m.tag == want.tag && m.bytes == want.bytes && m.kind == want.kind);
	const char *data = box + IMPI_SHORT_ENVELOPE;
	uint32_t where[2];
	memcpy(where, data, sizeof where);
	p->taken++;
	if (want.bytes > most) {
		CHECK(where[0] == IMPI_IS_APART && where[1] == want.bytes);
		if (below(5) == 0)
			CHECK(impi_shorts_drop(p->b, want.bytes) == 0);
		else {
			memset(p->into, 0, MOST);
			CHECK(impi_shorts_fetch(p->b, (uintptr_t)p->into, want.bytes, &p->waits) == 0);
			CHECK(p->waits != IMPI_NATIVE_NONE || is_filled(p->into, !me, p->taken - 1, want.bytes));
		}
	} else {
		if (want.bytes > IMPI_SHORT_BOX - IMPI_SHORT_ENVELOPE) {
			CHECK(where[1] == want.bytes && where[0] <= IMPI_SHORT_AREA - want.bytes);
			data = p->b->data + where[0];
		}
		CHECK(is_filled(data, !me, p->taken - 1, want.bytes));
	}
	if (below(2))
		impi_shorts_took(p->b, (uint64_t)p->taken);
}

static void begin_world(void)
{
	memset(procs, 0, sizeof procs);
	for (int i = 0; i < 2; i++)
		shorts_to[i].first = shorts_to[i].count = longs_to[i].first = longs_to[i].count = 0;
	memset(requests, 0, sizeof requests);
	in_use[0] = in_use[1] = fails = briefs = blocks = 0;
	state = (uint64_t)seed * 7919 + 1;
	fake.piece = seed % 3 == 0 ? 0 : seed % 3 == 1 ? IMPI_PIECE_MOST : 1 << 20;
	fake.most = seed % 4 == 0 ? 0 : seed % 4 == 1 ? 12000 : 1 << 30;
	most = seed % 4 == 0 ? IMPI_SHORT_LEAST : seed % 4 == 1 ? 12000 : IMPI_SHORT_MOST;
	for (me = 0; me < 2; me++) {
		struct proc *p = &procs[me];
		p->all = impi_shorts_begin(&fake, 2);
		p->b = calloc(1, sizeof *p->b);
		p->b->rank = !me;
		p->waits = IMPI_NATIVE_NONE;
		p->into = malloc(MOST);
		impi_shorts_attach(p->all, p->b);
	}
}

/* settle ends what is under way, and looks whether anything is left. */
static void settle(void)
{
	for (int i = 0; i < 100000 && (in_use[0] > 0 || in_use[1] > 0 || shorts_to[0].count + shorts_to[1].count > 0 || posted[0].filled + posted[1].filled > 0); i++) {
		me = below(2);
		impi_shorts_pump(procs[me].all, 1);
		send(&procs[me]);
		impi_shorts_sending(procs[me].all);
	}
	for (me = 0; me < 2; me++) {
		struct proc *p = &procs[me];
		CHECK(in_use[me] == 0 && longs_to[me].count == 0 && p->all->error == 0 && impi_shorts_sending(p->all) == 0 && p->all->spare == 64);
		CHECK(impi_shorts_end(p->all) == 0);
		/* each proc has its state, memory for messages, and a list of what is dropped */
		CHECK(blocks <= 2 * 3);
		free(p->b);
		free(p->into);
	}
}

/* All messages come as they were sent, in their order. Sometimes one proc is the only one that
 * sends for a while. */
static void exchange(void)
{
	begin_world();
	for (int i = 0; i < 400000 && (procs[0].taken < MESSAGES || procs[1].taken < MESSAGES); i++) {
		me = below(2);
		struct proc *p = &procs[me];
		if (below(2) && (i / 2000 % 3 != 1 + me))
			send(p);
		if (below(2))
			CHECK(impi_shorts_pump(p->all, 1 + below(4)) == 0);
		if (below(2))
			take(p);
		CHECK(p->all->come == p->b->come);
	}
	for (me = 0; me < 2; me++) {
		CHECK(procs[me].taken == MESSAGES && procs[me].sent == MESSAGES);
		while (procs[me].waits != IMPI_NATIVE_NONE)
			take(&procs[me]);
	}
	CHECK(briefs > MESSAGES);
	settle();
}

/* Where a proc closes its side, what comes is dropped and what was announced is received: its
 * sender ends all. */
static void closing(void)
{
	begin_world();
	for (int i = 0; i < 3000; i++) {
		me = below(2);
		if (i > 1000 + seed * 20 && !procs[1].closed && procs[1].waits == IMPI_NATIVE_NONE) {
			me = 1;
			CHECK(impi_shorts_close(procs[1].b, (uint64_t)procs[1].taken) == 0);
			procs[1].closed = 1;
		}
		if (me == 0 || !procs[1].closed)
			send(&procs[me]);
		CHECK(impi_shorts_pump(procs[me].all, 1) == 0);
		if (below(3) && !procs[me].closed)
			take(&procs[me]);
	}
	CHECK(procs[1].closed);
	uint64_t come = procs[1].b->come;
	while (procs[0].waits != IMPI_NATIVE_NONE)
		me = 0, take(&procs[0]);
	procs[0].sent = procs[1].sent = MESSAGES;
	settle();
	CHECK(come > 0);
}

/* An error of the library is kept, and nothing is sent behind it. */
static void failing(void)
{
	for (int what = 0; what < 3; what++) {
		begin_world();
		struct proc *p = &procs[me = 0];
		struct impi_short m = { .bytes = what == 0 ? 8 : MOST };
		static char data[MOST];
		int32_t number;
		if (what < 2) {
			fails = 15;
			CHECK(!(what == 0 ? impi_shorts_put(p->b, &m, (uintptr_t)data) : impi_shorts_lend(p->b, &m, (uintptr_t)data, &number)));
		} else {
			fails = 15;
			CHECK(impi_shorts_fetch(p->b, (uintptr_t)data, MOST, &number) == 15);
		}
		CHECK(p->all->error == 15 && p->b->sent == 0);
		fails = 0;
		CHECK(!impi_shorts_put(p->b, &m, (uintptr_t)data) && impi_shorts_pump(p->all, 1) == 15 && impi_shorts_sending(p->all) == 0);
		CHECK(shorts_to[1].count == 0);
	}
}

/* As long as the library has all the memory for messages it sends none, and it takes that back when
 * it is done. */
static void full(void)
{
	begin_world();
	struct proc *p = &procs[me = 0];
	struct impi_short m = { .bytes = 8 };
	static char data[8];
	for (p->sent = 0; p->sent < 10000 && impi_shorts_put(p->b, &m, (uintptr_t)data); p->sent++)
		;
	CHECK(in_use[0] == 64 && p->all->spare == 0 && p->all->error == 0);
	for (int i = 0; i < REQUESTS; i++)
		requests[0][i].late = 0;
	CHECK(impi_shorts_put(p->b, &m, (uintptr_t)data) && in_use[0] <= 1);
}

/* A proc that takes and sends nothing tells the other one in time. */
static void silent(void)
{
	begin_world();
	for (int i = 0; i < 100000 && procs[1].taken < MESSAGES; i++) {
		me = 0;
		send(&procs[0]);
		impi_shorts_pump(procs[0].all, 1);
		me = 1;
		impi_shorts_pump(procs[1].all, 1);
		int before = procs[1].taken;
		take(&procs[1]);
		if (procs[1].taken != before) {
			uint32_t said = procs[1].b->said;
			impi_shorts_took(procs[1].b, (uint64_t)procs[1].taken);
			CHECK(procs[1].b->said == said || procs[1].b->said - said >= IMPI_SHORT_LAG);
		}
	}
	me = 1;
	CHECK(procs[1].taken == MESSAGES);
	while (procs[1].waits != IMPI_NATIVE_NONE)
		take(&procs[1]);
	procs[1].sent = MESSAGES;
	settle();
}

int main(void)
{
	for (seed = 0; seed < 12; seed++) {
		exchange();
		closing();
		silent();
	}
	failing();
	full();
	if (!wrong)
		puts("OK");
	return wrong != 0;
}
