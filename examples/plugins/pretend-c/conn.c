/* A connection of the pretended fabric: packets of a socket are its messages, and memory of the peer is
 * mapped to be read. The packets are those of package fabrictest of the SDK for Go, so that a plugin in
 * C and one in Go can be peers. */
#include "pretend.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The first byte of each packet. */
enum {
	DATA = 1,    /* a message */
	TABLE = 2,   /* the table of registrations, with a descriptor: the first packet */
	FETCH = 3,   /* a key follows: the memory of that is wanted */
	MEMORY = 4,  /* a key follows, with the descriptor, or without one if the key is not valid */
	CLOSED = 5,  /* close was called */
};

enum {
	MOST_READS = 32,              /* under way at a time */
	MOST_MAPPED = 64,             /* regions of the peer that stay mapped */
	MOST_PIECES = 7,
};

struct mapped {
	uint8_t key[KEY];
	void *mem;                    /* NULL: it is being fetched */
	size_t size;
};

struct waiting {
	struct impi_fabric_read r;
	uint8_t key[KEY];
	int well_formed;              /* the key is as long as ours */
};

struct conn {
	int fd;
	const _Atomic uint64_t *table; /* the peer's; NULL: it has not come */
	struct mapped mapped[MOST_MAPPED + MOST_READS];
	int mapped_n;
	struct waiting reads[MOST_READS];
	int reads_n;
	uint8_t owed[MOST_READS][KEY]; /* keys whose memory the peer wants */
	int owed_n;
	int hello, tail, full;        /* the table was sent; the peer has called close; the last packet had no room */
};

/* packet sends one: 1, 0: there is no room, -1. */
static int packet(struct conn *c, uint8_t tag, const struct iovec *pieces, int n, int fd)
{
	struct iovec all[1 + MOST_PIECES] = { { &tag, 1 } };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof fd)];
	} control = { 0 };
	struct msghdr m = { .msg_iov = all, .msg_iovlen = (size_t)n + 1 };
	if (n > 0)
		memcpy(all + 1, pieces, (size_t)n * sizeof *pieces);
	if (fd >= 0) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof control.room;
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(h), &fd, sizeof fd);
	}
	ssize_t k;
	do
		k = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (k < 0 && errno == EINTR);
	c->full = k < 0 && errno == EAGAIN;
	if (k >= 0)
		return 1;
	return c->full || errno == EPIPE || errno == ECONNRESET ? 0 : -1; /* recv says whether the end was in order */
}

/* serve sends what the peer waits for. */
static int serve(struct conn *c)
{
	if (!c->hello) {
		int r = packet(c, TABLE, NULL, 0, domain_table());
		if (r <= 0)
			return r;
		c->hello = 1;
	}
	while (c->owed_n > 0) {
		struct iovec key = { c->owed[0], KEY };
		int fd = domain_file(c->owed[0]);
		int r = packet(c, MEMORY, &key, 1, fd);
		if (fd >= 0)
			close(fd);
		if (r <= 0)
			return r;
		memmove(c->owed[0], c->owed[1], (size_t)--c->owed_n * KEY);
	}
	return 1;
}

static int send_message(void *state, const struct iovec *pieces, int n)
{
	struct conn *c = state;
	int r = serve(c);
	return r <= 0 ? r : packet(c, DATA, pieces, n, -1);
}

static struct mapped *find(struct conn *c, const uint8_t key[KEY])
{
	for (int i = 0; i < c->mapped_n; i++)
		if (memcmp(c->mapped[i].key, key, KEY) == 0)
			return &c->mapped[i];
	return NULL;
}

static void forget(struct conn *c, struct mapped *m)
{
	if (m->mem != NULL)
		munmap(m->mem, m->size);
	*m = c->mapped[--c->mapped_n];
}

/* take_table maps the table of the peer, which says which of its keys are valid. */
static int take_table(struct conn *c, int fd)
{
	size_t size;
	void *mem = map_file(fd, &size);
	if (mem != NULL && size != TABLE_BYTES) {
		munmap(mem, size);
		mem = NULL;
	}
	c->table = mem;
	return mem != NULL ? 0 : -1;
}

/* internal handles a packet that is no message. fd is -1 if there was none, and stays the caller's. */
static int internal(struct conn *c, uint8_t tag, const uint8_t *key, size_t n, int fd)
{
	struct mapped *m;
	switch (tag) {
	case TABLE:
		return fd >= 0 && c->table == NULL ? take_table(c, fd) : -1;
	case FETCH:
		if (n != KEY || c->owed_n == MOST_READS)
			return -1;
		memcpy(c->owed[c->owed_n++], key, KEY);
		return 0;
	case MEMORY:
		if (n != KEY || (m = find(c, key)) == NULL || m->mem != NULL)
			return -1;
		if (fd < 0)
			forget(c, m); /* the read fails */
		else if ((m->mem = map_file(fd, &m->size)) == NULL)
			return -1;
		return 0;
	case CLOSED:
		c->tail = 1;
		return 0;
	}
	return -1;
}

/* descriptor gives the one of a packet, or -1. Others are closed, and counted in more. */
static int descriptor(struct msghdr *m, int *more)
{
	int fd = -1;
	*more = 0;
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	if (h == NULL || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return -1;
	size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof fd;
	for (size_t i = 0; i < n; i++) {
		int x;
		memcpy(&x, CMSG_DATA(h) + i * sizeof x, sizeof x);
		if (i == 0) {
			fd = x;
			continue;
		}
		close(x);
		++*more;
	}
	return fd;
}

static int broken(int error)
{
	errno = error;
	return -1;
}

static ssize_t recv_message(void *state, const struct iovec *pieces, int n)
{
	struct conn *c = state;
	if (serve(c) < 0)
		return -1;
	for (;;) {
		uint8_t tag = 0;
		struct iovec all[1 + MOST_PIECES] = { { &tag, 1 } };
		union {
			struct cmsghdr align;
			char room[CMSG_SPACE(sizeof(int))];
		} control;
		struct msghdr m = { .msg_iov = all, .msg_iovlen = (size_t)n + 1, .msg_control = control.room, .msg_controllen = sizeof control.room };
		memcpy(all + 1, pieces, (size_t)n * sizeof *pieces);
		ssize_t k = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (k < 0 && errno == EAGAIN)
			return 0;
		if (k < 0 && (errno == EINTR || errno == ECONNRESET)) /* the latter comes once, before what was sent */
			continue;
		if (k == 0)
			return c->tail ? IMPI_ENDED : broken(ECONNRESET);
		if (k < 0)
			return -1;
		int more, fd = descriptor(&m, &more), bad = more > 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
		if (!bad && tag == DATA && fd < 0)
			return k - 1;
		/* The library's first piece is as long as a key, and nobody else sees it. */
		bad = bad || pieces[0].iov_len < KEY || internal(c, tag, pieces[0].iov_base, (size_t)k - 1, fd) != 0;
		if (fd >= 0)
			close(fd);
		if (bad || serve(c) < 0)
			return broken(EPROTO);
	}
}

/* valid reports whether the peer has the key registered. */
static int valid(const struct conn *c, const uint8_t key[KEY])
{
	uint32_t place;
	uint64_t generation;
	return c->table != NULL && parse_key(key, &place, &generation) && atomic_load(&c->table[place]) == generation;
}

static int is_used(const struct conn *c, const uint8_t key[KEY])
{
	for (int i = 0; i < c->reads_n; i++)
		if (memcmp(c->reads[i].key, key, KEY) == 0)
			return 1;
	return 0;
}

/* unmap_stale makes room for a further region of the peer. */
static void unmap_stale(struct conn *c)
{
	int many = c->mapped_n >= MOST_MAPPED;
	for (int i = c->mapped_n - 1; i >= 0; i--) {
		struct mapped *m = &c->mapped[i];
		if (m->mem != NULL && !is_used(c, m->key) && (many || !valid(c, m->key)))
			forget(c, m);
	}
}

static int begin_read(void *state, const struct impi_fabric_read *r)
{
	struct conn *c = state;
	struct waiting *w = &c->reads[c->reads_n];
	if (c->reads_n == MOST_READS)
		return 0;
	*w = (struct waiting){ .r = *r, .well_formed = r->key_size == KEY };
	if (w->well_formed) {
		memcpy(w->key, r->key, KEY);
		if (find(c, w->key) == NULL) {
			struct iovec key = { w->key, KEY };
			unmap_stale(c);
			int sent = packet(c, FETCH, &key, 1, -1);
			if (sent <= 0)
				return sent;
			struct mapped *m = &c->mapped[c->mapped_n++];
			*m = (struct mapped){ .mem = NULL };
			memcpy(m->key, w->key, KEY);
		}
	}
	c->reads_n++;
	return 1;
}

/* copy is where bytes move: what hardware checks is checked here. 0, or -1: the read fails. */
static int copy(struct conn *c, const struct waiting *w, const struct mapped *m)
{
	if (m == NULL || !valid(c, w->key) || w->r.from > m->size || w->r.size > m->size - w->r.from)
		return -1;
	memcpy(w->r.into, (const uint8_t *)m->mem + w->r.from, w->r.size);
	return valid(c, w->key) ? 0 : -1;
}

static int completed(void *state, struct impi_fabric_done *done, int most)
{
	struct conn *c = state;
	int n = 0, left = 0;
	for (int i = 0; i < c->reads_n; i++) {
		struct waiting w = c->reads[i];
		struct mapped *m = w.well_formed ? find(c, w.key) : NULL;
		if (n == most || (m != NULL && m->mem == NULL))
			c->reads[left++] = w;
		else
			done[n++] = (struct impi_fabric_done){ w.r.op, copy(c, &w, m) != 0 };
	}
	c->reads_n = left;
	return n;
}

/* The socket does not become readable when it has room again, so a connection without room does not
 * sleep. That is for moments: the peer takes all that it has allowed. */
static int arm(void *state)
{
	struct conn *c = state;
	struct pollfd at = { .fd = c->fd, .events = POLLIN };
	for (int i = 0; i < c->reads_n; i++) {
		struct mapped *m = find(c, c->reads[i].key);
		if (m == NULL || m->mem != NULL)
			return 1;
	}
	return c->full || poll(&at, 1, 0) != 0;
}

static void reset(void *state)
{
	struct conn *c = state;
	close(c->fd);
	while (c->mapped_n > 0)
		forget(c, &c->mapped[0]);
	if (c->table != NULL)
		munmap((void *)c->table, TABLE_BYTES);
	free(c);
}

static void close_conn(void *state)
{
	struct conn *c = state;
	struct pollfd at = { .fd = c->fd, .events = POLLOUT };
	while (serve(c) > 0 ? packet(c, CLOSED, NULL, 0, -1) == 0 && c->full : c->full)
		if (poll(&at, 1, 1000) <= 0)
			break; /* the peer reads nothing: it sees a connection that broke */
	reset(c);
}

void conn_make(struct impi_conn *c, int fd, int rails)
{
	static const struct impi_fabric_ops ops = {
		.send = send_message, .recv = recv_message, .read = begin_read, .completed = completed, .arm = arm, .close = close_conn, .reset = reset,
	};
	struct conn *x = calloc(1, sizeof *x);
	if (x == NULL)
		abort(); /* its node starts the plugin again */
	x->fd = fd;
	*c = (struct impi_conn){ .fd = fd, .state = x, .fabric = &ops, .message = MOST_MESSAGE, .rails = rails };
}
