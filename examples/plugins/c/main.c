/*
 * impi-transport-c: links over TCP, as a plugin in C with libimpi-plugin.
 *
 * A transport of yours says what it has to say to its peer after connecting, in dial_tcp, and after
 * accepting, in a function greet. Connections that live in the process have a struct impi_conn_ops.
 */
#include <impi_plugin.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Settings, in the order in which configure gets them. */
enum { TIMEOUT, NODELAY };

static const struct impi_setting settings[] = {
	[TIMEOUT] = { .name = "timeout", .type = "number", .number = 10, .doc = "seconds that a connection may take" },
	[NODELAY] = { .name = "nodelay", .type = "bool", .truth = 1, .doc = "send small packets at once (TCP_NODELAY)" },
	{ 0 },
};

/* Set on one thread, read by those of dials. */
static _Atomic int64_t timeout_ms = 10000;
static _Atomic int nodelay = 1;

static int configure(const struct impi_value *v, struct impi_error *e)
{
	if (!(v[TIMEOUT].number > 0 && v[TIMEOUT].number <= 3600))
		return impi_bad_setting(e, "timeout", "is not between 0 and 3600", "write a number of seconds, such as 10");
	timeout_ms = (int64_t)(v[TIMEOUT].number * 1000);
	nodelay = v[NODELAY].truth;
	return 0;
}

static void prepare(int fd)
{
	int on = nodelay;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* What it has opened belongs to the library if it returns 0; otherwise nothing may stay open. */
static int listen_tcp(const struct impi_listen *at, int *fd, char *address, size_t size, struct impi_error *e)
{
	struct sockaddr_storage a;
	socklen_t n;
	int on = 1, port = at->port;
	const char *colon = strrchr(at->reopen, ':');
	if (port == 0 && colon != NULL)
		sscanf(colon, ":%d", &port); /* ours: the process was started again */
	if (impi_parse_ip(at->host, port, &a, &n, e) != 0)
		return -1;
	*fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return impi_fail_errno(e);
	setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(*fd, (struct sockaddr *)&a, n) != 0 || listen(*fd, SOMAXCONN) != 0 ||
		getsockname(*fd, (struct sockaddr *)&a, &n) != 0) {
		int failed = impi_fail_errno(e);
		close(*fd);
		return failed;
	}
	prepare(*fd); /* what is accepted inherits it */
	impi_format_ip(&a, address, size);
	return 0;
}

/* It runs in a thread of its own, and may wait in impi_connect. For its socket the same holds. */
static int dial_tcp(const struct impi_dial *to, struct impi_conn *c, struct impi_error *e)
{
	struct sockaddr_storage a, own;
	socklen_t n, own_n;
	struct impi_dial within = *to;
	int64_t latest = impi_now() + timeout_ms;
	if (latest < within.deadline)
		within.deadline = latest;
	if (impi_parse_ip(to->address, -1, &a, &n, e) != 0)
		return -1;
	c->fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return impi_fail_errno(e);
	prepare(c->fd);
	if (*to->from && impi_parse_ip(to->from, 0, &own, &own_n, e) != 0)
		goto failed;
	if (*to->from && bind(c->fd, (struct sockaddr *)&own, own_n) != 0) {
		impi_fail_errno(e);
		goto failed;
	}
	if (impi_connect(c->fd, (struct sockaddr *)&a, n, &within, e) == 0)
		return 0;
failed:
	close(c->fd);
	return -1;
}

int main(int argc, char **argv)
{
	static const struct impi_transport tcp = {
		.name = "c", .version = "1.0.0", .vendor = "the impi examples", .reach = "network",
		.settings = settings, .configure = configure, .listen = listen_tcp, .dial = dial_tcp,
	};
	impi_serve(&tcp, argc, argv);
}
