/* The service impi.transport.v1.Transport: requests, answers, events. */
#include "internal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum method { INFO, SCHEMA, CONFIGURE, CAPABILITIES, LISTEN, STOP_LISTEN, DIAL, ABANDON, OPEN_DATA_PLANE,
	CLOSE_LINK, DRAIN, STATS, HEALTH, METHODS, NONE = -1 };

static const char *const names[METHODS] = { "Info", "Schema", "Configure", "Capabilities", "Listen", "StopListen",
	"Dial", "Abandon", "OpenDataPlane", "CloseLink", "Drain", "Stats", "Health" };

static const char prefix[] = "/impi.transport.v1.Transport/";

/* All calls: those that run, and the last MAX_KEPT that have ended, the oldest of them first. */
static struct call *calls, **calls_end = &calls;
static size_t ended;

static struct call *find(const char *key)
{
	for (struct call *c = calls; c != NULL; c = c->next)
		if (strcmp(c->key, key) == 0)
			return c;
	return NULL;
}

static struct call *new_call(const char *key, int method)
{
	struct call *c = need(calloc(1, sizeof *c));
	snprintf(c->key, sizeof c->key, "%s", key);
	c->method = method;
	c->cancel = -1;
	*calls_end = c;
	calls_end = &c->next;
	return c;
}

/* forget drops the oldest answers. */
static void forget(void)
{
	for (struct call **at = &calls; ended > MAX_KEPT && *at != NULL;) {
		struct call *c = *at;
		if (!c->done) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		if (calls_end == &c->next)
			calls_end = at;
		buf_free(&c->answer);
		free(c);
		ended--;
	}
}

static void reply(const struct call *c, int32_t stream)
{
	if (c->abandoned)
		rpc_refuse(stream, GRPC_CANCELLED, "the request was abandoned");
	else if (c->status != GRPC_OK)
		rpc_refuse(stream, c->status, c->why);
	else
		rpc_answer(stream, &c->answer);
}

static void undo(struct call *c)
{
	link_drop(c->link);
	listener_stop(c->listener);
}

void call_done(struct call *c)
{
	c->done = 1;
	if (c->cancel >= 0)
		close(c->cancel);
	c->cancel = -1;
	if (c->abandoned)
		undo(c);
	for (int i = 0; i < c->waiters; i++)
		reply(c, c->waiting[i]);
	c->waiters = 0;
	ended++;
	forget();
}

/* The fields of requests that the methods want. Texts are owned. */
struct request {
	char *key, *host, *dir, *name, *reopen, *address, *from, *other;
	uint64_t timeout, port, id;
	struct modes modes;
	int rank;
	int layout, wake; /* a ring that we know */
	const uint8_t *settings; /* the whole message, for configure */
	size_t settings_n;
	char *level;
};

static void set(char **to, const struct field *f)
{
	free(*to);
	*to = field_text(f);
}

static void read_call(struct request *r, const struct field *f)
{
	struct field g;
	for (const uint8_t *p = f->p, *end = f->p + f->n; next_field(&p, end, &g) == 1;) {
		if (g.number == 1 && g.wire == 2)
			set(&r->key, &g);
		if (g.number == 2 && g.wire == 0)
			r->timeout = g.value;
	}
}

static void read_mode(struct request *r, const struct field *f)
{
	struct modes *m = &r->modes;
	size_t at = strlen(m->names);
	char *s = field_text(f);
	r->rank++;
	if (strcmp(s, "fd") == 0)
		m->fd = r->rank;
	if (strcmp(s, "rdma") == 0)
		m->rdma = r->rank;
	if (strcmp(s, "ring") == 0)
		m->ring = r->rank;
	if (strcmp(s, "stream") == 0)
		m->stream = r->rank;
	snprintf(m->names + at, sizeof m->names - at, "%s%.20s", at ? ", " : "", s);
	free(s);
}

/* Numbers that are repeated come one by one or packed. */
static int has_number(const struct field *f, uint64_t wanted)
{
	if (f->wire == 0)
		return f->value == wanted;
	return f->n > 0 && memchr(f->p, (int)wanted, f->n) != NULL; /* small ones have a byte each */
}

static int read_request(struct request *r, int method, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	struct field f;
	int more;
	r->settings = p;
	r->settings_n = n;
	while ((more = next_field(&p, end, &f)) == 1) {
		int text = f.wire == 2, number = f.wire == 0;
		switch (f.number) {
		case 1:
			if (text)
				read_call(r, &f);
			break;
		case 2:
			if (method == LISTEN && text)
				set(&r->host, &f);
			else if (method == DIAL && text)
				set(&r->address, &f);
			else if ((method == ABANDON || method == HEALTH) && text)
				set(&r->other, &f);
			else if (number)
				r->id = f.value;
			break;
		case 3:
			if (method == LISTEN && number)
				r->port = f.value;
			else if (method == DIAL && text)
				set(&r->from, &f);
			else if (method == OPEN_DATA_PLANE && text)
				read_mode(r, &f);
			break;
		case 4:
			if (method == LISTEN && text)
				set(&r->dir, &f);
			break;
		case 5:
			if (method == LISTEN && text)
				set(&r->name, &f);
			if (method == OPEN_DATA_PLANE)
				r->layout |= has_number(&f, 1);
			break;
		case 6:
			if (method == LISTEN && text)
				set(&r->reopen, &f);
			if (method == OPEN_DATA_PLANE && text)
				r->wake |= f.n == 6 && memcmp(f.p, "socket", 6) == 0;
			break;
		case 7:
			if (number)
				r->modes.ring_bytes = f.value;
			break;
		}
	}
	return more;
}

static void free_request(struct request *r)
{
	free(r->key), free(r->host), free(r->dir), free(r->name), free(r->reopen), free(r->address), free(r->from), free(r->other);
}

void put_error(struct buf *b, unsigned field, const struct impi_error *e)
{
	struct buf m = { 0 }, s = { 0 };
	put_text(&m, 1, e->code ? e->code : "internal");
	put_uint(&m, 2, e->retryable != 0);
	put_text(&m, 3, e->reason[0] ? e->reason : "the transport does not say why");
	if (e->name != NULL) {
		put_text(&s, 1, e->name);
		put_text(&s, 2, e->reason);
		put_text(&s, 3, e->remedy);
		put_message(&m, 4, &s);
	}
	put_message(b, field, &m);
}

static void put_value(struct buf *b, unsigned field, const struct impi_setting *s)
{
	struct buf v = { 0 };
	if (strcmp(s->type, "number") == 0) {
		put_double(&v, 2, s->number);
	} else if (strcmp(s->type, "bool") == 0) {
		uint8_t truth[2] = { 3 << 3, s->truth != 0 };
		buf_put(&v, truth, 2); /* also false: it says which kind it is */
	} else {
		const char *text = s->text ? s->text : "";
		uint8_t tag = 1 << 3 | 2;
		struct buf t = { 0 };
		if (*text == 0) {
			uint8_t empty[2] = { tag, 0 };
			buf_put(&v, empty, 2);
		} else {
			put_text(&t, 1, text);
			buf_put(&v, t.p, t.n);
			buf_free(&t);
		}
	}
	put_message(b, field, &v);
}

static size_t settings_count(void)
{
	size_t n = 0;
	if (transport->settings != NULL)
		while (transport->settings[n].name != NULL)
			n++;
	return n;
}

static void schema(struct buf *b)
{
	for (size_t i = 0; i < settings_count(); i++) {
		const struct impi_setting *s = &transport->settings[i];
		struct buf m = { 0 };
		put_text(&m, 1, s->name);
		put_text(&m, 2, s->type);
		put_uint(&m, 3, s->required != 0);
		if (!s->required)
			put_value(&m, 4, s);
		put_text(&m, 5, s->doc);
		put_message(b, 1, &m);
	}
}

/* read_value takes an entry of the map of settings over. */
static void read_value(struct impi_value *values, const struct field *entry)
{
	char *name = NULL;
	struct field f, v = { 0 };
	for (const uint8_t *p = entry->p, *end = entry->p + entry->n; next_field(&p, end, &f) == 1;) {
		if (f.number == 1 && f.wire == 2)
			set(&name, &f);
		if (f.number == 2 && f.wire == 2)
			v = f;
	}
	for (size_t i = 0; name != NULL && v.p != NULL && i < settings_count(); i++) {
		if (strcmp(transport->settings[i].name, name) != 0)
			continue;
		for (const uint8_t *p = v.p, *end = v.p + v.n; next_field(&p, end, &f) == 1;) {
			if (f.number == 1 && f.wire == 2)
				values[i].text = field_text(&f); /* for as long as the process lives: they come once or twice */
			if (f.number == 2 && f.wire == 1)
				memcpy(&values[i].number, &f.value, 8);
			if (f.number == 3 && f.wire == 0)
				values[i].truth = f.value != 0;
		}
	}
	free(name);
}

static void configure(struct call *c, const struct request *r)
{
	size_t n = settings_count();
	struct impi_value *values = need(calloc(n + 1, sizeof *values));
	struct field f;
	struct impi_error e = { 0 };
	for (size_t i = 0; i < n; i++)
		values[i] = (struct impi_value){ transport->settings[i].text ? transport->settings[i].text : "",
			transport->settings[i].number, transport->settings[i].truth };
	for (const uint8_t *p = r->settings, *end = p + r->settings_n; next_field(&p, end, &f) == 1;)
		if (f.number == 2 && f.wire == 2)
			read_value(values, &f);
	if (transport->configure != NULL && transport->configure(values, &e) != 0)
		put_error(&c->answer, 1, &e);
	free(values);
	call_done(c);
}

static void put_packed(struct buf *b, unsigned field, uint64_t from, uint64_t to)
{
	for (uint64_t v = from; v <= to; v++)
		put_uint(b, field, v);
}

/* put_number puts an entry of the map of a transport's own numbers. */
static void put_number(struct buf *b, const char *name, double value)
{
	struct buf m = { 0 };
	put_text(&m, 1, name);
	put_double(&m, 2, value);
	put_message(b, 7, &m);
}

static void stats(struct buf *b)
{
	struct impi_registrations r;
	put_uint(b, 1, counts.dials);
	put_uint(b, 2, counts.dial_errors);
	put_uint(b, 3, counts.accepts);
	put_uint(b, 4, counts.handed_over);
	put_uint(b, 5, listeners_count());
	put_uint(b, 6, links_count());
	put_uint(b, 8, (uint64_t)atomic_load(&pumps));
	if (transport->register_memory == NULL)
		return;
	impi_count_registrations(&r);
	put_number(b, "registered_bytes", (double)r.bytes);
	put_number(b, "registrations", (double)r.made);
	put_number(b, "registration_hits", (double)r.used_again);
	put_number(b, "registration_evictions", (double)r.evicted);
	put_number(b, "registrations_refused", (double)r.refused);
}

static void about(struct buf *b, int method)
{
	switch (method) {
	case INFO:
		put_text(b, 1, transport->name);
		put_text(b, 2, transport->version);
		put_text(b, 3, transport->vendor);
		put_text(b, 4, "libimpi-plugin/" IMPI_PLUGIN_VERSION);
		put_uint(b, 5, (uint64_t)getpid());
		if (version >= 2)
			put_packed(b, 6, IMPI_OLDEST, IMPI_NEWEST);
		break;
	case SCHEMA:
		schema(b);
		break;
	case CAPABILITIES:
		if (transport->register_memory != NULL) {
			put_text(b, 1, "rdma");
		} else {
			if (!transport->in_process)
				put_text(b, 1, "fd");
			put_text(b, 1, "ring");
			put_text(b, 1, "stream");
		}
		put_text(b, 3, transport->reach ? transport->reach : "network");
		if (transport->register_memory == NULL)
			put_uint(b, 4, 1);
		put_text(b, 5, "socket");
		break;
	case STATS:
		stats(b);
		break;
	case HEALTH:
		put_text(b, 1, transport->problem ? transport->problem() : NULL);
		break;
	}
}

static void abandon(const char *key)
{
	struct call *c = find(key);
	if (c == NULL) { /* it has not come yet */
		c = new_call(key, NONE);
		c->abandoned = 1;
		call_done(c);
		return;
	}
	if (c->abandoned)
		return;
	c->abandoned = 1;
	if (c->done)
		undo(c);
	else if (c->cancel >= 0)
		(void)!write(c->cancel, &(uint64_t){ 1 }, 8);
}

static const char *or_empty(const char *s) { return s ? s : ""; }

static void carry_out(struct call *c, struct request *r)
{
	int64_t deadline = impi_now() + (int64_t)(r->timeout < 3600000 ? r->timeout : 3600000);
	switch (c->method) {
	case CONFIGURE:
		configure(c, r);
		return;
	case LISTEN:
		listen_for(c, &(struct impi_listen){ or_empty(r->host), (int)r->port, or_empty(r->dir), or_empty(r->name), or_empty(r->reopen) });
		return;
	case DIAL:
		c->cancel = eventfd(0, EFD_CLOEXEC);
		dial_for(c, &(struct impi_dial){ or_empty(r->address), or_empty(r->from), deadline, c->cancel });
		return;
	case OPEN_DATA_PLANE:
		if (!r->layout || !r->wake)
			r->modes.ring = 0;
		if (!r->wake)
			r->modes.rdma = 0;
		open_plane(c, r->id, &r->modes);
		return;
	case DRAIN:
		drain_for(c, deadline);
		return;
	case STOP_LISTEN:
		listener_stop(r->id);
		break;
	case CLOSE_LINK:
		link_drop(r->id);
		break;
	case ABANDON:
		if (r->other != NULL && strlen(r->other) <= MAX_KEY)
			abandon(r->other);
		break;
	default:
		about(&c->answer, c->method);
	}
	call_done(c);
}

static void unary(int32_t stream, int method, struct request *r)
{
	size_t n = r->key ? strlen(r->key) : 0;
	if (n == 0 || n > MAX_KEY || r->timeout == 0) {
		rpc_refuse(stream, GRPC_INVALID, "call needs a key of 1 to 64 bytes and a timeout_ms of 1 or more");
		return;
	}
	struct call *c = find(r->key);
	if (c != NULL && c->method != method && c->method != NONE) {
		rpc_refuse(stream, GRPC_INVALID, "the key is that of another request");
		return;
	}
	if (c != NULL && c->done) {
		reply(c, stream);
		return;
	}
	if (c != NULL && c->waiters == sizeof c->waiting / sizeof c->waiting[0]) {
		rpc_refuse(stream, GRPC_INTERNAL, "too many wait for the answer to this request");
		return;
	}
	int first = c == NULL;
	if (first)
		c = new_call(r->key, method);
	c->waiting[c->waiters++] = stream;
	if (first)
		carry_out(c, r);
}

static void events(int32_t stream, const uint8_t *p, size_t n)
{
	uint64_t after = 0;
	struct field f;
	for (const uint8_t *end = p + n; next_field(&p, end, &f) == 1;)
		if (f.number == 1 && f.wire == 0)
			after = f.value;
	rpc_follow(stream, after);
}

void service_request(int32_t stream, const char *path, const uint8_t *p, size_t n)
{
	if (strcmp(path, "/grpc.health.v1.Health/Check") == 0) {
		struct buf serving = { 0 };
		put_uint(&serving, 1, 1);
		rpc_answer(stream, &serving);
		buf_free(&serving);
		return;
	}
	if (strcmp(path, "/plugin.GRPCController/Shutdown") == 0)
		leave(0);
	if (strncmp(path, prefix, sizeof prefix - 1) == 0) {
		const char *name = path + sizeof prefix - 1;
		if (strcmp(name, "Events") == 0) {
			events(stream, p, n);
			return;
		}
		for (int m = 0; m < METHODS; m++) {
			if (strcmp(name, names[m]) != 0 || (m == HEALTH && version < 2))
				continue;
			struct request r = { 0 };
			if (read_request(&r, m, p, n) < 0)
				rpc_refuse(stream, GRPC_INVALID, "the request is no message of protobuf");
			else
				unary(stream, m, &r);
			free_request(&r);
			return;
		}
	}
	rpc_refuse(stream, GRPC_UNIMPLEMENTED, "there is no such method in this version of the protocol");
}
