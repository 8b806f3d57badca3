/*
 * impi-transport-pretend-c: links by data plane rdma, as a plugin in C with libimpi-plugin. Memory that
 * the processes of one machine share pretends to be the remote memory of a fabric. It shows what a
 * vendor of such hardware writes: conn.c and domain.c.
 */
#include "pretend.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Settings, in the order in which configure gets them. */
enum { RAILS, REGISTERED, LIMIT };

static const struct impi_setting settings[] = {
	[RAILS] = { .name = "rails", .type = "number", .number = 2, .doc = "ways by which memory is read, 1 to 16" },
	[REGISTERED] = { .name = "registered", .type = "number", .number = 1 << 30, .doc = "bytes that are kept registered" },
	[LIMIT] = { .name = "limit", .type = "number", .number = 0, .doc = "bytes that the pretended hardware can register at a time; 0: any number" },
	{ 0 },
};

static _Atomic int rails = 2;

static int configure(const struct impi_value *v, struct impi_error *e)
{
	double r = v[RAILS].number;
	if (!(r >= 1 && r <= 16) || r != (int)r)
		return impi_bad_setting(e, "rails", "is no whole number from 1 to 16", "write 2");
	if (!(v[REGISTERED].number >= 4096 && v[REGISTERED].number <= 1e15))
		return impi_bad_setting(e, "registered", "is not between 4096 and 10^15", "write a number of bytes, such as 1073741824");
	if (!(v[LIMIT].number >= 0 && v[LIMIT].number <= 1e15))
		return impi_bad_setting(e, "limit", "is not between 0 and 10^15", "write 0");
	rails = (int)r;
	impi_keep_registered((uint64_t)v[REGISTERED].number);
	domain_limit((uint64_t)v[LIMIT].number);
	return 0;
}

static int address_of(const char *path, struct sockaddr_un *a, struct impi_error *e)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (path[0] != '/' || strlen(path) >= sizeof a->sun_path)
		return impi_fail(e, "address", 0, "it should be the path of a socket");
	strcpy(a->sun_path, path);
	return 0;
}

/* try_to_connect connects without waiting. Errno is EAGAIN if the listener's queue is full. */
static int try_to_connect(int fd, const struct sockaddr_un *a) { return connect(fd, (const struct sockaddr *)a, sizeof *a); }

static int new_socket(void) { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/* abandoned removes a socket at which nobody listens any more. */
static int abandoned(const struct sockaddr_un *a)
{
	int fd = new_socket();
	int gone = fd >= 0 && try_to_connect(fd, a) != 0 && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return gone && unlink(a->sun_path) == 0;
}

/* After a restart the listener has its address again, which depends on nothing else. */
static int listen_at(const struct impi_listen *at, int *fd, char *address, size_t size, struct impi_error *e)
{
	struct sockaddr_un a;
	if (snprintf(address, size, "%s/%s.fabric", at->dir, at->name) >= (int)size)
		return impi_fail(e, "address", 0, "the path of the socket is too long");
	if (address_of(address, &a, e) != 0)
		return -1;
	if ((*fd = new_socket()) < 0)
		return impi_fail_errno(e);
	int bound = bind(*fd, (struct sockaddr *)&a, sizeof a);
	if (bound != 0 && errno == EADDRINUSE && abandoned(&a))
		bound = bind(*fd, (struct sockaddr *)&a, sizeof a);
	if (bound == 0 && listen(*fd, SOMAXCONN) == 0)
		return 0;
	impi_fail_errno(e);
	close(*fd);
	return -1;
}

static void unlisten(int fd, const char *address)
{
	unlink(address);
	close(fd);
}

static int greet(int fd, struct impi_conn *c, struct impi_error *e)
{
	(void)e;
	conn_make(c, fd, rails);
	return 0;
}

static int dial(const struct impi_dial *to, struct impi_conn *c, struct impi_error *e)
{
	struct sockaddr_un a;
	struct pollfd given_up = { .fd = to->cancel, .events = POLLIN };
	if (address_of(to->address, &a, e) != 0)
		return -1;
	int fd = new_socket();
	if (fd < 0)
		return impi_fail_errno(e);
	while (try_to_connect(fd, &a) != 0) {
		if (errno != EAGAIN && errno != EINTR) {
			impi_fail_errno(e);
			close(fd);
			return -1;
		}
		/* No event says that there is room in the listener's queue. */
		if (impi_now() >= to->deadline || poll(&given_up, 1, 5) > 0) {
			close(fd);
			return impi_fail(e, "timeout", 1, "the peer does not accept in time");
		}
	}
	conn_make(c, fd, rails);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct impi_transport pretend = {
		.name = "pretend-c", .version = "1.0.0", .vendor = "the impi examples", .reach = "machine",
		.settings = settings, .configure = configure, .listen = listen_at, .unlisten = unlisten, .greet = greet, .dial = dial,
		.register_memory = register_memory, .unregister_memory = unregister_memory,
	};
	if (domain_open() != 0) {
		perror("the table of registrations");
		return 1;
	}
	impi_serve(&pretend, argc, argv);
}
