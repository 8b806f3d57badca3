/* The process: handshake, descriptor 3, the thread on which everything is decided, and the log. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <unistd.h>

#define COOKIE "IMPI_TRANSPORT_PLUGIN"
#define COOKIE_VALUE "7d1f0d0e3b5c4a6f9a41c8c2d2f6be11"

enum { CHANNEL = 3, STACK = 1 << 20 };

const struct impi_transport *transport;
int version = IMPI_OLDEST, draining, dialling;
uint64_t last_id, last_event;
struct counts counts;

static char socket_path[sizeof((struct sockaddr_un *)0)->sun_path];
static int posted_fd; /* eventfd: there is something in the queue */

/* The log. */

static const char *const levels[] = { "trace", "debug", "info", "warn", "error", "off" };

static int rank(const char *level, int otherwise)
{
	for (int i = 0; level != NULL && i < 6; i++)
		if (strcmp(levels[i], level) == 0)
			return i;
	return otherwise;
}

void impi_log(const char *level, const char *format, ...)
{
	char text[512], line[1200];
	size_t n;
	va_list args;
	if (rank(level, 2) < rank(getenv("IMPI_PLUGIN_LOG_LEVEL"), 2))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	n = (size_t)snprintf(line, sizeof line, "{\"@level\":\"%s\",\"@message\":\"", level);
	for (const char *p = text; *p != 0 && n < sizeof line - 10; p++) {
		if (*p == '"' || *p == '\\')
			line[n++] = '\\';
		line[n++] = (unsigned char)*p < ' ' ? ' ' : *p;
	}
	memcpy(line + n, "\"}\n", 3);
	(void)!write(2, line, n + 3); /* one call, so that lines of threads do not mix */
}

/* What other threads have for the library's. */

struct posted {
	void (*f)(void *);
	void *arg;
	struct posted *next;
};

static pthread_mutex_t posting = PTHREAD_MUTEX_INITIALIZER;
static struct posted *queue, **queue_end = &queue;

void post(void (*f)(void *), void *arg)
{
	struct posted *p = need(calloc(1, sizeof *p));
	p->f = f;
	p->arg = arg;
	pthread_mutex_lock(&posting);
	*queue_end = p;
	queue_end = &p->next;
	pthread_mutex_unlock(&posting);
	(void)!write(posted_fd, &(uint64_t){ 1 }, 8);
}

static void do_posted(void)
{
	uint64_t n;
	(void)!read(posted_fd, &n, 8);
	pthread_mutex_lock(&posting);
	struct posted *p = queue, *next;
	queue = NULL;
	queue_end = &queue;
	pthread_mutex_unlock(&posting);
	for (; p != NULL; p = next) {
		next = p->next;
		p->f(p->arg);
		free(p);
	}
}

void in_thread(void *(*f)(void *), void *arg)
{
	pthread_attr_t a;
	pthread_t t;
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&a, STACK);
	if (pthread_create(&t, &a, f, arg) != 0) {
		impi_log("error", "there is no further thread: raise ulimit -u");
		leave(1); /* its node starts the plugin again */
	}
	pthread_attr_destroy(&a);
}

/* The end. */

void leave(int status)
{
	struct impi_registrations r;
	listeners_stop();
	if (transport->register_memory != NULL) {
		impi_count_registrations(&r);
		impi_log("info", "memory of procs: registrations=%llu used_again=%llu evictions=%llu refused=%llu", (unsigned long long)r.made,
			(unsigned long long)r.used_again, (unsigned long long)r.evicted, (unsigned long long)r.refused);
	}
	if (socket_path[0] != 0)
		unlink(socket_path);
	_exit(status);
}

static struct call *draining_call;
static int64_t drain_until;

void drain_for(struct call *c, int64_t deadline)
{
	draining = 1;
	listeners_stop();
	if (draining_call != NULL) {
		put_uint(&c->answer, 1, (uint64_t)dialling);
		call_done(c);
		return;
	}
	draining_call = c;
	/* The node stops waiting at the end of the call's time: the answer has to be there before. */
	drain_until = deadline - (deadline - impi_now()) / 8;
}

/* drained answers Drain when nothing is under way any more, or its time is over. */
static void drained(void)
{
	struct call *c = draining_call;
	if (c == NULL || ((dialling > 0 || atomic_load(&closing) > 0) && impi_now() < drain_until))
		return;
	draining_call = NULL;
	put_uint(&c->answer, 1, (uint64_t)dialling);
	call_done(c);
}

/* channel reads descriptor 3, whose end is the node's. */
static void channel(void)
{
	char bytes[64];
	/* Records are for later versions. Their descriptors are closed by the kernel, as there is no
	 * room. */
	ssize_t n = recv(CHANNEL, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		leave(0);
}

static void loop(int listening, int signals)
{
	static struct pollfd at[MAX_LISTENERS + 5];
	for (;;) {
		drained();
		at[0] = (struct pollfd){ .fd = CHANNEL, .events = POLLIN };
		at[1] = (struct pollfd){ .fd = posted_fd, .events = POLLIN };
		at[2] = (struct pollfd){ .fd = signals, .events = POLLIN };
		at[3] = (struct pollfd){ .fd = listening, .events = POLLIN };
		short events = rpc_events(); /* which may close the connection */
		at[4] = (struct pollfd){ .fd = rpc_fd(), .events = events };
		size_t n = listeners_poll(at + 5);
		int64_t left = draining_call ? drain_until - impi_now() : -1;
		if (poll(at, 5 + n, draining_call && left < 0 ? 0 : (int)left) < 0)
			continue; /* a signal */
		if (at[0].revents)
			channel();
		if (at[2].revents)
			leave(0);
		if (at[1].revents)
			do_posted();
		if (at[4].revents)
			rpc_ready(at[4].revents);
		if (at[3].revents) {
			int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
			if (fd >= 0)
				rpc_open(fd);
		}
		listeners_ready(at + 5, n);
	}
}

/* The start. */

static void by_hand(int argc, char **argv)
{
	const char *asked = argc > 1 ? argv[1] : "";
	if (strstr("-help --help -h", asked) != NULL && *asked) {
		printf("%s is the transport \"%s\" as a plugin of impi: impi-node starts it when a job's file says so.\n", argv[0], transport->name);
		exit(0);
	}
	if (strstr("-version --version", asked) != NULL && *asked) {
		printf("%s %s (transport \"%s\" of %s, protocol %d, libimpi-plugin/%s)\n", argv[0], transport->version, transport->name,
			transport->vendor, IMPI_NEWEST, IMPI_PLUGIN_VERSION);
		exit(0);
	}
	fprintf(stderr, "%s is a transport plugin of impi: impi-node starts it when a job's config says so. More: %s -help\n", argv[0], argv[0]);
	exit(1);
}

/* agree takes the highest version that the node lists, too; without one it says its lowest, and the
 * node explains that to its operator. */
static void agree(void)
{
	const char *list = getenv("PLUGIN_PROTOCOL_VERSIONS");
	char *rest = need(strdup(list ? list : "1")), *word;
	for (char *s = rest; (word = strsep(&s, ",")) != NULL;) {
		int v = atoi(word);
		if (v > version && v <= IMPI_NEWEST)
			version = v;
	}
	free(rest);
}

static void fatal(const char *what)
{
	fprintf(stderr, "[ERROR] %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_socket(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *dir = getenv("PLUGIN_UNIX_SOCKET_DIR");
	int n = snprintf(a.sun_path, sizeof a.sun_path, "%s/plugin%d", dir ? dir : "/tmp", (int)getpid());
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n >= (int)sizeof a.sun_path)
		errno = ENAMETOOLONG;
	if (fd < 0 || n >= (int)sizeof a.sun_path || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 8) != 0)
		fatal("the control socket");
	memcpy(socket_path, a.sun_path, sizeof socket_path);
	return fd;
}

void impi_serve(const struct impi_transport *t, int argc, char **argv)
{
	const char *cookie = getenv(COOKIE);
	sigset_t set;
	transport = t;
	if (t->listen == NULL || t->dial == NULL) {
		fprintf(stderr, "%s: its struct impi_transport has no %s: listen and dial must both be there\n", t->name, t->listen == NULL ? "listen" : "dial");
		exit(2);
	}
	if ((t->register_memory == NULL) != (t->unregister_memory == NULL)) {
		fprintf(stderr, "%s: its struct impi_transport has register_memory or unregister_memory alone: there are both or none\n", t->name);
		exit(2);
	}
	if (cookie == NULL || strcmp(cookie, COOKIE_VALUE) != 0)
		by_hand(argc, argv);
	unsetenv(COOKIE); /* processes that we start are no plugins */
	if (fcntl(CHANNEL, F_SETFD, FD_CLOEXEC) != 0)
		fatal("descriptor 3, which the node must give the plugin");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT); /* of a terminal: the node gets it, too, and decides */
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigdelset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* instead of SIGKILL: files have to go */
	int signals = signalfd(-1, &set, SFD_CLOEXEC);
	posted_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (signals < 0 || posted_fd < 0)
		fatal("a descriptor");
	agree();
	const char *certificate = tls_start();
	int listening = open_socket(), out = fcntl(1, F_DUPFD_CLOEXEC, 4);
	dup2(2, 1); /* whatever is printed becomes log lines */
	if (dprintf(out, "1|%d|unix|%s|grpc|%s\n", version, socket_path, certificate) < 0)
		fatal("the handshake");
	close(out);
	loop(listening, signals);
	__builtin_unreachable();
}
