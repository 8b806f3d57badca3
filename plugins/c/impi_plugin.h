/*
 * libimpi-plugin: transport plugins of impi in C.
 *
 * A transport fills in a struct impi_transport and calls impi_serve. The library speaks the protocol
 * of docs/plugin-protocol.md, versions 1 and 2, with libnghttp2 and OpenSSL: the handshake, the
 * control connection with AutoMTLS, descriptor 3, and the data planes fd, ring and stream.
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
	const char *code;  /* refused, unreachable, timeout, auth, protocol, resource, unsupported, address or internal */
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
 * A connection. Where ops is NULL, fd is a connected stream socket of the kernel with which nothing is
 * left to do: the library can hand it over (data plane fd), or passes its bytes on.
 *
 * Otherwise the connection lives in this process, and the library passes its bytes on with ops. fd is
 * what to poll(2): readable when read may have something, writable when write may have room.
 */
struct impi_conn_ops {
	/*
	 * They return a number of bytes, or -1 with errno; EAGAIN: none now. read returns 0 at the end.
	 * write takes what it can send now: what it keeps it has to send without being called again.
	 */
	ssize_t (*read)(void *state, void *to, size_t n);
	ssize_t (*write)(void *state, const void *from, size_t n);
	int (*close_write)(void *state); /* ends the stream behind what was written; -1: it broke */
	void (*close)(void *state);      /* what write has taken has to arrive */
	void (*reset)(void *state);      /* the peer has to see a failure, and no end; frees like close */
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
	const char *reopen;   /* the address that this listener had before the process was restarted; empty: none */
};

/* Whom to dial. */
struct impi_dial {
	const char *address;  /* from another site: check it */
	const char *from;     /* the own address to use; empty: any */
	int64_t deadline;     /* in ms of CLOCK_MONOTONIC: dial ends by then */
	int cancel;           /* readable once nobody waits any more: dial ends then too */
};

/*
 * A transport. listen and dial must be there. listen, configure and problem run on the library's
 * thread and must not wait; dial and greet have a thread of their own.
 */
struct impi_transport {
	const char *name;     /* [a-z][a-z0-9-]*; the file is called impi-transport-NAME */
	const char *version, *vendor;
	const char *reach;    /* "network" or "machine" */
	const struct impi_setting *settings; /* ends with one without a name; NULL: there are none */
	int in_process;       /* connections have ops, so that data plane fd is not offered */

	/* Takes all settings, in the order of the array, or fails and takes none. NULL: there are none. */
	int (*configure)(const struct impi_value *values, struct impi_error *e);

	/* Makes a listening socket, and the text that peers dial: printable, without spaces. */
	int (*listen)(const struct impi_listen *at, int *fd, char *address, size_t size, struct impi_error *e);

	/* Closes it: what else belongs to it, such as its file, goes too. NULL: close(fd). */
	void (*unlisten)(int fd, const char *address);

	/* Makes a connection of what accept(2) has given; it has 10 s. NULL: the socket is the connection. */
	int (*greet)(int fd, struct impi_conn *c, struct impi_error *e);

	int (*dial)(const struct impi_dial *to, struct impi_conn *c, struct impi_error *e);

	/* What works less well than it could, in a clause; NULL: all is well. May be NULL itself. */
	const char *(*problem)(void);
};

/* impi_serve serves the transport until its node ends the process. It does not return. */
void impi_serve(const struct impi_transport *t, int argc, char **argv) __attribute__((noreturn));

/* impi_log writes a line of the node's log: "trace", "debug", "info", "warn" or "error". */
void impi_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* impi_now is the time in ms of CLOCK_MONOTONIC. */
int64_t impi_now(void);

/* impi_wait waits for events of poll(2) until a dial's time is over or it is given up: 0 when they are
 * there, else -1 with *e. */
int impi_wait(int fd, short events, const struct impi_dial *to, struct impi_error *e);

/* impi_connect connects a socket, which it makes non-blocking, within the time of the dial. */
int impi_connect(int fd, const struct sockaddr *to, socklen_t size, const struct impi_dial *dial, struct impi_error *e);

/* impi_parse_ip reads an address without asking for names: "ip" with port -1, or "ip:port", "[ip]:port". */
int impi_parse_ip(const char *text, int port, struct sockaddr_storage *to, socklen_t *size, struct impi_error *e);

/* impi_format_ip writes what impi_parse_ip reads. */
void impi_format_ip(const struct sockaddr_storage *from, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
