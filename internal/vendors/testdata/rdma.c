/* Tries the plane rdma of libimpi-plugin from inside, with a proc and a peer that break the rules, and
 * prints what is not as it must be. It is run with sanitizers, and compiled with -Wno-override-init, as
 * cases change fields of what is right. */
#include "rdma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOT = 64 << 10, PAGE = 4096, COMPLETIONS = 4096 + 64 * 64, BOUNCE = 4096 + 2 * 64 * 64 };

static const char *name;
static int faults;

static void expect(int good, const char *what)
{
	if (good)
		return;
	printf("%s: %s\n", name, what);
	faults++;
}

/* The hardware: it registers up to a limit. */
static uint64_t registered, limit;
static int tries;
static char journal[256]; /* sizes in pages that were registered (+) and unregistered (-) */

static void note(char sign, size_t size)
{
	size_t n = strlen(journal);
	snprintf(journal + n, sizeof journal - n, "%c%zu", sign, size / PAGE);
}

static int takes(const struct impi_memory *m, void **registration, void *key, size_t *key_size)
{
	struct impi_memory *r = malloc(sizeof *r);
	tries++;
	if (limit > 0 && registered + m->size > limit) {
		free(r);
		return -1;
	}
	*r = *m;
	registered += m->size;
	note('+', m->size);
	memcpy(key, "key", *key_size = 3);
	*registration = r;
	return 0;
}

static void gives_up(void *registration)
{
	struct impi_memory *r = registration;
	*(volatile char *)r->mem = 1; /* it is still mapped */
	registered -= r->size;
	note('-', r->size);
	free(r);
}

/* The peer, whose messages a case gives, and the proc, which acts when they were received. */
struct message {
	struct header h;
	const char *data;
	size_t n;
};

static struct {
	struct pump p;
	int fds[3];
	uint8_t *mem;
	uint64_t submitted;
	const struct message *coming;
	int left;                    /* of them */
	void (*acts)(void);
	char sent[512];              /* kinds and data of what was sent */
	int asked, closed, reset, bell_open, ended;
	int fails;                   /* reads by rail 0 fail; 2: by any */
	struct impi_fabric_read reads[32];
	int reads_n;
	int completes;
} w;

static int peer_takes(void *state, const struct iovec *pieces, int n)
{
	(void)state;
	size_t at = strlen(w.sent);
	const uint8_t *head = pieces[0].iov_base;
	if (head[0] == ASKS)
		w.asked++;
	snprintf(w.sent + at, sizeof w.sent - at, "%d%.*s,", head[0], n > 1 && pieces[1].iov_len < 100 ? (int)pieces[1].iov_len : 0,
		n > 1 ? (const char *)pieces[1].iov_base : "");
	return 1;
}

static ssize_t peer_sends(void *state, const struct iovec *pieces, int n)
{
	uint8_t bytes[HEADER + SLOT] = { 0 };
	(void)state;
	if (w.left == 0) {
		void (*acts)(void) = w.acts;
		w.acts = NULL;
		if (acts != NULL)
			acts();
		return w.ended ? IMPI_ENDED : 0;
	}
	const struct message *m = w.coming++;
	size_t size = HEADER + m->n, at = 0;
	w.left--;
	header_put(&m->h, bytes);
	if (m->data != NULL)
		memcpy(bytes + HEADER, m->data, strlen(m->data));
	for (int i = 0; i < n && at < size; i++) {
		size_t k = size - at < pieces[i].iov_len ? size - at : pieces[i].iov_len;
		memcpy(pieces[i].iov_base, bytes + at, k);
		at += k;
	}
	return (ssize_t)size;
}

static int reads(void *state, const struct impi_fabric_read *r)
{
	(void)state;
	w.reads[w.reads_n++] = *r;
	return 1;
}

static int done(void *state, struct impi_fabric_done *to, int n)
{
	(void)state, (void)n;
	if (!w.completes || w.reads_n == 0)
		return 0;
	struct impi_fabric_read r = w.reads[--w.reads_n];
	*to = (struct impi_fabric_done){ r.op, w.fails > r.rail };
	if (!to->failed)
		memset(r.into, 'x', r.size);
	return 1;
}

static int never_sleeps(void *state) { (void)state; return 1; }
static void closes(void *state) { (void)state; w.closed++; }

static void resets(void *state)
{
	char byte;
	(void)state;
	w.reset++;
	while (recv(w.fds[1], &byte, 1, MSG_DONTWAIT) > 0)
		;
	w.bell_open = errno == EAGAIN;
}

/* world makes a link. */
static void world(const char *called)
{
	static const struct impi_fabric_ops ops = { peer_takes, peer_sends, reads, done, never_sleeps, closes, resets };
	name = called;
	limit = 0;
	journal[0] = 0;
	memset(&w, 0, sizeof w);
	w.p.conn = (struct impi_conn){ .fd = -1, .fabric = &ops, .message = 1 << 17, .rails = 2 };
	expect(rdma_make(&w.p, w.fds) == 0, "no link can be made");
	w.mem = mmap(NULL, BOUNCE + 3 * 8 * SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, w.fds[0], 0);
}

/* run passes messages on until the link has ended, and gives what was logged. */
static const char *run(const struct message *coming, int n, void (*acts)(void))
{
	static char log[4096];
	int file = memfd_create("log", 0), err = dup(2);
	w.coming = coming;
	w.left = n;
	w.acts = acts;
	dup2(file, 2);
	rdma_run(&w.p);
	dup2(err, 2);
	memset(log, 0, sizeof log);
	(void)!pread(file, log, sizeof log - 1, 0);
	close(file), close(err);
	char byte;
	ssize_t k;
	while ((k = recv(w.fds[1], &byte, 1, MSG_DONTWAIT)) > 0)
		;
	expect(k == 0, "the socket for waking is open after the end");
	expect(w.closed + w.reset == 1, "the connection was not ended once");
	expect(registered == 0, "memory is still registered");
	munmap(w.mem, BOUNCE + 3 * 8 * SLOT);
	for (int i = 0; i < 3; i++)
		if (w.fds[i] >= 0)
			close(w.fds[i]);
	return log;
}

static void submit(struct entry e)
{
	memcpy(w.mem + 4096 + 64 * (w.submitted++ % 64), &e, 64);
	atomic_store((_Atomic uint64_t *)(w.mem + 1024), w.submitted);
}

static void leave_link(void)
{
	close(w.fds[2]);
	w.fds[2] = -1;
}

/* record sends a record of the region channel with a descriptor. */
static void record(const uint8_t *b, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof fd)];
	} control = { 0 };
	struct iovec bytes = { (void *)b, n };
	struct msghdr m = { .msg_iov = &bytes, .msg_iovlen = 1 };
	if (fd >= 0) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof control.room;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	expect(sendmsg(w.fds[2], &m, 0) == (ssize_t)n, "a record was not sent");
}

static int file_of(size_t size, int seals)
{
	int fd = memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	expect(ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0, "no file");
	return fd;
}

static uint8_t *lent_mem; /* what was lent last */

static void lend_as(uint8_t number, uint8_t generation, uint16_t says, int seals)
{
	uint8_t b[32] = { 'I', 'M', 'P', 'R', 0, 1, 0, 1, 0, 0, 0, number, 0, 0, 0, generation, 0, 0, 0, 0, 0, 0, (uint8_t)(says >> 8), (uint8_t)says };
	int fd = file_of(PAGE, seals);
	record(b, sizeof b, fd);
	if (lent_mem != NULL)
		munmap(lent_mem, PAGE);
	lent_mem = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
}

static void lend(uint8_t number, uint8_t generation) { lend_as(number, generation, PAGE, F_SEAL_SHRINK); }

/* What a proc may submit. Others change a field of it. */
#define LOAN .kind = SEND_LOAN, .region = 3, .number = 1, .generation = 7, .length = PAGE
#define READ .kind = READ_PART, .region = 3, .number = 1, .generation = 7, .length = PAGE, .message = 1
#define AFTER(what) { lend(3, 7); what; leave_link(); }

#define PROCS(X) \
	X(region_not_lent, "generation 7 of region 9, which is not lent", submit((struct entry){ LOAN, .region = 9 })) \
	X(old_generation, "generation 6 of region 3", submit((struct entry){ LOAN, .generation = 6 })) \
	X(generation_again, "lends generation 7 of region 3", lend(3, 7); submit((struct entry){ LOAN })) \
	X(beyond_its_end, "are not in region 3", submit((struct entry){ LOAN, .offset = 1 })) \
	X(far_beyond, "are not in region 3", submit((struct entry){ LOAN, .offset = (uint64_t)1 << 46 })) \
	X(overflow, "at offset 9223372036854775808", submit((struct entry){ LOAN, .offset = (uint64_t)1 << 63 })) \
	X(no_bytes, "0 bytes at offset", submit((struct entry){ LOAN, .length = 0 })) \
	X(too_long, "1073741825 bytes", submit((struct entry){ LOAN, .length = ((uint64_t)1 << 30) + 1 })) \
	X(no_message, "message 2, which is not open", submit((struct entry){ READ, .message = 2 })) \
	X(message_0, "message 0, which is not open", submit((struct entry){ READ, .message = 0 })) \
	X(beyond_message, "at 5000 of message 1", submit((struct entry){ READ, .at = 5000 })) \
	X(place_overflows, "which is not open or shorter", submit((struct entry){ READ, .at = (uint64_t)1 << 63 })) \
	X(not_in_a_slot, "not in one of them", submit((struct entry){ READ, .region = 0, .offset = SLOT - 50, .length = 100 })) \
	X(beyond_the_slots, "not in one of them", submit((struct entry){ READ, .region = 0, .offset = 8 * SLOT, .length = 1 })) \
	X(read_into_old, "generation 8", submit((struct entry){ READ, .generation = 8 })) \
	X(done_twice, "done with message 1", submit((struct entry){ .kind = MESSAGE_DONE, .message = 1 }); submit((struct entry){ .kind = MESSAGE_DONE, .message = 1 })) \
	X(done_while_read, "is being read", submit((struct entry){ READ }); submit((struct entry){ .kind = MESSAGE_DONE, .message = 1 })) \
	X(after_its_end, "after its end", submit((struct entry){ .kind = PROC_ENDED }); submit((struct entry){ LOAN })) \
	X(many_loans, "beside 8 that it has not had back", for (int i = 0; i < 9; i++) submit((struct entry){ LOAN, .number = 1u + i })) \
	X(many_reads, "more than once for each slot", for (int i = 0; i < 10; i++) submit((struct entry){ READ, .length = 1 })) \
	X(forget_unknown, "takes region 8 back", submit((struct entry){ .kind = FORGET, .region = 8, .generation = 1 })) \
	X(other_slot, "in slot 1; the next is slot 0", submit((struct entry){ .kind = SEND_SLOT, .slot = 1, .length = 1 })) \
	X(no_slot, "in slot 4294967288", submit((struct entry){ .kind = SEND_SLOT, .slot = (uint32_t)-8, .length = 1 })) \
	X(long_slot, "65537 bytes in slot 0", submit((struct entry){ .kind = SEND_SLOT, .slot = 0, .length = SLOT + 1 })) \
	X(frees_nothing, "gives back slot 0", submit((struct entry){ .kind = FREE_SLOT })) \
	X(no_kind, "of kind 99", submit((struct entry){ .kind = 99 })) \
	X(impossible_head, "has written 65 entries", atomic_store((_Atomic uint64_t *)(w.mem + 1024), 65)) \
	X(record_cut, "a record of 2 bytes", record((const uint8_t *)"IM", 2, -1)) \
	X(record_without_file, "with 0 descriptors", record((const uint8_t *)"IMPR\0\1\0\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\20\0\0\0\0\0\0\0\0\0", 32, -1)) \
	X(empty_record, "a record of 0 bytes", int fd = file_of(PAGE, F_SEAL_SHRINK); record(NULL, 0, fd); close(fd)) \
	X(unsealed, "can be made smaller", lend_as(4, 1, PAGE, 0)) \
	X(other_size, "has not the 4097 bytes", lend_as(4, 1, PAGE + 1, F_SEAL_SHRINK)) \
	X(region_0, "lends region 0", lend(0, 1)) \
	X(generation_0, "generation 0", lend(4, 0))

#define DEFINE(id, words, what) static void id(void) AFTER(what)
PROCS(DEFINE)

static const struct { const char *name, *words; void (*acts)(void); } procs[] = {
#define LIST(id, words, what) { #id, words, id },
	PROCS(LIST)
};

static const struct message greeting[] = {
	{ { .kind = HELLO, .number = 8, .length = SLOT, .offset = ANSWERS_ASKS }, NULL, 0 },
	{ { .kind = OFFER, .number = 1, .length = 5000, .key = 3 }, "key", 3 },
};

static void wrong_procs(void)
{
	for (size_t i = 0; i < sizeof procs / sizeof procs[0]; i++) {
		world(procs[i].name);
		const char *log = run(greeting, 2, procs[i].acts);
		expect(strstr(log, procs[i].words) != NULL, log);
		expect(w.reset == 1, "the peer sees an end in order");
		expect(w.bell_open, "the proc was told that nothing is read before the connection was reset");
	}
}

#define HELLO_FIRST { { .kind = HELLO, .number = 8, .length = SLOT, .offset = ANSWERS_ASKS }, NULL, 0 }

static const struct { const char *name, *words; struct message m[3]; int n; } peers[] = {
	{ "no hello", "hello comes first", { { { .kind = EAGER, .length = 1 }, "x", 1 } }, 1 },
	{ "hello twice", "hello comes first and once", { HELLO_FIRST, HELLO_FIRST }, 2 },
	{ "no room", "room for 0 messages", { { { .kind = HELLO, .number = 0, .length = SLOT }, NULL, 0 } }, 1 },
	{ "no kind", "of kind 9", { HELLO_FIRST, { { .kind = 9 }, NULL, 0 } }, 2 },
	{ "short data", "2 bytes behind its header", { HELLO_FIRST, { { .kind = EAGER, .length = 3 }, "xx", 2 } }, 2 },
	{ "a long key", "a key of 300", { HELLO_FIRST, { { .kind = OFFER, .number = 1, .length = 1, .key = 300 }, "k", 300 } }, 2 },
	{ "offers the second first", "offers message 2", { HELLO_FIRST, { { .kind = OFFER, .number = 2, .length = 1, .key = 3 }, "key", 3 } }, 2 },
	{ "offers nothing", "message 1 of 0 bytes", { HELLO_FIRST, { { .kind = OFFER, .number = 1, .key = 3 }, "key", 3 } }, 2 },
	{ "allows more than it has", "allows 1 more messages", { HELLO_FIRST, { { .kind = MORE, .allowed = 1 }, NULL, 0 } }, 2 },
	{ "takes what is not offered", "has taken message 1", { HELLO_FIRST, { { .kind = TAKEN, .number = 1 }, NULL, 0 } }, 2 },
	{ "takes message 0", "has taken message 0", { HELLO_FIRST, { { .kind = TAKEN, .number = 0 }, NULL, 0 } }, 2 },
	{ "asks for nothing", "which was not offered", { HELLO_FIRST, { { .kind = ASKS, .number = 1, .length = 1 }, NULL, 0 } }, 2 },
	{ "a part for nobody", "was not asked for", { HELLO_FIRST, { { .kind = PIECE, .number = 1, .length = 1 }, "x", 1 } }, 2 },
	{ "ends twice", "ended twice", { HELLO_FIRST, { { .kind = ENDED_ALL }, NULL, 0 }, { { .kind = ENDED_ALL }, NULL, 0 } }, 3 },
	{ "sends after its end", "one after its end", { HELLO_FIRST, { { .kind = ENDED_ALL }, NULL, 0 }, { { .kind = EAGER, .length = 1 }, "x", 1 } }, 3 },
};

static void wrong_peers(void)
{
	struct message many[10] = { HELLO_FIRST };
	for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
		world(peers[i].name);
		const char *log = run(peers[i].m, peers[i].n, leave_link);
		expect(strstr(log, peers[i].words) != NULL, log);
		expect(w.reset == 1, "the peer sees an end in order");
	}
	for (int i = 1; i < 10; i++)
		many[i] = (struct message){ { .kind = EAGER, .length = 1 }, "x", 1 };
	world("more than it may");
	const char *log = run(many, 10, leave_link);
	expect(strstr(log, "more messages than it may") != NULL, log);
}

/* completion gives a copy of the nth entry that the proc was told. */
static struct entry completion(uint64_t n)
{
	struct entry e;
	memcpy(&e, w.mem + COMPLETIONS + 64 * n, sizeof e);
	return e;
}

static uint64_t completions(void) { return atomic_load((_Atomic uint64_t *)(w.mem + 2048)); }

static void peer_closes(void)
{
	w.ended = 1;
	leave_link();
}

static void check_sent(void)
{
	expect(completions() == 3 && completion(0).kind == SLOT_SENT && completion(1).kind == LOAN_SENT && completion(1).number == 1 &&
		completion(2).kind == PEER_ENDED, "the completions are not those of a slot, a loan and the end");
	peer_closes();
}

static void peer_takes_all(void)
{
	static const struct message took[] = { { { .kind = TAKEN, .number = 1 }, NULL, 0 }, { { .kind = ENDED_ALL }, NULL, 0 } };
	expect(strcmp(w.sent, "1,2short,3key,5,") == 0, w.sent);
	w.coming = took;
	w.left = 2;
	w.acts = check_sent;
}

static void sends_all(void)
{
	lend(3, 7);
	memcpy(w.mem + BOUNCE, "short", 5);
	submit((struct entry){ .kind = SEND_SLOT, .slot = 0, .length = 5 });
	submit((struct entry){ LOAN, .offset = 96, .length = 4000 });
	submit((struct entry){ .kind = FORGET, .region = 3, .generation = 7 }); /* what came before is still sent */
	submit((struct entry){ .kind = PROC_ENDED });
	w.acts = peer_takes_all;
}

/* peer_ends lets a link end in order whose proc has ended. */
static void peer_ends(void)
{
	static const struct message end = { { .kind = ENDED_ALL }, NULL, 0 };
	w.coming = &end;
	w.left = 1;
	w.acts = peer_closes;
}

static int patience;

static void until_read(void)
{
	w.completes = 1;
	if (completions() < 3 && patience-- > 0) {
		w.acts = until_read;
		return;
	}
	expect(completions() == 3 && completion(1).kind == WAS_READ && completion(2).kind == WAS_READ, "two reads are not completed");
	const uint8_t *slots = w.mem + BOUNCE + 16 * SLOT;
	expect(lent_mem[0] == 'x' && lent_mem[PAGE - 1] == 'x' && slots[SLOT] == 'x' && slots[SLOT + 199] == 'x' && slots[SLOT + 200] == 0 && slots[SLOT - 1] == 0,
		"what was read is elsewhere");
	submit((struct entry){ .kind = MESSAGE_DONE, .message = 1 });
	submit((struct entry){ .kind = PROC_ENDED });
	w.acts = peer_ends;
}

static void reads_twice(void)
{
	lend(3, 7);
	submit((struct entry){ READ, .at = 100 });
	submit((struct entry){ READ, .region = 0, .number = 2, .at = 4200, .offset = SLOT, .length = 200 });
	patience = 1000;
	w.acts = until_read;
}

/* fetched follows what the peer has sent of a message. */
static void fetched(void)
{
	expect(completions() == 2 && completion(1).kind == WAS_READ && lent_mem[0] == 'y' && lent_mem[1] == 'z', "what was fetched is not there");
	submit((struct entry){ .kind = MESSAGE_DONE, .message = 1 });
	submit((struct entry){ .kind = PROC_ENDED });
	w.acts = peer_ends;
}

static uint64_t part_at;

static void peer_sends_part(void)
{
	static struct message part;
	if (w.asked == 0 && patience-- > 0) {
		w.acts = peer_sends_part;
		return;
	}
	expect(w.asked == 1, "the peer was not asked for a part");
	part = (struct message){ { .kind = PIECE, .number = 1, .offset = part_at, .length = PAGE }, "yz", PAGE };
	w.coming = &part;
	w.left = 1;
	w.acts = part_at == 100 ? fetched : leave_link;
}

static void fetches(void)
{
	lend(3, 7);
	submit((struct entry){ READ, .at = 100 });
	patience = 1000;
	w.acts = peer_sends_part;
}

static void links(void)
{
	world("a good proc");
	run(greeting, 1, sends_all);
	expect(w.closed == 1 && strcmp(journal, "+1-1") == 0, journal);
	for (int rails = 0; rails <= 2; rails++) { /* that fail */
		world("reads");
		w.fails = rails;
		const char *log = run(greeting, 2, reads_twice);
		expect(rails < 2 ? w.closed == 1 && strstr(w.sent, "4,") != NULL : strstr(log, "no rail is left") != NULL, log);
	}
	for (part_at = 99; part_at <= 100; part_at++) {
		world("fetches");
		limit = 1;
		const char *log = run(greeting, 2, fetches);
		expect(part_at == 100 ? w.closed == 1 : strstr(log, "asked for were 4096 at 100 of message 1") != NULL, log);
		expect(journal[0] == 0, journal);
	}
}

static void use_once(struct file *f)
{
	struct use u;
	expect(cache_use(f, &u) == 0, "memory cannot be used");
	cache_unuse(f);
}

static struct file *pages(int n) { return cache_lend(file_of((size_t)n * PAGE, F_SEAL_SHRINK), (uint64_t)n * PAGE); }

/* What is registered is closed to make room, the one that was used longest ago first. */
static void cache(void)
{
	struct impi_registrations before, after;
	struct use u;
	name = "cache";
	journal[0] = 0;
	limit = 0;
	impi_count_registrations(&before);
	impi_keep_registered(4 * PAGE);
	struct file *one = pages(1), *two = pages(2), *three = pages(3);
	use_once(one), use_once(two), use_once(one), use_once(three);
	expect(strcmp(journal, "+1+2-2+3") == 0, journal);
	expect(cache_use(one, &u) == 0 && cache_use(three, &u) == 0 && cache_use(two, &u) == 0 && registered == 6 * PAGE, "what is in use was closed");
	cache_reclaim(one);
	cache_unuse(two);
	expect(registered == 4 * PAGE, "more than the budget is kept");
	cache_unuse(one), cache_unuse(three);
	cache_reclaim(two), cache_reclaim(three);
	impi_count_registrations(&after);
	expect(registered == 0 && after.made - before.made == 4 && after.evicted - before.evicted == 2 && after.used_again - before.used_again == 3, journal);

	name = "a limit of the hardware";
	impi_keep_registered(1 << 30);
	limit = 3 * PAGE;
	tries = 0;
	one = pages(1), two = pages(2), three = pages(3);
	use_once(one), use_once(two), use_once(three);
	expect(registered == 3 * PAGE, "what nothing used was not closed to make room");
	cache_reclaim(one), cache_reclaim(two), cache_reclaim(three);
	limit = 1;
	tries = 0;
	one = pages(1);
	for (int i = 0; i < 100; i++)
		use_once(one);
	expect(tries == 7, "memory that is refused is not tried more and more seldom");
	cache_reclaim(one);
}

int main(void)
{
	static const struct impi_transport t = { .name = "tried", .register_memory = takes, .unregister_memory = gives_up };
	transport = &t;
	setenv("IMPI_PLUGIN_LOG_LEVEL", "debug", 1);
	wrong_procs();
	wrong_peers();
	links();
	cache();
	return faults > 0;
}
