/* What the files of libimpi-plugin share. But for pumps and workers everything runs on one
 * thread. */
#ifndef IMPI_PLUGIN_INTERNAL_H
#define IMPI_PLUGIN_INTERNAL_H

#include "impi_plugin.h"

#include <stdatomic.h>
#include <stdint.h>

/* The versions of the protocol that the library speaks. Tests build plugins of other ages. */
#ifndef IMPI_OLDEST
#define IMPI_OLDEST 1
#endif
#ifndef IMPI_NEWEST
#define IMPI_NEWEST 2
#endif

enum {
	MAX_MESSAGE = 2 << 20,
	MAX_WAITING = 256,     /* links that nobody has opened */
	MAX_ACCEPTED = 192,    /* beyond that no more are accepted, so that dials have room */
	MAX_KEPT = 1024,       /* answers for those who ask again */
	MAX_KEY = 64,
	MAX_LISTENERS = 1024,
	LINGER_MS = 10000,     /* that the last bytes of a closed link may take */
};

/* Statuses of gRPC. */
enum { GRPC_OK = 0, GRPC_CANCELLED = 1, GRPC_INVALID = 3, GRPC_UNIMPLEMENTED = 12, GRPC_INTERNAL = 13 };

/* Bytes that grow. Memory that cannot be had ends the process. */
struct buf {
	uint8_t *p;
	size_t n, cap;
};

void *need(void *memory);
void buf_put(struct buf *b, const void *p, size_t n);
void buf_free(struct buf *b);

/* Messages of protobuf: a field that has its default is left out. */
void put_uint(struct buf *b, unsigned field, uint64_t v);
void put_text(struct buf *b, unsigned field, const char *s);
void put_double(struct buf *b, unsigned field, double d);
/* puts the field even if m is empty, and frees m */
void put_message(struct buf *b, unsigned field, struct buf *m);

struct field {
	unsigned number, wire;
	uint64_t value;      /* of numbers */
	const uint8_t *p;    /* of texts and messages */
	size_t n;
};

/* next_field gives 1, 0 at the end, or -1 for what is no message. */
int next_field(const uint8_t **p, const uint8_t *end, struct field *f);
char *field_text(const struct field *f); /* a copy */

/* The control connection, rpc.c. */
void rpc_open(int fd);
int rpc_fd(void); /* -1: there is none */
short rpc_events(void);
void rpc_ready(short events);
void rpc_answer(int32_t stream, const struct buf *message);
void rpc_refuse(int32_t stream, int status, const char *why);
void rpc_follow(int32_t stream, uint64_t after); /* answers with events from then on */
void rpc_news(void);                             /* there are new events */

/* tls.c: AutoMTLS below it. tls_start gives the certificate for the handshake; empty: there is
 * none. */
const char *tls_start(void);
int tls_open(int fd);
void tls_close(void);
ssize_t tls_read(int fd, void *to, size_t n);
ssize_t tls_write(int fd, const void *from, size_t n);

/* service.c: a whole request has come. */
void service_request(int32_t stream, const char *path, const uint8_t *p, size_t n);
/* The next event after a number, encoded; 0: none. */
int next_event(uint64_t after, uint64_t *sequence, struct buf *out);

/* A request, carried out once however often it is sent. */
struct call {
	char key[MAX_KEY + 1];
	int method;          /* -1: it was abandoned before it came */
	int done, abandoned;
	int status;
	const char *why;
	struct buf answer;
	int32_t waiting[16]; /* streams that want the answer */
	int waiters;
	uint64_t link, listener; /* that it has made */
	int cancel;          /* eventfd; -1: none */
	struct call *next;
};

void call_done(struct call *c);

/* links.c */
struct link;
struct link *link_take(uint64_t id);
uint64_t link_hold(struct impi_conn c, uint64_t listener); /* 0: there is no room */
void link_drop(uint64_t id);
void conn_close(struct impi_conn *c);
void conn_reset(struct impi_conn *c);
void listen_for(struct call *c, const struct impi_listen *at);
void listener_stop(uint64_t id);
void listeners_stop(void);
size_t listeners_count(void);
size_t links_count(void);
struct pollfd;
size_t listeners_poll(struct pollfd *at); /* as many as there are, MAX_LISTENERS at most */
void listeners_ready(const struct pollfd *at, size_t n);
void greeted(uint64_t listener, struct impi_conn *c); /* c NULL: it has failed */
void dial_for(struct call *c, const struct impi_dial *to);
void dial_ended(struct call *c, struct impi_conn *conn, struct impi_error *e);

/* region.c: memory shared with procs, and waking them. */
uint8_t *shared_make(const char *name, size_t size, int *fd); /* sealed and mapped; NULL: errno says why */
int claimed(_Atomic uint32_t *sleeps);                        /* 1: the other side has to be woken */
void bell_ring(int bell);

/* planes.c, ring.c and rdma_*.c */
struct link {
	uint64_t id, listener;
	uint64_t event; /* that announces it; 0: it was dialled */
	struct impi_conn conn;
	struct link *next;
};

struct modes {
	int fd, rdma, ring, stream; /* wanted by the node, by their rank from 1; 0: not wanted */
	uint64_t ring_bytes;
	char names[128];            /* for the error */
};

void open_plane(struct call *c, uint64_t id, const struct modes *m);

/* A link whose bytes the library passes on, by a thread of its own. */
struct pump {
	int near;            /* socket: the stream's, or the ring's doorbell */
	int tail;            /* pipe of the plane stream; -1 for a ring */
	uint8_t *region;
	size_t size;         /* of the region */
	uint64_t ring;       /* bytes of each ring */
	uint64_t head, tail0; /* of the ring that is written, and of the one that is read */
	struct rdma *rdma;   /* NULL: it is another plane */
	struct impi_conn conn;
	int left;            /* the proc has closed the link, or died */
};

int ring_make(uint64_t wanted, struct pump *p, int *region, int *bell);
void ring_run(struct pump *p);
int rdma_make(struct pump *p, int fds[3]);
void rdma_run(struct pump *p);
void rdma_drop(struct rdma *x); /* of a link that never ran */
void stream_run(struct pump *p);
int64_t linger_end(int64_t now);
int conn_wait(struct impi_conn *c, short events, int64_t until); /* 1 when it is ready */
ssize_t conn_read(struct impi_conn *c, void *to, size_t n);
ssize_t conn_write(struct impi_conn *c, const void *from, size_t n);
int conn_close_write(struct impi_conn *c);
void conn_settle(struct impi_conn *c); /* waits until the peer has all, and closes */
extern atomic_int pumps, closing;      /* all, and those whose proc has gone */

/* serve.c */
extern const struct impi_transport *transport;
extern int version;
extern uint64_t last_id, last_event;
extern int draining, dialling;
extern struct counts { uint64_t dials, dial_errors, accepts, handed_over; } counts;
extern const char *const mode_names[6];

int record_send(uint64_t link, int mode, uint32_t side, const int *fds, int n);
void in_thread(void *(*f)(void *), void *arg);
void post(void (*f)(void *), void *arg); /* has the library's thread call f */
void drain_for(struct call *c, int64_t deadline);
void leave(int status) __attribute__((noreturn));
void put_error(struct buf *b, unsigned field, const struct impi_error *e);

#endif
