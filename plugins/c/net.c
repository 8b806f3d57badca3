/* Help for transports: errors, waiting, addresses. */
#include "internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int impi_fail(struct impi_error *e, const char *code, int retryable, const char *format, ...)
{
	va_list args;
	e->code = code;
	e->retryable = retryable;
	va_start(args, format);
	vsnprintf(e->reason, sizeof e->reason, format, args);
	va_end(args);
	return -1;
}

int impi_bad_setting(struct impi_error *e, const char *name, const char *problem, const char *remedy)
{
	impi_fail(e, "internal", 0, "%s", problem);
	e->name = name;
	snprintf(e->remedy, sizeof e->remedy, "%s", remedy);
	return -1;
}

int impi_fail_errno(struct impi_error *e)
{
	static const struct { int number; const char *code, *reason; } known[] = {
		{ ECONNREFUSED, "refused", "nobody listens there" },
		{ ECONNRESET, "refused", "the other side hung up at once" },
		{ ENOENT, "refused", "nobody listens there" },
		{ EHOSTUNREACH, "unreachable", "the host cannot be reached" },
		{ ENETUNREACH, "unreachable", "there is no route to that network" },
		{ ETIMEDOUT, "timeout", "the host does not answer" },
		{ EADDRINUSE, "resource", "the address is in use" },
		{ EMFILE, "resource", "too many descriptors are open: raise ulimit -n" },
		{ ENFILE, "resource", "too many descriptors are open on this machine" },
	};
	int number = errno;
	if (number == EADDRNOTAVAIL)
		return impi_fail(e, "address", 0, "this machine does not have that address");
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (known[i].number == number)
			return impi_fail(e, known[i].code, 1, "%s", known[i].reason);
	return impi_fail(e, "internal", 0, "%s", strerror(number));
}

int64_t impi_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int impi_wait(int fd, short events, const struct impi_dial *to, struct impi_error *e)
{
	struct pollfd at[2] = { { .fd = fd, .events = events }, { .fd = to->cancel, .events = POLLIN } };
	for (;;) {
		int64_t left = to->deadline - impi_now();
		int n = left > 0 ? poll(at, 2, (int)left) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return impi_fail_errno(e);
		if (at[1].revents != 0)
			return impi_fail(e, "timeout", 1, "nobody waits for the dial any more");
		if (n == 0)
			return impi_fail(e, "timeout", 1, "no answer in time");
		return 0;
	}
}

int impi_connect(int fd, const struct sockaddr *to, socklen_t size, const struct impi_dial *dial, struct impi_error *e)
{
	int result = 0;
	socklen_t n = sizeof result;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	if (connect(fd, to, size) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EINTR)
		return impi_fail_errno(e);
	if (impi_wait(fd, POLLOUT, dial, e) != 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &n) != 0)
		return impi_fail_errno(e);
	errno = result;
	return result == 0 ? 0 : impi_fail_errno(e);
}

int impi_parse_ip(const char *text, int port, struct sockaddr_storage *to, socklen_t *size, struct impi_error *e)
{
	const char *form = port < 0 ? "\"ip:port\"" : "an IP address";
	char host[INET6_ADDRSTRLEN + 2];
	size_t n = strlen(text);
	memset(to, 0, sizeof *to);
	if (port < 0) { /* the port is in the text */
		const char *colon = strrchr(text, ':');
		char *end;
		long number = colon != NULL && colon[1] >= '0' && colon[1] <= '9' && strlen(colon) <= 6 ? strtol(colon + 1, &end, 10) : 0;
		if (number < 1 || number > 65535 || *end != 0)
			return impi_fail(e, "address", 0, "it should be %s", form);
		port = (int)number;
		n = (size_t)(colon - text);
	}
	int bracketed = n > 1 && text[0] == '[' && text[n - 1] == ']';
	text += bracketed;
	n -= 2 * (size_t)bracketed;
	if (n < sizeof host) {
		struct sockaddr_in *four = (struct sockaddr_in *)to;
		struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
		memcpy(host, text, n);
		host[n] = 0;
		if (!bracketed && inet_pton(AF_INET, host, &four->sin_addr) == 1) {
			four->sin_family = AF_INET;
			four->sin_port = htons((uint16_t)port);
			*size = sizeof *four;
			return 0;
		}
		if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
			six->sin6_family = AF_INET6;
			six->sin6_port = htons((uint16_t)port);
			*size = sizeof *six;
			return 0;
		}
	}
	return impi_fail(e, "address", 0, "it should be %s", form);
}

void impi_format_ip(const struct sockaddr_storage *from, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";
	if (from->ss_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
		snprintf(text, size, "[%s]:%d", host, ntohs(six->sin6_port));
		return;
	}
	const struct sockaddr_in *four = (const struct sockaddr_in *)from;
	inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
	snprintf(text, size, "%s:%d", host, ntohs(four->sin_port));
}
