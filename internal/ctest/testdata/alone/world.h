// The C code by which a proc uses the MPI of its site, compiled without Go: its clock, the yields
// of its core, that MPI's carrier and the functions of Go are those here, so that a test can say
// how often C looks before it does what. Each test begins with begin_test.

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int fake_gettime(clockid_t, struct timespec *);
static int fake_yield(void);
#define clock_gettime fake_gettime
#define sched_yield fake_yield
#include "fastpath.c"
#include "fastsite.c"

static int wrong;
static const char *test_name;
#define CHECK(what)                                                                                                                                                \
	do {                                                                                                                                                           \
		if (!(what) && ++wrong)                                                                                                                                    \
			printf("%s: line %d: not so: %s (pumps %d, yields %d, tests %d, Go %d by %s)\n", test_name, __LINE__, #what, pumps, yields, tests, went, went_to);     \
	} while (0)

enum { US = 1000, LOOK = 100, SHARED = 2000, LONG_BYTES = 64000, TAG = 5, ME = 0, YOU = 1 };

// What has happened.
static uint64_t now; // ns
static int pumps, yields, tests, went, hears, reviews, wakes, fetches, lent, puts_done, tooks, begins;
static const char *went_to; // of went, the last
static struct { void *to; uint64_t bytes; } fetched[64];
static struct phase begun_phase;
static char order[64]; // of lends, fetches and calls of Go

static void note(char what) { order[strlen(order) < sizeof order - 1 ? strlen(order) : 0] = what; }

// What happens next. on_pump is called by the pump with number at_pump, put has room from that with
// number puts_from on, and over_after says for each number how many tests find it not over: < 0
// all.
static uint64_t yield_takes;
static int at_pump;
static void (*on_pump)(void), (*on_hear)(void);
static int puts_from, fetch_gives, fetch_error, lend_gives, go_gives, begin_error;
static int over_after[64], ends_with;
static int32_t begin_gives;

static struct place ins[FASTBOXES], outs[FASTBOXES];
static _Atomic uint64_t taken_by_other, told_other, stream_come;
static _Atomic uint32_t other_sleeps;
static uint64_t come; // messages of the other one
static char area[FASTBOXES * 8192] __attribute__((aligned(4096))), mine[1 << 20] __attribute__((aligned(4096))), theirs[1 << 20] __attribute__((aligned(4096)));
static char huge[TEAM_MOST + 8192] __attribute__((aligned(4096)));
static struct { MPI_Status status[64]; MPI_Request request[64]; int flag; } known_words __attribute__((aligned(4096)));

static int fake_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	t->tv_sec = (time_t)(now / 1000000000), t->tv_nsec = (long)(now % 1000000000);
	return 0;
}

static int fake_yield(void)
{
	yields++;
	now += yield_takes;
	return 0;
}

int to_go(const char *name)
{
	if (!strcmp(name, "fastPathHear")) {
		hears++;
		CHECK(GLANCE(x->gate) == OPEN);
		if (on_hear)
			on_hear();
		return 0;
	}
	CHECK(GLANCE(x->gate) != INSIDE);
	if (!strcmp(name, "fastPathReview"))
		return reviews++, 0;
	if (!strcmp(name, "fastPathWake"))
		return wakes++, 0;
	went++;
	went_to = name;
	note('G');
	return go_gives;
}

static int fake_pump(void *all, int most)
{
	CHECK(all == &ins && most == 1);
	now += LOOK;
	if (++pumps == at_pump && on_pump)
		on_pump();
	return 0;
}

static int fake_put(void *carrier, const struct carried *m, uintptr_t data)
{
	CHECK(carrier == &outs && m->context == 9 && m->rank == ME && m->tag == TAG && m->taken == x->peers[0].taken && (m->bytes == 0 || data == (uintptr_t)mine));
	if (pumps < puts_from)
		return 0;
	note('P');
	return ++puts_done;
}

static void fake_took(void *carrier, uint64_t taken)
{
	CHECK(carrier == &outs && taken == x->peers[0].taken);
	tooks++;
}

static int fake_lend(void *carrier, const struct carried *m, uintptr_t data, int32_t *number)
{
	if (!fake_put(carrier, m, data))
		return 0;
	CHECK(m->bytes > CARRIED_MOST); // the carrier knows whether it sends them in pieces
	order[strlen(order) - 1] = 'L';
	lent++;
	*number = lend_gives;
	return 1;
}

static int fake_fetch(void *carrier, void *to, uint64_t bytes, int32_t *number)
{
	CHECK(carrier == &outs);
	note('F');
	if (fetch_error)
		return fetch_error;
	fetched[fetches].to = to, fetched[fetches].bytes = bytes;
	*number = fetch_gives == NONE ? NONE : fetch_gives + fetches;
	fetches++;
	return 0;
}

static int fake_begin(void *library, const struct phase *p, int32_t *number)
{
	CHECK(library == &area);
	begins++;
	begun_phase = *p;
	*number = begin_gives;
	return begin_error;
}

static int fake_test(void *library, int32_t number)
{
	CHECK(library == &area && number >= 0 && number < 64);
	tests++;
	now += LOOK;
	return over_after[number] < 0 || over_after[number]-- > 0 ? NONE : ends_with;
}

static void know(const void *p, uint64_t n)
{
	for (uintptr_t page = (uintptr_t)p >> PAGE_SHIFT; page <= ((uintptr_t)p + n - 1) >> PAGE_SHIFT; page++)
		impi_readable[page % PAGES] = impi_writable[page % PAGES] = page;
}

static void forget(const void *p)
{
	uintptr_t page = (uintptr_t)p >> PAGE_SHIFT;
	impi_readable[page % PAGES] = impi_writable[page % PAGES] = 0;
}

static void begin_test(const char *name)
{
	test_name = name;
	now = 1000 * US, yield_takes = 500, went_to = "nobody";
	pumps = yields = tests = went = hears = reviews = wakes = fetches = lent = puts_done = tooks = begins = 0;
	at_pump = puts_from = fetch_error = go_gives = begin_error = ends_with = 0;
	fetch_gives = lend_gives = 10, begin_gives = NONE;
	on_pump = on_hear = NULL;
	come = taken_by_other = told_other = stream_come = 0;
	other_sleeps = 0;
	memset(order, 0, sizeof order);
	memset(over_after, 0, sizeof over_after);
	memset(ins, 0, sizeof ins);
	memset(x, 0, sizeof *x);
	x->polls = 2, x->yields = 1, x->shared = SHARED, x->first = x->last = x->moves.first = x->moves.last = NONE, x->top = 1;
	for (int i = 0; i < REQUESTS; i++)
		x->table[i].next = i + 1 < REQUESTS ? i + 1 : NONE;
	x->carriers = (struct carriers){ fake_pump, fake_put, fake_took, &ins, fake_lend, fake_fetch, fake_begin, fake_test, &area };
	x->peers[0] = (struct peer){ .out = outs, .in = ins, .read = &taken_by_other, .told = &told_other, .sleeps = &other_sleeps, .bytes = &stream_come,
		.limit = UINT64_MAX, .review = UINT64_MAX, .in_data = area, .in_area = sizeof area, .carrier = &outs, .sends = 1, .takes = 1 };
	uintptr_t h = (uintptr_t)MPI_COMM_WORLD;
	struct comm *c = &x->comms[(h ^ h >> 3 ^ h >> 32) % COMMS];
	*c = (struct comm){ .handle = h, .context = 9, .rank = ME, .tag_ub = 1000, .board = NONE, .whole = 1, .team = 3, .size = 2 };
	memset(c->peer, NONE, sizeof c->peer);
	c->peer[YOU] = 0;
	for (int i = 0; i < TEAMS; i++)
		x->teams[i].pending = NONE;
	impi_width[(uintptr_t)MPI_BYTE] = 1, impi_kind[(uintptr_t)MPI_BYTE] = 1;
	know(mine, sizeof mine);
	know(theirs, sizeof theirs);
	know(&known_words, sizeof known_words);
	memset(theirs, 0, sizeof theirs);
}

// The other one's next message: of n bytes, which are all n & 127, behind so many bytes of the
// stream.
static void comes_behind(uint32_t n, int tag, uint64_t stream)
{
	struct place *p = &ins[come % FASTBOXES];
	p->context = 9, p->rank = YOU, p->tag = tag, p->len = n, p->kind = 1;
	if (n > CARRIED_MOST)
		memcpy(p->data, (uint32_t[2]){ NOWHERE, n }, 8);
	else if (n > IN_FASTBOX) {
		uint32_t at = (uint32_t)(come % FASTBOXES * 8192);
		memcpy(p->data, (uint32_t[2]){ at, n }, 8);
		memset(area + at, (int)n & 127, n);
	} else
		memset(p->data, (int)n & 127, n);
	come++;
	STORE(p->mark, come << 32 | stream);
}
static void comes(uint32_t n, int tag) { comes_behind(n, tag, 0); }

static void eight_come(void) { comes(8, TAG); }
static void long_comes(void) { comes(LONG_BYTES, TAG); }
static void bytes_come(void) { STORE(stream_come, 1); }
static void comes_behind_bytes(void) { comes_behind(8, TAG, 1); }
static void go_wants_in(void) { x->leave_asked = 1; }

#define STATUS (&known_words.status[0])
static int receive_eight(void) { return MPI_Recv(theirs, 8, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, STATUS); }
static int receive_long(void) { return MPI_Recv(theirs, LONG_BYTES, MPI_BYTE, YOU, TAG, MPI_COMM_WORLD, STATUS); }
static int is_status(int i, int tag, int n) { return known_words.status[i].MPI_SOURCE == YOU && known_words.status[i].MPI_TAG == tag && known_words.status[i].MPI_internal[0] == n; }

