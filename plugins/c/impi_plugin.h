/*
 * libimpi-plugin: transport plugins of impi in C.
 *
 * A transport fills in a struct impi_transport and calls impi_serve. The library speaks the
 * protocol of docs/plugin-protocol.md, versions 1 and 2, with libnghttp2 and OpenSSL: the
 * handshake, the control connection with AutoMTLS, descriptor 3, and the data planes fd, ring and
 * stream.
 *
 * What holds for all of it:
 *
 * Bytes. A link is a stream of bytes in each direction, without messages: the library adds nothing
 * to what it passes on, and the pieces in which one side writes are not those in which the other
 * side reads. A network of packets or messages needs a framing of the transport's own, which
 * delivers each byte once, in order. What dial and greet exchange before that is not the job's:
 * they read no byte beyond it.
 *
 * Ends. A link ends in each direction by itself. The end that one side sends (close_write, or
 * shutdown(2) with SHUT_WR) comes behind its last byte, and the other direction goes on. A link
 * from which bytes may be missing must fail at the peer and not end: that is what reset is for.
 *
 * Results. Functions of a transport that return an int give 0, or -1 with *e filled in; without a
 * code the node is told "internal". After -1 the library uses and closes nothing that the function
 * has made: it has closed that itself, the descriptor that greet was given too.
 *
 * Memory. The transport's struct, its settings and their texts are used until the process ends.
 * code and name of an error are kept as pointers: use constants. The texts of settings that
 * configure is given stay, too. The rest of what functions are given, texts and buffers, is theirs
 * until they return: copy what is needed longer. The library copies what they return, and owns a
 * connection or listening socket from then on.
 *
 * Threads. listen, unlisten, configure and problem are called on the library's one thread: while
 * one of them runs the plugin answers nobody, and a node kills one that is silent for 15 seconds.
 * close of a link that nobody has opened is called there as well. Each dial, each greet and
 * each open link whose bytes are passed on has a thread, with a stack of 1 MiB. SIGTERM and SIGINT
 * are blocked in all of them, SIGPIPE is ignored, and no thread is ended from outside: they end by
 * themselves, or with the process.
 */
#ifndef IMPI_PLUGIN_H
#define IMPI_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this library, by the rules of semver.org, as the SDK's for Go. */
#define IMPI_PLUGIN_VERSION "1.0.0"

/* A failure, for the node and its operator. */
struct impi_error {
	/* "refused", "unreachable", "timeout", "auth", "protocol", "resource", "unsupported", "address" or
	 * "internal" */
	const char *code;
	int retryable;     /* the same call may succeed later */
	const char *name;  /* of the setting that is wrong, in configure only */
	char reason[256];  /* one sentence */
	char remedy[256];  /* what to write instead, in configure only */
};

/* impi_fail fills in *e and returns -1. */
int impi_fail(struct impi_error *e, const char *code, int retryable, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* impi_fail_errno does that for what a system call has left in errno. */
int impi_fail_errno(struct impi_error *e);

/* impi_bad_setting does it in configure. */
int impi_bad_setting(struct impi_error *e, const char *name, const char *problem, const char *remedy);

/* One attribute of the transport's config block. */
struct impi_setting {
	const char *name, *type; /* type: "string", "number" or "bool" */
	const char *doc;
	int required;            /* there is no default */
	const char *text;        /* the default, of its type */
	double number;
	int truth;
};

/* What configure is given for a setting: the member of its type. */
struct impi_value {
	const char *text;
	double number;
	int truth;
};

/*
 * A connection. Where ops is NULL, fd is a connected stream socket of the kernel with which nothing
 * is left to do: the library can hand it over (data plane fd), or passes its bytes on. It closes
 * fd. No copy of fd may be open elsewhere, or the peer does not see the end of the link.
 *
 * Otherwise the connection lives in this process, and the library passes its bytes on with ops. fd
 * is what to poll(2), and is the transport's, which closes it in close and reset: readable as long
 * as read may have something, its end and an error included, and writable as long as write may have
 * room. It is polled for reading after read gave EAGAIN, and for writing after write did; if it is
 * ready and the call gives EAGAIN again the thread runs in a circle.
 *
 * No two functions of one connection are called at once. None but close may wait: one thread serves
 * both directions. After an error only reset is called. Each connection ends with one call of close
 * or reset, which frees state and closes fd; nothing is called after it.
 */
struct impi_conn_ops {
	/*
	 * read puts up to n bytes at to, and returns how many, which may be fewer. 0 is the end of the
	 * peer's stream: it is not called again, and write goes on. n is never 0. -1 is an error, by
	 * errno: EAGAIN or EINTR, nothing now; anything else, the connection is broken.
	 */
	ssize_t (*read)(void *state, void *to, size_t n);

	/*
	 * write takes the first bytes of the n at from, and returns how many. It may take fewer, but
	 * never 0: the library calls it again with the rest, when fd is writable. What it took it has
	 * to send without being called again; the memory at from is used for other bytes once it has
	 * returned. n is never 0. -1 is as for read, and EAGAIN says that it has taken nothing.
	 */
	ssize_t (*write)(void *state, const void *from, size_t n);

	/*
	 * close_write ends the own stream behind all that write has taken. It is called once at most,
	 * and write not after it; read goes on. It returns 0, or -1 if the connection is broken.
	 */
	int (*close_write)(void *state);

	/*
	 * close ends the connection in order. What write has taken has to arrive, and its end: for that
	 * it may wait, some seconds (for its sockets the library waits for 10), unless nothing was
	 * written. The proc may have read less than what came: that is dropped.
	 */
	void (*close)(void *state);

	/*
	 * reset ends the connection at once, because a proc died or the connection broke. The peer has
	 * to see a failure, and no end. What was written need not arrive.
	 */
	void (*reset)(void *state);
};

struct impi_conn {
	int fd;
	const struct impi_conn_ops *ops;
	void *state;
};

/* Where to listen. */
struct impi_listen {
	const char *host;     /* the address of this machine that the site advertises */
	int port;             /* 0: any */
	const char *dir;      /* for sockets in the file system */
	const char *name;
	/* the address that this listener had before the process was restarted; empty: none */
	const char *reopen;
};

/* Whom to dial. */
struct impi_dial {
	const char *address;  /* from another site: check it */
	const char *from;     /* the own address to use; empty: any */
	int64_t deadline;     /* in ms of CLOCK_MONOTONIC: dial ends by then */
	/* readable once nobody waits any more: dial ends then too; do not read or close it */
	int cancel;
};

/* A transport. listen and dial must be there. */
struct impi_transport {
	const char *name;     /* [a-z][a-z0-9-]*; the file is called impi-transport-NAME */
	const char *version, *vendor;
	const char *reach;    /* "network" or "machine" */
	const struct impi_setting *settings; /* ends with one without a name; NULL: there are none */
	int in_process;       /* connections have ops, so that data plane fd is not offered */

	/*
	 * Takes all settings, in the order of the array, or fails and takes none. It may be called again
	 * while there are links. NULL: there are none.
	 */
	int (*configure)(const struct impi_value *values, struct impi_error *e);

	/*
	 * Makes a socket on which listen(2) was called, and writes the text that peers dial: printable,
	 * without spaces, with its final 0 in size bytes. The library makes the socket non-blocking, and
	 * accepts.
	 */
	int (*listen)(const struct impi_listen *at, int *fd, char *address, size_t size, struct impi_error *e);

	/* Closes fd, and what else belongs to it, such as its file, goes too. NULL: close(fd). */
	void (*unlisten)(int fd, const char *address);

	/*
	 * Makes a connection of what accept(2) has given: a socket that does not block, and that is
	 * greet's from then on. *c is all zeros. It may wait, for 10 s at most, which the library does
	 * not measure: when 64 peers are being greeted, or wait behind others that the node has not
	 * opened, no more are accepted. A failure is written into the log at level debug, and the
	 * listener goes on. NULL: the socket is the connection.
	 */
	int (*greet)(int fd, struct impi_conn *c, struct impi_error *e);

	/*
	 * Makes a connection to a listener of a peer. *c is all zeros. It may wait until the deadline
	 * has come or cancel is readable, for which impi_wait and impi_connect look, and then fails
	 * with "timeout".
	 */
	int (*dial)(const struct impi_dial *to, struct impi_conn *c, struct impi_error *e);

	/*
	 * What works less well than it could, in a clause, which stays until the next call; NULL: all is
	 * well. May be NULL itself.
	 */
	const char *(*problem)(void);
};

/* impi_serve serves the transport until its node ends the process. It does not return. */
void impi_serve(const struct impi_transport *t, int argc, char **argv) __attribute__((noreturn));

/* impi_log writes a line of the node's log: "trace", "debug", "info", "warn" or "error". */
void impi_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* impi_now is the time in ms of CLOCK_MONOTONIC. */
int64_t impi_now(void);

/* impi_wait waits for events of poll(2) until a dial's time is over or it is given up: 0 when they
 * are there, else -1 with *e. */
int impi_wait(int fd, short events, const struct impi_dial *to, struct impi_error *e);

/* impi_connect connects a socket, which it makes non-blocking, within the time of the dial. */
int impi_connect(int fd, const struct sockaddr *to, socklen_t size, const struct impi_dial *dial, struct impi_error *e);

/* impi_parse_ip reads an address without asking for names: "ip" with port -1, or "ip:port",
 * "[ip]:port". */
int impi_parse_ip(const char *text, int port, struct sockaddr_storage *to, socklen_t *size, struct impi_error *e);

/* impi_format_ip writes what impi_parse_ip reads. */
void impi_format_ip(const struct sockaddr_storage *from, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
