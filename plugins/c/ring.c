/* The plane ring: two rings in shared memory, byte by byte in docs/plugin-protocol.md. */
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SMALLEST = 4096, LARGEST = 1 << 20, /* of a ring */
	DATA = 4096,                        /* offset of the data */
	CONTROL = 1024,                     /* offset of ring 0's control block, and size of one */
	HEAD = 0, TAIL = 128, READER_SLEEPS = 256, WRITER_SLEEPS = 384, ENDED = 512, GONE = 640,
	BELL_BUFFER = 4096,                 /* so that few bytes fill a doorbell */
};

/* We are side 0: we write ring 0 and read ring 1. */
static _Atomic uint64_t *count_at(struct pump *p, int ring, size_t field)
{
	return (_Atomic uint64_t *)(p->region + CONTROL * (1 + ring) + field);
}

static _Atomic uint32_t *word_at(struct pump *p, int ring, size_t field)
{
	return (_Atomic uint32_t *)(p->region + CONTROL * (1 + ring) + field);
}

static uint8_t *data_at(struct pump *p, int ring, uint64_t at)
{
	return p->region + DATA + (uint64_t)ring * p->ring + (at & (p->ring - 1));
}

int ring_make(uint64_t wanted, struct pump *p, int *region, int *bell)
{
	uint64_t s = SMALLEST;
	int pair[2], small = BELL_BUFFER;
	if (wanted == 0 || wanted > LARGEST)
		wanted = LARGEST;
	while (2 * s <= wanted)
		s *= 2;
	size_t size = DATA + 2 * s;
	int fd;
	if ((p->region = shared_make("impi-ring", size, &fd)) == NULL)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
		munmap(p->region, size);
		p->region = NULL;
		close(fd);
		return -1;
	}
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	memcpy(p->region, "impiring", 8);
	*(uint32_t *)(p->region + 8) = 1;
	*(uint32_t *)(p->region + 12) = 0x01020304;
	*(uint64_t *)(p->region + 24) = s;
	*(uint64_t *)(p->region + 32) = DATA;
	p->size = size;
	p->ring = s;
	p->near = pair[0];
	*region = fd;
	*bell = pair[1];
	return 0;
}

/* quiet empties the doorbell, and notes its end: the proc has closed the link, or died. */
static void quiet(struct pump *p)
{
	char bytes[512];
	ssize_t n;
	if (p->left)
		return;
	while ((n = recv(p->near, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		;
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		p->left = 1;
		atomic_fetch_add(&closing, 1);
	}
}

static void wake_reader(struct pump *p)
{
	if (claimed(word_at(p, 0, READER_SLEEPS)))
		bell_ring(p->near);
}

/* unread is how many bytes of ring 1 were not read; -1: the other side breaks the rules. */
static int64_t unread(struct pump *p)
{
	uint64_t head = atomic_load(count_at(p, 1, HEAD)); /* once: the other side can write it */
	return head - p->tail0 > p->ring ? -1 : (int64_t)(head - p->tail0);
}

/* room is how many bytes of ring 0 are free; -1: the other side breaks the rules. */
static int64_t room(struct pump *p)
{
	uint64_t tail = atomic_load(count_at(p, 0, TAIL));
	return p->head - tail > p->ring ? -1 : (int64_t)(p->ring - (p->head - tail));
}

static size_t piece(struct pump *p, uint64_t at, int64_t n)
{
	uint64_t to_the_end = p->ring - (at & (p->ring - 1));
	return (uint64_t)n < to_the_end ? (size_t)n : (size_t)to_the_end;
}

enum { NOTHING, MOVED, BLOCKED, OVER, BROKEN };

/* outward passes on what the proc has written. */
static int outward(struct pump *p)
{
	/* read before head, which then counts all that came before the end */
	int ended = (int)atomic_load(word_at(p, 1, ENDED));
	int64_t n = unread(p);
	if (n < 0)
		return BROKEN;
	if (n == 0 && ended)
		return conn_close_write(&p->conn) == 0 ? OVER : BROKEN;
	if (n == 0)
		return p->left ? BROKEN : NOTHING; /* the proc has died */
	ssize_t k = conn_write(&p->conn, data_at(p, 1, p->tail0), piece(p, p->tail0, n));
	if (k < 0)
		return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
	p->tail0 += (uint64_t)k;
	atomic_store(count_at(p, 1, TAIL), p->tail0);
	if ((uint64_t)(n - k) <= p->ring - p->ring / 4 && claimed(word_at(p, 1, WRITER_SLEEPS)))
		quiet(p); /* which makes it writable at the other end */
	return MOVED;
}

/* inward gives the proc what the peer has sent. */
static int inward(struct pump *p)
{
	if (p->left || atomic_load(word_at(p, 0, GONE)))
		return OVER; /* nobody reads it */
	int64_t n = room(p);
	if (n <= 0)
		return n < 0 ? BROKEN : BLOCKED;
	ssize_t k = conn_read(&p->conn, data_at(p, 0, p->head), piece(p, p->head, n));
	if (k < 0)
		return errno == EAGAIN || errno == EINTR ? NOTHING : BROKEN;
	if (k == 0) {
		atomic_store(word_at(p, 0, ENDED), 1);
	} else {
		p->head += (uint64_t)k;
		atomic_store(count_at(p, 0, HEAD), p->head);
	}
	wake_reader(p);
	return k == 0 ? OVER : MOVED;
}

/* sleep_reader prepares to wait for the proc's bytes; 0: there are some. */
static int sleep_reader(struct pump *p)
{
	atomic_store(word_at(p, 1, READER_SLEEPS), 1);
	if (unread(p) == 0 && !atomic_load(word_at(p, 1, ENDED)))
		return 1;
	atomic_store(word_at(p, 1, READER_SLEEPS), 0);
	return 0;
}

/* sleep_writer prepares to wait for room; 0: there is some. */
static int sleep_writer(struct pump *p)
{
	static const char bytes[512];
	while (send(p->near, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	atomic_store(word_at(p, 0, WRITER_SLEEPS), 1);
	int64_t n = room(p);
	if (n >= 0 && (uint64_t)n < p->ring / 4 && !atomic_load(word_at(p, 0, GONE)))
		return 1;
	atomic_store(word_at(p, 0, WRITER_SLEEPS), 0);
	return 0;
}

/* pass runs the link until its end; it gives 0 if that was one in order. */
static int pass(struct pump *p)
{
	int out = NOTHING, in = NOTHING;
	int64_t until = 0;
	for (;;) {
		if (out != OVER)
			out = outward(p);
		if (in != OVER && out != BROKEN)
			in = inward(p);
		if (out == BROKEN || in == BROKEN)
			return -1;
		if (out == MOVED || in == MOVED)
			continue;
		int was_left = p->left;
		quiet(p);
		if (p->left) {
			if (out == OVER)
				return 0;
			if (!was_left) {
				until = linger_end(impi_now());
				continue;
			}
			if (out != BLOCKED || !conn_wait(&p->conn, POLLOUT, until))
				return -1;
			continue;
		}
		struct pollfd at[2] = { { .fd = p->near, .events = POLLIN }, { .fd = p->conn.fd } };
		if (out == NOTHING && !sleep_reader(p))
			continue;
		if (in == BLOCKED) {
			if (!sleep_writer(p))
				continue;
			at[0].events |= POLLOUT;
		}
		if (out == BLOCKED)
			at[1].events |= POLLOUT;
		if (in == NOTHING)
			at[1].events |= POLLIN;
		if (at[1].events == 0)
			at[1].fd = -1; /* it would report its end again and again */
		if (poll(at, 2, -1) < 0 && errno != EINTR)
			return -1;
		atomic_store(word_at(p, 1, READER_SLEEPS), 0);
		atomic_store(word_at(p, 0, WRITER_SLEEPS), 0);
	}
}

void ring_run(struct pump *p)
{
	int broken = pass(p) != 0;
	if (broken)
		atomic_store(word_at(p, 1, GONE), 1); /* and not ended */
	close(p->near);
	if (broken)
		conn_reset(&p->conn);
	else
		conn_settle(&p->conn);
	munmap(p->region, p->size);
}
