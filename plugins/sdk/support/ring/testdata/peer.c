/* The other side of a ring, written from docs/plugin-protocol.md and nothing else.
 *
 * Descriptor 3 is the region, 4 the socket; this is side 1. It reads the whole stream, from
 * the ring and from what is lent, then sends it back: every second piece is lent, if the
 * other side takes loans. It exits with the line number of what went wrong, modulo 256,
 * and prints how many loans it took and how many it gave. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "line %d: %s\n", __LINE__, #x); exit(__LINE__ % 255 + 1); } } while (0)

enum { REGION = 3, SOCK = 4, LOANS = 16 };

struct loan { uint64_t at, address, size, unused; };

/* One ring. */
struct ring {
	char *block;
	unsigned char *data;
	struct loan *table;
	uint64_t size;
	uint64_t head, tail; /* ours */
};

static _Atomic uint64_t *word64(struct ring *r, int offset) { return (_Atomic uint64_t *)(r->block + offset); }
static _Atomic uint32_t *word32(struct ring *r, int offset) { return (_Atomic uint32_t *)(r->block + offset); }

#define HEAD(r) word64(r, 0)
#define TAIL(r) word64(r, 128)
#define READER_SLEEPS(r) word32(r, 256)
#define WRITER_SLEEPS(r) word32(r, 384)
#define ENDED(r) word32(r, 512)
#define LENT(r) word64(r, 768)
#define LENDS(r) word32(r, 776)
#define RECALLED(r) word32(r, 780)
#define TAKEN(r) word64(r, 896)
#define TAKES(r) word32(r, 904)

static struct ring in, out;
static unsigned char key[16];

/* What the writer of the other ring says of itself, taken over once. */
static int tried, borrows, peer;
static uint64_t key_address, loans_taken;
static unsigned char peer_key[16];
static struct loan next; /* size 0: none is known */

static void open_region(void) {
	struct stat st;
	CHECK(fstat(REGION, &st) == 0);
	char *mem = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, REGION, 0);
	CHECK(mem != MAP_FAILED);
	uint64_t size, data;
	CHECK(memcmp(mem, "impiring", 8) == 0 && *(uint32_t *)(mem + 8) == 1 && *(uint32_t *)(mem + 12) == 0x01020304);
	memcpy(&size, mem + 24, 8);
	memcpy(&data, mem + 32, 8);
	in = (struct ring){mem + 1024, (unsigned char *)mem + data, (struct loan *)(mem + 3072), size, 0, 0};
	out = (struct ring){mem + 2048, (unsigned char *)mem + data + size, (struct loan *)(mem + 3584), size, 0, 0};
}

static void empty_socket(void) {
	char c[256];
	while (recv(SOCK, c, sizeof c, MSG_DONTWAIT) > 0) {}
}

static void wake_reader(void) {
	uint32_t one = 1;
	if (atomic_load(READER_SLEEPS(&out)) == 1 && atomic_compare_exchange_strong(READER_SLEEPS(&out), &one, 0))
		send(SOCK, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void wake_writer(void) {
	uint32_t one = 1;
	if (atomic_load(WRITER_SLEEPS(&in)) == 1 && atomic_compare_exchange_strong(WRITER_SLEEPS(&in), &one, 0))
		empty_socket();
}

static void wait_for(short events) {
	struct pollfd p = {SOCK, events, 0};
	CHECK(poll(&p, 1, 30000) == 1);
}

/* Finding out, on both sides. */
static void offer(void) {
	CHECK(getrandom(key, sizeof key, 0) == sizeof key);
	int32_t pid = getpid();
	uint64_t at = (uint64_t)(uintptr_t)key;
	memcpy(out.block + 784, &pid, 4);
	memcpy(out.block + 792, &at, 8);
	memcpy(out.block + 800, key, 16);
	atomic_store_explicit(LENDS(&out), 1, memory_order_release);
}

static ssize_t take_from(uint64_t address, unsigned char *to, size_t n) {
	unsigned char found[16];
	struct iovec local[] = {{found, 16}, {to, n}};
	struct iovec remote[] = {{(void *)(uintptr_t)key_address, 16}, {(void *)(uintptr_t)address, n}};
	ssize_t got = process_vm_readv(peer, local, n ? 2 : 1, remote, n ? 2 : 1, 0);
	if (got < 16 || memcmp(found, peer_key, 16) != 0)
		return -1;
	return got - 16;
}

static void try_borrowing(void) {
	if (tried || atomic_load_explicit(LENDS(&in), memory_order_acquire) == 0)
		return;
	tried = 1;
	int32_t pid;
	memcpy(&pid, in.block + 784, 4);
	memcpy(&key_address, in.block + 792, 8);
	memcpy(peer_key, in.block + 800, 16);
	peer = pid;
	if (take_from(0, NULL, 0) == 0) {
		borrows = 1;
		atomic_store_explicit(TAKES(&in), 1, memory_order_release);
	}
}

/* How many bytes of the ring can be read before the next loan; after head, lent. */
static uint64_t readable(void) {
	uint64_t head = atomic_load(HEAD(&in));
	CHECK(head - in.tail <= in.size);
	if (borrows && next.size == 0) {
		uint64_t lent = atomic_load(LENT(&in));
		CHECK(lent - loans_taken <= LOANS);
		if (lent != loans_taken) {
			next = in.table[loans_taken % LOANS];
			CHECK(next.size >= 1 && next.size <= 1u << 30 && next.at - in.tail <= in.size);
		}
	}
	uint64_t n = head - in.tail;
	return next.size > 0 && next.at - in.tail < n ? next.at - in.tail : n;
}

/* Reads up to room bytes; 0 is the end. */
static size_t receive(unsigned char *to, size_t room) {
	for (;;) {
		try_borrowing();
		uint32_t ended = atomic_load_explicit(ENDED(&in), memory_order_acquire);
		uint64_t n = readable();
		if (n > 0) {
			if (n > room)
				n = room;
			for (uint64_t i = 0; i < n; i++)
				to[i] = in.data[(in.tail + i) % in.size];
			in.tail += n;
			atomic_store(TAIL(&in), in.tail);
			if (atomic_load(HEAD(&in)) - in.tail <= in.size - in.size / 4)
				wake_writer();
			return n;
		}
		if (next.size > 0 && next.at == in.tail) {
			n = next.size < room ? next.size : room;
			ssize_t got = take_from(next.address, to, n);
			CHECK(got > 0 && atomic_load(RECALLED(&in)) == 0);
			next.address += got;
			if ((next.size -= got) == 0) {
				atomic_store(TAKEN(&in), ++loans_taken);
				wake_writer();
			}
			return got;
		}
		if (ended)
			return 0;
		empty_socket();
		atomic_store(READER_SLEEPS(&in), 1);
		if (readable() > 0 || next.size > 0 || atomic_load(ENDED(&in))) {
			atomic_store(READER_SLEEPS(&in), 0);
			continue;
		}
		wait_for(POLLIN);
	}
}

/* Waits until there is room in the ring and, where loans are out, one was taken. */
static void sleep_writer(uint64_t taken, int room) {
	static char plugs[65536];
	for (int i = 0; i < 64 && send(SOCK, plugs, sizeof plugs, MSG_DONTWAIT | MSG_NOSIGNAL) > 0; i++) {}
	atomic_store(WRITER_SLEEPS(&out), 1);
	if (atomic_load(TAKEN(&out)) != taken || (room && out.size - (out.head - atomic_load(TAIL(&out))) >= out.size / 4)) {
		atomic_store(WRITER_SLEEPS(&out), 0);
		return;
	}
	wait_for(POLLOUT);
}

static void copy_out(const unsigned char *from, size_t n) {
	for (size_t done = 0; done < n;) {
		uint64_t taken = atomic_load(TAKEN(&out));
		uint64_t room = out.size - (out.head - atomic_load_explicit(TAIL(&out), memory_order_acquire));
		if (room == 0) {
			sleep_writer(taken, taken == atomic_load(LENT(&out)));
			continue;
		}
		if (room > n - done)
			room = n - done;
		for (uint64_t i = 0; i < room; i++)
			out.data[(out.head + i) % out.size] = from[done + i];
		out.head += room;
		done += room;
		atomic_store(HEAD(&out), out.head);
		wake_reader();
	}
}

static void lend(const unsigned char *from, size_t n) {
	uint64_t lent = atomic_load(LENT(&out)), taken;
	while (taken = atomic_load(TAKEN(&out)), lent - taken == LOANS)
		sleep_writer(taken, 0);
	out.table[lent % LOANS] = (struct loan){out.head, (uint64_t)(uintptr_t)from, n, 0};
	atomic_store(LENT(&out), lent + 1);
	wake_reader();
}

int main(void) {
	open_region();
	offer();
	size_t most = 64 << 20, n = 0, got;
	unsigned char *all = malloc(most);
	CHECK(all != NULL);
	while ((got = receive(all + n, most - n)) > 0)
		n += got;
	size_t piece = 9000;
	for (size_t at = 0, i = 0; at < n; at += piece, i++) {
		size_t k = n - at < piece ? n - at : piece;
		/* the other side may set TAKES late */
		if (i % 2 && atomic_load_explicit(TAKES(&out), memory_order_acquire))
			lend(all + at, k);
		else
			copy_out(all + at, k);
	}
	atomic_store(ENDED(&out), 1);
	wake_reader();
	uint64_t lent = atomic_load(LENT(&out)), taken;
	while ((taken = atomic_load(TAKEN(&out))) != lent) /* it is our memory */
		sleep_writer(taken, 0);
	printf("%llu %llu\n", (unsigned long long)loans_taken, (unsigned long long)lent);
	return 0;
}
