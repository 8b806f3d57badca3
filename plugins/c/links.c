/* Links that nobody has opened yet, listeners, dials, and the events that announce links. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct listener {
	uint64_t id;
	int fd;
	char address[256];
	struct listener *next;
};

/*
 * Peers whose connection was greeted and for which there is no room yet. Without them a dial would
 * wait for its greeting until there is.
 */
struct parked {
	uint64_t listener;
	struct impi_conn conn;
	struct parked *next;
};

static struct link *links;
static size_t waiting, greeting, parked_count;
static struct parked *parked;
static struct listener *listeners;

size_t links_count(void) { return waiting; }

size_t listeners_count(void)
{
	size_t n = 0;
	for (struct listener *l = listeners; l != NULL; l = l->next)
		n++;
	return n;
}

struct link *link_take(uint64_t id)
{
	for (struct link **at = &links; *at != NULL; at = &(*at)->next)
		if ((*at)->id == id) {
			struct link *l = *at;
			*at = l->next;
			waiting--;
			return l;
		}
	return NULL;
}

uint64_t link_hold(struct impi_conn c, uint64_t listener)
{
	if (waiting >= MAX_WAITING)
		return 0;
	struct link *l = need(calloc(1, sizeof *l));
	*l = (struct link){ .id = ++last_id, .listener = listener, .conn = c };
	if (listener != 0)
		l->event = ++last_event;
	struct link **end = &links;
	while (*end != NULL)
		end = &(*end)->next;
	*end = l; /* in the order of their events */
	waiting++;
	if (listener != 0)
		rpc_news();
	return l->id;
}

void link_drop(uint64_t id)
{
	struct link *l = id ? link_take(id) : NULL;
	if (l == NULL)
		return;
	conn_close(&l->conn);
	free(l);
}

int next_event(uint64_t after, uint64_t *sequence, struct buf *out)
{
	for (struct link *l = links; l != NULL; l = l->next) {
		if (l->event <= after)
			continue;
		struct buf accepted = { 0 };
		put_uint(&accepted, 1, l->listener);
		put_uint(&accepted, 2, l->id);
		put_uint(out, 1, l->event);
		put_message(out, 2, &accepted);
		*sequence = l->event;
		return 1;
	}
	return 0;
}

static void refuse_while_draining(struct impi_error *e)
{
	impi_fail(e, "resource", 1, "the plugin is being stopped");
}

void listen_for(struct call *c, const struct impi_listen *at)
{
	struct impi_error e = { 0 };
	struct listener *l = need(calloc(1, sizeof *l));
	if (draining)
		refuse_while_draining(&e);
	else if (listeners_count() >= MAX_LISTENERS)
		impi_fail(&e, "resource", 1, "there are %d listeners already", MAX_LISTENERS);
	else if (transport->listen(at, &l->fd, l->address, sizeof l->address, &e) == 0) {
		fcntl(l->fd, F_SETFL, fcntl(l->fd, F_GETFL) | O_NONBLOCK);
		l->id = c->listener = ++last_id;
		l->next = listeners;
		listeners = l;
		put_uint(&c->answer, 2, l->id);
		put_text(&c->answer, 3, l->address);
		call_done(c);
		return;
	}
	free(l);
	put_error(&c->answer, 1, &e);
	call_done(c);
}

static void close_listener(struct listener *l)
{
	if (transport->unlisten != NULL)
		transport->unlisten(l->fd, l->address);
	else
		close(l->fd);
	free(l);
}

void listener_stop(uint64_t id)
{
	for (struct listener **at = &listeners; id != 0 && *at != NULL; at = &(*at)->next)
		if ((*at)->id == id) {
			struct listener *l = *at;
			*at = l->next;
			close_listener(l);
			break;
		}
	for (struct parked **at = &parked; id != 0 && *at != NULL;) {
		struct parked *p = *at;
		if (p->listener != id) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		parked_count--;
		conn_close(&p->conn);
		free(p);
	}
	for (struct link *l = links, *next; id != 0 && l != NULL; l = next) {
		next = l->next;
		if (l->listener == id)
			link_drop(l->id);
	}
}

void listeners_stop(void)
{
	while (listeners != NULL)
		listener_stop(listeners->id);
}

/* unpark announces those for which there is room now. */
static void unpark(void)
{
	while (parked != NULL && waiting < MAX_ACCEPTED) {
		struct parked *p = parked;
		parked = p->next;
		parked_count--;
		link_hold(p->conn, p->listener);
		counts.accepts++;
		free(p);
	}
}

/* has_room reports whether one more may be accepted. */
static int has_room(void)
{
	if (transport->greet != NULL)
		return greeting + parked_count < MAX_WAITING - MAX_ACCEPTED;
	return waiting < MAX_ACCEPTED;
}

size_t listeners_poll(struct pollfd *at)
{
	size_t n = 0;
	unpark();
	if (has_room())
		for (struct listener *l = listeners; l != NULL && n < MAX_LISTENERS; l = l->next)
			at[n++] = (struct pollfd){ .fd = l->fd, .events = POLLIN };
	return n;
}

/* What a thread of its own greets. */
struct greeting {
	int fd;
	uint64_t listener;
	struct impi_conn conn;
	int failed;
};

static void greeting_ended(void *arg)
{
	struct greeting *g = arg;
	greeting--;
	greeted(g->listener, g->failed ? NULL : &g->conn);
	free(g);
}

static void *greet(void *arg)
{
	struct greeting *g = arg;
	struct impi_error e = { 0 };
	g->failed = transport->greet(g->fd, &g->conn, &e) != 0;
	if (g->failed)
		impi_log("debug", "a peer was not greeted: %s", e.reason);
	post(greeting_ended, g);
	return NULL;
}

void greeted(uint64_t id, struct impi_conn *c)
{
	struct listener *l = listeners;
	while (l != NULL && l->id != id)
		l = l->next;
	if (c == NULL)
		return;
	if (l == NULL) {
		conn_close(c);
		return;
	}
	struct parked *p = need(calloc(1, sizeof *p)), **end = &parked;
	*p = (struct parked){ .listener = id, .conn = *c };
	while (*end != NULL)
		end = &(*end)->next;
	*end = p;
	parked_count++;
	unpark();
}

void listeners_ready(const struct pollfd *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct listener *l = listeners;
		while (l != NULL && l->fd != at[i].fd)
			l = l->next;
		if (l == NULL || !(at[i].revents & POLLIN) || !has_room())
			continue;
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
				impi_log("warn", "no link can be accepted at %s: %s", l->address, strerror(errno));
				poll(NULL, 0, 50); /* it would be readable again at once */
			}
			continue;
		}
		if (transport->greet == NULL) {
			greeted(l->id, &(struct impi_conn){ .fd = fd });
			continue;
		}
		struct greeting *g = need(calloc(1, sizeof *g));
		*g = (struct greeting){ .fd = fd, .listener = l->id };
		greeting++;
		in_thread(greet, g);
	}
}

/* A dial, in a thread of its own. */
struct dial {
	struct call *call;
	struct impi_dial to;
	char *address, *from;
	struct impi_conn conn;
	struct impi_error error;
	int failed;
};

static void dial_posted(void *arg)
{
	struct dial *d = arg;
	dial_ended(d->call, d->failed ? NULL : &d->conn, &d->error);
	free(d->address), free(d->from), free(d);
}

static void *dial(void *arg)
{
	struct dial *d = arg;
	d->failed = transport->dial(&d->to, &d->conn, &d->error) != 0;
	post(dial_posted, d);
	return NULL;
}

void dial_for(struct call *c, const struct impi_dial *to)
{
	struct impi_error e = { 0 };
	counts.dials++;
	dialling++;
	if (draining || waiting >= MAX_WAITING) {
		if (draining)
			refuse_while_draining(&e);
		else
			impi_fail(&e, "resource", 1, "%d links wait in the plugin for their node to open them", MAX_WAITING);
		dial_ended(c, NULL, &e);
		return;
	}
	struct dial *d = need(calloc(1, sizeof *d));
	d->call = c;
	d->to = *to;
	d->to.address = d->address = need(strdup(to->address));
	d->to.from = d->from = need(strdup(to->from));
	in_thread(dial, d);
}

void dial_ended(struct call *c, struct impi_conn *conn, struct impi_error *e)
{
	dialling--;
	if (conn != NULL && (c->link = link_hold(*conn, 0)) == 0) {
		conn_close(conn);
		impi_fail(e, "resource", 1, "%d links wait in the plugin for their node to open them", MAX_WAITING);
	}
	if (c->link != 0) {
		put_uint(&c->answer, 2, c->link);
	} else {
		counts.dial_errors++;
		put_error(&c->answer, 1, e);
	}
	call_done(c);
}
