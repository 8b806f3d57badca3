/* The control connection: gRPC, as a server, over libnghttp2. */
#include "internal.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 128, FRAME_HEAD = 5, MAX_STREAMS = 4096, WINDOW = 1 << 20, MAX_FOLLOWERS = 8 };

/* A call of gRPC. */
struct stream {
	char path[MAX_PATH];
	struct buf in, out;
	size_t sent;
	int follows;      /* events are sent until the node hangs up */
	uint64_t last;    /* event */
};

static nghttp2_session *session;
static int socket_fd = -1;
static int32_t followers[MAX_FOLLOWERS]; /* streams of events; 0: none */

#define NAME_VALUE(name, value, n) \
	{ (uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, (n), NGHTTP2_NV_FLAG_NONE }

static ssize_t on_send(nghttp2_session *s, const uint8_t *p, size_t n, int flags, void *user)
{
	(void)s, (void)flags, (void)user;
	ssize_t k = tls_write(socket_fd, p, n);
	if (k >= 0)
		return k;
	return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	(void)user;
	if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_session_set_stream_user_data(s, f->hd.stream_id, need(calloc(1, sizeof(struct stream))));
	return 0;
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
	const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	(void)flags, (void)user;
	struct stream *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
	if (x != NULL && name_n == 5 && memcmp(name, ":path", 5) == 0 && value_n < MAX_PATH)
		memcpy(x->path, value, value_n); /* it was all 0 */
	return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	(void)flags, (void)user;
	struct stream *x = nghttp2_session_get_stream_user_data(s, id);
	if (x == NULL)
		return 0;
	if (x->in.n + n > MAX_MESSAGE + FRAME_HEAD)
		return nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
	buf_put(&x->in, p, n);
	return 0;
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	(void)user;
	if ((f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) || !(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	struct stream *x = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
	if (x == NULL)
		return 0;
	const uint8_t *p = x->in.p;
	size_t n = x->in.n;
	if (n < FRAME_HEAD || p[0] != 0 ||
		((uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4]) != n - FRAME_HEAD)
		rpc_refuse(f->hd.stream_id, GRPC_INTERNAL, "the request is not one message without compression");
	else
		service_request(f->hd.stream_id, x->path, p + FRAME_HEAD, n - FRAME_HEAD);
	return 0;
}

static int on_close(nghttp2_session *s, int32_t id, uint32_t code, void *user)
{
	(void)code, (void)user;
	struct stream *x = nghttp2_session_get_stream_user_data(s, id);
	if (x == NULL)
		return 0;
	for (int i = 0; i < MAX_FOLLOWERS; i++)
		if (followers[i] == id)
			followers[i] = 0;
	buf_free(&x->in);
	buf_free(&x->out);
	free(x);
	return 0;
}

/* frame puts a message into the form of gRPC. */
static void frame(struct stream *x, const struct buf *m)
{
	uint8_t head[FRAME_HEAD] = { 0, (uint8_t)(m->n >> 24), (uint8_t)(m->n >> 16), (uint8_t)(m->n >> 8), (uint8_t)m->n };
	x->out.n = x->sent = 0;
	buf_put(&x->out, head, sizeof head);
	buf_put(&x->out, m->p, m->n);
}

static ssize_t on_read(nghttp2_session *s, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
	nghttp2_data_source *source, void *user)
{
	(void)user;
	struct stream *x = source->ptr;
	if (x->sent == x->out.n && x->follows) {
		struct buf event = { 0 };
		if (!next_event(x->last, &x->last, &event))
			return NGHTTP2_ERR_DEFERRED;
		frame(x, &event);
		buf_free(&event);
	}
	size_t n = x->out.n - x->sent < room ? x->out.n - x->sent : room;
	if (n > 0)
		memcpy(to, x->out.p + x->sent, n);
	x->sent += n;
	if (x->sent == x->out.n && !x->follows) {
		nghttp2_nv end[] = { NAME_VALUE("grpc-status", "0", 1) };
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(s, id, end, 1) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)n;
}

static void begin(int32_t id, struct stream *x)
{
	nghttp2_nv head[] = { NAME_VALUE(":status", "200", 3), NAME_VALUE("content-type", "application/grpc", 16) };
	nghttp2_data_provider data = { .source.ptr = x, .read_callback = on_read };
	nghttp2_submit_response(session, id, head, 2, &data);
}

void rpc_answer(int32_t id, const struct buf *m)
{
	struct stream *x = session ? nghttp2_session_get_stream_user_data(session, id) : NULL;
	if (x == NULL)
		return; /* nobody waits any more */
	frame(x, m);
	begin(id, x);
}

void rpc_follow(int32_t id, uint64_t after)
{
	struct stream *x = session ? nghttp2_session_get_stream_user_data(session, id) : NULL;
	if (x == NULL)
		return;
	for (int i = 0; i < MAX_FOLLOWERS; i++)
		if (followers[i] == 0) {
			followers[i] = id;
			x->follows = 1;
			x->last = after;
			begin(id, x);
			return;
		}
	rpc_refuse(id, GRPC_INTERNAL, "too many calls of Events");
}

void rpc_refuse(int32_t id, int status, const char *why)
{
	char number[12];
	if (session == NULL || nghttp2_session_get_stream_user_data(session, id) == NULL)
		return;
	snprintf(number, sizeof number, "%d", status);
	nghttp2_nv head[] = { NAME_VALUE(":status", "200", 3), NAME_VALUE("content-type", "application/grpc", 16),
		NAME_VALUE("grpc-status", number, strlen(number)), NAME_VALUE("grpc-message", why, strlen(why)) };
	nghttp2_submit_response(session, id, head, 4, NULL);
}

void rpc_news(void)
{
	if (session == NULL)
		return;
	for (int i = 0; i < MAX_FOLLOWERS; i++)
		if (followers[i] != 0 && nghttp2_session_get_stream_user_data(session, followers[i]) != NULL)
			nghttp2_session_resume_data(session, followers[i]);
}

static void closed(void)
{
	nghttp2_session_del(session);
	tls_close();
	close(socket_fd);
	session = NULL;
	socket_fd = -1;
	memset(followers, 0, sizeof followers);
}

void rpc_open(int fd)
{
	nghttp2_session_callbacks *c;
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS }, { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW } };
	if (session != NULL || tls_open(fd) != 0) { /* there is one node */
		close(fd);
		return;
	}
	if (nghttp2_session_callbacks_new(&c) != 0)
		abort();
	nghttp2_session_callbacks_set_send_callback(c, on_send);
	nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_close);
	socket_fd = fd;
	if (nghttp2_session_server_new(&session, c, NULL) != 0)
		abort();
	nghttp2_session_callbacks_del(c);
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2);
}

int rpc_fd(void) { return socket_fd; }

short rpc_events(void)
{
	/* What was submitted meanwhile is written first, so that it does not wait for a round of poll. */
	if (session != NULL && nghttp2_session_send(session) != 0)
		closed();
	return session != NULL && nghttp2_session_want_write(session) ? POLLIN | POLLOUT : POLLIN;
}

void rpc_ready(short events)
{
	static uint8_t bytes[64 << 10];
	if (!(events & (POLLIN | POLLHUP | POLLERR)))
		return;
	/* All of it: of what TLS has read ahead, poll says nothing. */
	while (session != NULL) {
		ssize_t n = tls_read(socket_fd, bytes, sizeof bytes);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || nghttp2_session_mem_recv(session, bytes, (size_t)n) < 0)
			closed();
	}
}
