/* The thread of a link by the plane rdma: it polls as long as something comes now and then, sleeps
 * otherwise, and ends the link so that nobody touches the proc's memory afterwards. */
#include "rdma.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	LEAST_MESSAGE = 2048,
	LOOK_EVERY = 1 << 10,    /* looks that find nothing, until the proc is looked for */
	YIELD_AFTER = 64,        /* looks until the core is offered to others at each */
	GLANCE = 4,              /* looks before a sleep while others compute on this core */
	SPIN_NS = 200000,        /* that it polls before it sleeps */
	STOLEN_NS = 20000,       /* a yield that takes so long let another thread compute */
	STOLEN = 4, OVERSUBSCRIBED = 8, MOST = 16,
};

/* When to sleep. The score goes up when others compute on this core while it is offered. */
struct spin {
	int64_t begun;
	int score;
};

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int over(struct spin *s, unsigned looks)
{
	if (s->score >= OVERSUBSCRIBED && looks >= GLANCE) {
		s->score--;
		return 1;
	}
	if (looks < YIELD_AFTER)
		return 0;
	int64_t before = now_ns();
	if (looks == YIELD_AFTER)
		s->begun = before;
	sched_yield();
	int64_t after = now_ns();
	if (after - before > STOLEN_NS)
		s->score = s->score + STOLEN < MOST ? s->score + STOLEN : MOST;
	else if (s->score > 0)
		s->score--;
	return after - s->begun > SPIN_NS;
}

static int step(struct rdma *x)
{
	static int (*const all[])(struct rdma *) = { rdma_submissions, rdma_send, rdma_receive, rdma_completions, rdma_issue, rdma_ask };
	int moved = 0;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		int r = all[i](x);
		if (r < 0)
			return -1;
		moved |= r;
	}
	return moved;
}

/* finished gives 1 if the proc has gone and everything that it had sent was passed on. */
static int finished(struct rdma *x)
{
	if (!port_left(&x->port))
		return 0;
	int ending = x->queued > 0 && x->queue[x->queued - 1].e.kind == PROC_ENDED && !x->conn_ended;
	if (x->loans_n > 0 || (!x->over && !ending))
		return rdma_lost("the proc has closed the link, or died, before it has ended its messages");
	return x->over && rdma_reads(x) == 0 && (x->taken_n == 0 || x->conn_ended);
}

/* rest sleeps until something may be there, or the time is over. */
static int rest(struct rdma *x, int64_t until)
{
	struct pollfd at[2] = { { .fd = -1, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	if (until != 0 && impi_now() >= until) /* also if arm never lets it sleep */
		return rdma_lost("the peer does not take what the proc has left");
	int ready = port_arm(&x->port);
	if (ready != 0)
		return ready < 0 ? -1 : 0;
	if (!port_left(&x->port)) /* whose end would end each sleep */
		at[0].fd = x->port.channel;
	if (!x->conn_ended) {
		if (x->ops->arm(x->conn.state))
			return 0;
		at[1].fd = x->conn.fd;
	}
	int64_t left = until - impi_now();
	int n = poll(at, 2, until == 0 ? -1 : left > 0 ? (int)left : 0);
	if (n < 0 && errno != EINTR)
		return rdma_lost("poll: %s", strerror(errno));
	return n == 0 ? rdma_lost("the peer does not take what the proc has left") : 0;
}

/* pass runs the link until its end; it gives 0 if that was one in order. */
static int pass(struct rdma *x)
{
	struct spin spin = { 0 };
	int64_t until = 0;
	for (unsigned looks = 0;; looks++) {
		int r = step(x);
		if (r < 0)
			return -1;
		if (r > 0) {
			looks = (unsigned)-1;
			until = 0;
			continue;
		}
		if (looks % LOOK_EVERY == LOOK_EVERY - 1 && port_look(&x->port) != 0)
			return -1;
		if (!port_left(&x->port) && !over(&spin, looks))
			continue;
		looks = (unsigned)-1;
		if ((r = finished(x)) != 0)
			return r < 0 ? -1 : 0;
		if (port_left(&x->port)) {
			if (!x->announced)
				atomic_fetch_add(&closing, 1);
			x->announced = 1;
			if (until == 0)
				until = linger_end(impi_now());
		}
		if (rest(x, until) != 0)
			return -1;
	}
}

int rdma_make(struct pump *p, int fds[3])
{
	const struct impi_fabric_ops *ops = p->conn.fabric;
	size_t slot_size = 64 << 10;
	if (p->conn.message < LEAST_MESSAGE || p->conn.rails < 1 || p->conn.rails > MAX_RAILS) {
		impi_log("error", "a connection of the transport takes messages of %zu bytes by %d rails: at least %d, and 1 to %d, are possible",
			p->conn.message, p->conn.rails, LEAST_MESSAGE, MAX_RAILS);
		errno = EINVAL;
		return -1;
	}
	while (slot_size > 1 << 10 && slot_size + HEADER > p->conn.message)
		slot_size /= 2;
	struct rdma *x = need(calloc(1, sizeof *x));
	x->conn = p->conn;
	x->ops = ops;
	x->rails = p->conn.rails;
	x->parts_n = (SLOTS + 1) * x->rails;
	if (port_make(&x->port, slot_size, fds) != 0) {
		free(x);
		return -1;
	}
	x->parts = need(calloc((size_t)x->parts_n, sizeof *x->parts));
	x->queue_of_parts = need(calloc((size_t)x->parts_n, sizeof *x->queue_of_parts));
	p->rdma = x;
	return 0;
}

void rdma_drop(struct rdma *x)
{
	rdma_release_sends(x);
	rdma_release_reads(x);
	port_close(&x->port);
	free(x);
}

void rdma_run(struct pump *p)
{
	struct rdma *x = p->rdma;
	int broken = pass(x) != 0;
	if (broken)
		conn_reset(&x->conn); /* when it returns no read is under way, so that memory can be unmapped */
	p->left = x->announced;
	rdma_drop(x);
	if (!broken)
		conn_close(&p->conn);
}
