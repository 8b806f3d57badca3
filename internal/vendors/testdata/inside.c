/* A transport whose connections live in the process: what is in its sockets are other bytes than
 * those of the links, so that none can be handed over. It ends the process when the library does
 * not do with a connection what impi_plugin.h says. */
#include <impi_plugin.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MASK = 0x5a, PIECE = 16 << 10 };

struct inside {
	int fd;
	atomic_int calls;          /* in progress */
	int read_end, write_end;   /* were seen, and said */
	int broken;
};

static void promised(int kept, const char *what)
{
	if (kept)
		return;
	fprintf(stderr, "fatal error: impi_plugin.h promises that %s\n", what);
	abort();
}

static struct inside *enter(void *state)
{
	struct inside *x = state;
	promised(atomic_fetch_add(&x->calls, 1) == 0, "one function of a connection is called at a time");
	return x;
}

static ssize_t leave(struct inside *x, ssize_t result)
{
	x->broken |= result < 0 && errno != EAGAIN && errno != EINTR;
	atomic_fetch_sub(&x->calls, 1);
	return result;
}

static ssize_t read_masked(void *state, void *to, size_t n)
{
	struct inside *x = enter(state);
	promised(n > 0, "read has room");
	promised(!x->read_end, "read is not called after the end");
	promised(!x->broken, "read is not called after an error");
	ssize_t k = recv(x->fd, to, n, MSG_DONTWAIT);
	for (ssize_t i = 0; i < k; i++)
		((unsigned char *)to)[i] ^= MASK;
	x->read_end = k == 0;
	return leave(x, k);
}

/* It takes what can be sent now: the library does not call again for what was taken. */
static ssize_t write_masked(void *state, const void *from, size_t n)
{
	struct inside *x = enter(state);
	unsigned char out[PIECE];
#ifdef CRASH
	static char *volatile nowhere;
	*nowhere = 1;
#endif
	promised(n > 0, "write has bytes");
	promised(!x->write_end, "write is not called after close_write");
	promised(!x->broken, "write is not called after an error");
	n = n < PIECE ? n : PIECE;
	for (size_t i = 0; i < n; i++)
		out[i] = ((const unsigned char *)from)[i] ^ MASK;
	return leave(x, send(x->fd, out, n, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static int end(void *state)
{
	struct inside *x = enter(state);
	promised(!x->write_end, "close_write is called once");
	promised(!x->broken, "close_write is not called after an error");
	x->write_end = 1;
	return (int)leave(x, shutdown(x->fd, SHUT_WR));
}

static void drop(void *state)
{
	struct inside *x = enter(state);
	promised(!x->broken, "close is not called after an error");
	close(x->fd);
	free(x);
}

static void reset(void *state)
{
	struct inside *x = enter(state);
	struct linger hard = { 1, 0 };
	setsockopt(x->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(x->fd);
	free(x);
}

static const struct impi_conn_ops ops = { read_masked, write_masked, end, drop, reset };

static int greet(int fd, struct impi_conn *c, struct impi_error *e)
{
	int on = 1;
	struct inside *x = calloc(1, sizeof *x);
	promised(c->fd == 0 && c->ops == NULL && c->state == NULL, "*c is all zeros");
	if (x == NULL) {
		close(fd);
		return impi_fail(e, "resource", 1, "there is no memory");
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	x->fd = fd;
	*c = (struct impi_conn){ .fd = fd, .ops = &ops, .state = x };
	return 0;
}

static int dial(const struct impi_dial *to, struct impi_conn *c, struct impi_error *e)
{
	struct sockaddr_storage a;
	socklen_t n;
	if (impi_parse_ip(to->address, -1, &a, &n, e) != 0)
		return -1;
	int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return impi_fail_errno(e);
	if (impi_connect(fd, (struct sockaddr *)&a, n, to, e) == 0)
		return greet(fd, c, e);
	close(fd);
	return -1;
}

static int listen_at(const struct impi_listen *at, int *fd, char *address, size_t size, struct impi_error *e)
{
	struct sockaddr_storage a;
	socklen_t n;
	int on = 1;
	const char *colon = strrchr(at->reopen, ':');
	if (impi_parse_ip(at->host, colon ? atoi(colon + 1) : at->port, &a, &n, e) != 0)
		return -1;
	*fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return impi_fail_errno(e);
	setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(*fd, (struct sockaddr *)&a, n) == 0 && listen(*fd, SOMAXCONN) == 0 &&
		getsockname(*fd, (struct sockaddr *)&a, &n) == 0) {
		impi_format_ip(&a, address, size);
		return 0;
	}
	impi_fail_errno(e);
	close(*fd);
	return -1;
}

int main(int argc, char **argv)
{
	static const struct impi_transport inside = {
		.name = "inside", .version = "1", .vendor = "the tests", .reach = "network", .in_process = 1,
		.listen = listen_at, .greet = greet, .dial = dial,
	};
	impi_serve(&inside, argc, argv);
}
