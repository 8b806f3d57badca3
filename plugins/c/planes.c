/* How a link's bytes get to its proc: handed over, by a socket (stream), by a ring (ring.c), or in
 * messages (rdma_*.c). */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

atomic_int pumps, closing;

/* The modes of records, and their names. */
enum { MODE_FD = 1, MODE_RING = 3, MODE_STREAM = 4, MODE_RDMA = 5 };
const char *const mode_names[6] = { "", "fd", "peer-shm", "ring", "stream", "rdma" };

ssize_t conn_read(struct impi_conn *c, void *to, size_t n)
{
	return c->ops ? c->ops->read(c->state, to, n) : recv(c->fd, to, n, MSG_DONTWAIT);
}

ssize_t conn_write(struct impi_conn *c, const void *from, size_t n)
{
	return c->ops ? c->ops->write(c->state, from, n) : send(c->fd, from, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int conn_close_write(struct impi_conn *c)
{
	return c->ops ? c->ops->close_write(c->state) : shutdown(c->fd, SHUT_WR);
}

void conn_close(struct impi_conn *c)
{
	if (c->fabric)
		c->fabric->close(c->state);
	else if (c->ops)
		c->ops->close(c->state);
	else
		close(c->fd);
}

void conn_reset(struct impi_conn *c)
{
	struct linger hard = { 1, 0 };
	if (c->fabric) {
		c->fabric->reset(c->state);
		return;
	}
	if (c->ops) {
		c->ops->reset(c->state);
		return;
	}
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard); /* TCP sends a reset and no end */
	close(c->fd);
}

int64_t linger_end(int64_t now) { return now + LINGER_MS; }

int conn_wait(struct impi_conn *c, short events, int64_t until)
{
	struct pollfd at = { .fd = c->fd, .events = events };
	int64_t left = until - impi_now();
	return left > 0 && poll(&at, 1, (int)left) > 0;
}

/*
 * A socket that is closed with bytes unread sends a reset, by which bytes that the peer's kernel
 * has not got yet are lost: what was written has to be acknowledged first.
 */
void conn_settle(struct impi_conn *c)
{
	char rest[4096];
	int unsent = 0;
	int64_t until = linger_end(impi_now());
	while (c->ops == NULL && ioctl(c->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0 && impi_now() < until) {
		while (recv(c->fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
			;
		poll(NULL, 0, 5); /* acknowledgements are no event */
	}
	conn_close(c);
}

/* A record of the descriptor channel: docs/plugin-protocol.md. */
int record_send(uint64_t link, int mode, uint32_t side, const int *fds, int n)
{
	uint8_t head[32] = { 'I', 'M', 'P', 'F', 0, 1, 0, 1 };
	for (int i = 0; i < 8; i++)
		head[8 + i] = (uint8_t)(link >> 8 * (7 - i));
	head[17] = (uint8_t)mode;
	head[19] = (uint8_t)n;
	head[27] = (uint8_t)side;
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	struct iovec bytes = { head, sizeof head };
	struct msghdr m = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	ssize_t k;
	do
		k = sendmsg(3, &m, MSG_NOSIGNAL);
	while (k < 0 && errno == EINTR);
	return k < 0 ? -1 : 0;
}

/* The plane stream: bytes pass through two buffers. */
struct half {
	char bytes[64 << 10];
	size_t from, to;
};

enum { MORE, ENDED, STUCK, BROKEN };

/* fill reads into an empty half. */
static int fill(struct half *h, struct impi_conn *c)
{
	ssize_t n = conn_read(c, h->bytes, sizeof h->bytes);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? STUCK : BROKEN;
	h->from = 0;
	h->to = (size_t)n;
	return n == 0 ? ENDED : MORE;
}

/* drain writes what a half has. */
static int drain(struct half *h, struct impi_conn *c)
{
	while (h->from < h->to) {
		ssize_t n = conn_write(c, h->bytes + h->from, h->to - h->from);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? STUCK : BROKEN;
		h->from += (size_t)n;
	}
	return MORE;
}

/* One direction of a stream. */
struct way {
	struct half half;
	struct impi_conn *from, *to;
	int ended;    /* nothing comes any more */
	int done;     /* and all of it was passed on, with the end */
	int inward;
};

/* move passes on what it can. It gives BROKEN, or STUCK when there is nothing to do now. */
static int move(struct way *w, struct pump *p)
{
	for (;;) {
		int r = drain(&w->half, w->to);
		if (r != MORE)
			return r;
		if (w->ended) {
			if (!w->done && w->inward && write(p->tail, "e", 1) != 1) /* before the end, which it explains */
				return BROKEN;
			if (!w->done && conn_close_write(w->to) != 0)
				return BROKEN;
			w->done = 1;
			return STUCK;
		}
		if ((r = fill(&w->half, w->from)) == ENDED)
			w->ended = 1;
		else if (r != MORE)
			return r;
	}
}

static short wanted(const struct way *from_here, const struct way *to_here)
{
	short events = 0;
	if (!from_here->ended && from_here->half.from == from_here->half.to)
		events |= POLLIN;
	if (to_here->half.from < to_here->half.to)
		events |= POLLOUT;
	return events;
}

/* flush passes on what a proc has sent that has closed its link. */
static int flush(struct way *out, struct pump *p)
{
	int64_t until = linger_end(impi_now());
	int r;
	while ((r = move(out, p)) == STUCK && !out->done)
		if (!conn_wait(out->to, POLLOUT, until))
			return BROKEN;
	return r;
}

void stream_run(struct pump *p)
{
	struct impi_conn near = { .fd = p->near };
	struct way *out = need(calloc(1, sizeof *out)), *in = need(calloc(1, sizeof *in));
	out->from = in->to = &near;
	out->to = in->from = &p->conn;
	in->inward = 1;
	int broken = 0;
	while (!broken) {
		if (move(out, p) == BROKEN || move(in, p) == BROKEN) {
			broken = 1;
			break;
		}
		if (out->done && in->done)
			break;
		struct pollfd at[2] = { { .fd = near.fd, .events = wanted(out, in) }, { .fd = p->conn.fd, .events = wanted(in, out) } };
		if (at[1].events == 0)
			at[1].fd = -1; /* it would report its end again and again */
		if (poll(at, 2, -1) < 0 && errno != EINTR)
			broken = 1;
		if (at[0].revents & (POLLHUP | POLLERR)) {
			p->left = 1;
			atomic_fetch_add(&closing, 1);
			broken = flush(out, p) == BROKEN;
			break;
		}
	}
	close(near.fd);
	close(p->tail);
	if (broken)
		conn_reset(&p->conn);
	else
		conn_settle(&p->conn);
	free(out), free(in);
}

/* wakes the library's thread, which may be draining */
static void nothing(void *arg) { (void)arg; }

static void *run(void *arg)
{
	struct pump *p = arg;
	if (p->rdma != NULL)
		rdma_run(p);
	else if (p->region != NULL)
		ring_run(p);
	else
		stream_run(p);
	if (p->left)
		atomic_fetch_sub(&closing, 1);
	atomic_fetch_sub(&pumps, 1);
	free(p);
	post(nothing, NULL);
	return NULL;
}

static int stream_make(struct pump *p, int fds[2])
{
	int pair[2], pipes[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	if (pipe2(pipes, O_CLOEXEC) != 0) {
		close(pair[0]), close(pair[1]);
		return -1;
	}
	p->near = pair[0], p->tail = pipes[1];
	fds[0] = pair[1], fds[1] = pipes[0];
	return 0;
}

/* near_side makes this side of a link, and the descriptors of the proc's. */
static int near_side(struct pump *p, int mode, uint64_t ring_bytes, int fds[3])
{
	if (mode == MODE_RDMA)
		return rdma_make(p, fds);
	return mode == MODE_RING ? ring_make(ring_bytes, p, &fds[0], &fds[1]) : stream_make(p, fds);
}

/* passed makes the near side of a link and gives the other side to the node. */
static int passed(struct link *l, int mode, uint64_t *ring_bytes)
{
	struct pump *p = need(calloc(1, sizeof *p));
	int fds[3], n = mode == MODE_RDMA ? 3 : 2;
	p->conn = l->conn;
	p->near = p->tail = -1;
	if (near_side(p, mode, *ring_bytes, fds) != 0) {
		free(p);
		return -1;
	}
	*ring_bytes = p->ring;
	int sent = record_send(l->id, mode, mode == MODE_RING, fds, n);
	for (int i = 0; i < n; i++)
		close(fds[i]); /* with a copy left the node would not see the end */
	if (sent != 0) {
		if (p->near >= 0)
			close(p->near);
		if (p->tail >= 0)
			close(p->tail);
		if (p->region != NULL)
			munmap(p->region, p->size);
		if (p->rdma != NULL)
			rdma_drop(p->rdma);
		free(p);
		return -1;
	}
	atomic_fetch_add(&pumps, 1);
	in_thread(run, p);
	return 0;
}

static int choose(const struct link *l, const struct modes *m)
{
	int best = 0, rank = 0;
	const int ranks[6] = { 0, l->conn.ops == NULL ? m->fd : 0, 0, m->ring, m->stream, 0 };
	if (l->conn.fabric != NULL)
		return m->rdma ? MODE_RDMA : 0;
	for (int mode = MODE_FD; mode <= MODE_STREAM; mode++)
		if (ranks[mode] != 0 && (best == 0 || ranks[mode] < rank))
			best = mode, rank = ranks[mode];
	return best;
}

void open_plane(struct call *c, uint64_t id, const struct modes *m)
{
	struct impi_error e = { 0 };
	struct link *l = link_take(id);
	int mode = l ? choose(l, m) : 0, failed;
	uint64_t ring_bytes = m->ring_bytes;
	if (l == NULL) {
		impi_fail(&e, "internal", 0, "link %llu does not wait here", (unsigned long long)id);
	} else if (mode == 0) {
		conn_close(&l->conn);
		impi_fail(&e, "unsupported", 0, "the link can do %s; the node wants %s",
			l->conn.fabric ? "rdma" : l->conn.ops ? "ring, stream" : "fd, ring, stream", m->names);
	} else {
		if (mode == MODE_FD) {
			failed = record_send(id, mode, 0, &l->conn.fd, 1);
			close(l->conn.fd); /* a copy would hide the end of the link from its peer */
		} else if ((failed = passed(l, mode, &ring_bytes)) != 0) {
			conn_close(&l->conn);
		}
		if (failed)
			impi_fail(&e, "resource", 1, "the plane %s cannot be made: %s", mode_names[mode], strerror(errno));
	}
	free(l);
	if (e.code != NULL) {
		put_error(&c->answer, 1, &e);
	} else {
		counts.handed_over++;
		put_text(&c->answer, 2, mode_names[mode]);
		put_text(&c->answer, 3, mode == MODE_FD ? "the link is a socket of the kernel" : "it is the first that the node wants of those that the link can have");
		if (mode == MODE_RING) {
			put_uint(&c->answer, 4, 1);
			put_uint(&c->answer, 6, ring_bytes);
		}
		if (mode == MODE_RING || mode == MODE_RDMA)
			put_text(&c->answer, 5, "socket");
	}
	call_done(c);
}
