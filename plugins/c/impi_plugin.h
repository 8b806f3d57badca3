/*
 * libimpi-plugin: transport plugins of impi in C.
 *
 * A transport fills in a struct impi_transport and calls impi_serve. The library speaks the
 * protocol of docs/plugin-protocol.md, versions 1 and 2, with libnghttp2 and OpenSSL: the
 * handshake, the control connection with AutoMTLS, descriptor 3, and the data planes fd, ring,
 * stream and rdma.
 *
 * What holds for all of it:
 *
 * Bytes. A link is a stream of bytes in each direction, without messages: the library adds nothing
 * to what it passes on, and the pieces in which one side writes are not those in which the other
 * side reads. A network of packets or messages needs a framing of the transport's own, which
 * delivers each byte once, in order, or hardware that reads remote memory: struct impi_fabric_ops.
 * What dial and greet exchange before that is not the job's: they read no byte beyond it.
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
 * each open link whose bytes are passed on has a thread, with a stack of 1 MiB; register_memory and
 * unregister_memory are called on those, one at a time. SIGTERM and SIGINT
 * are blocked in all of them, SIGPIPE is ignored, and no thread is ended from outside: they end by
 * themselves, or with the process.
 */
#ifndef IMPI_PLUGIN_H
#define IMPI_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this library, by the rules of semver.org, as the SDK's for Go. */
#define IMPI_PLUGIN_VERSION "1.1.0"

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

/* Memory of a proc, or of the plugin for it. All of a file in memory is mapped. Both belong to the
 * library, and are there until unregister_memory has returned. */
struct impi_memory {
	int fd;              /* of the file, for hardware that takes descriptors (dma-buf, memfd) */
	void *mem;
	size_t size;         /* bytes */
};

/* A read of memory that the peer has registered. */
struct impi_fabric_read {
	uint64_t op;         /* its number, which completed gives back: never one that was used before */
	int rail;            /* 0 to rails - 1 */
	void *into;          /* inside of memory that is registered here */
	size_t size;         /* bytes, 1 to 2^30 */
	void *local;         /* what register_memory has made of that memory */
	const void *key;     /* what register_memory of the peer has written: from there, so check it */
	size_t key_size;
	uint64_t from;       /* offset in the peer's memory, in bytes: also not checked */
};

/* The end of a read. */
struct impi_fabric_done {
	uint64_t op;
	int failed;          /* nothing is known of the memory: the read is tried again on another rail */
};

/* What recv gives at the end of the peer's connection. */
enum { IMPI_ENDED = -2 };

/*
 * A connection of a fabric, such as InfiniBand or what libfabric has: short messages in both
 * directions, reliable and in order, and reads of memory that the peer has registered. The library
 * makes links of it by data plane rdma: long messages are read by the receiver's plugin from the
 * memory of one proc straight into that of the other, the rest goes through memory that plugin and
 * proc share. Both ends of a connection have plugins with libimpi-plugin, or with package fabric of
 * the SDK for Go, whose messages are the same.
 *
 * The functions of one connection are called on one thread, one at a time, and none but close may
 * wait: send, recv, read and completed are how a queue is polled. An error (-1, by errno) is final:
 * only reset is called after it. Each connection ends with one call of close or reset, which frees
 * state.
 */
struct impi_fabric_ops {
	/*
	 * send sends the bytes of all n pieces, at most message, as one message: 1; or takes nothing
	 * since there is no room now: 0. The memory is used for other bytes once it has returned.
	 */
	int (*send)(void *state, const struct iovec *pieces, int n);

	/*
	 * recv copies the next message into the n pieces, one behind the other, and returns its length;
	 * 0 if none has come. A message that is longer than the pieces is an error. IMPI_ENDED: the peer
	 * has called close, and all that it has sent before was returned. The first piece has 32 bytes,
	 * which only this process sees; a proc can change those of the last piece at any time.
	 */
	ssize_t (*recv)(void *state, const struct iovec *pieces, int n);

	/*
	 * read begins a read: 1; or 0 since there is no room now. *r and the key are the library's and are
	 * used for other things once it has returned, local and the memory are there until the end of the
	 * read. A read that cannot be done, as its key is not valid or what it wants is not inside, is one
	 * that has failed, and no error of the connection.
	 */
	int (*read)(void *state, const struct impi_fabric_read *r);

	/*
	 * completed writes at most n reads that have ended since the last call, in any order, and returns
	 * how many. All bytes of a read that has not failed are there by then, and it touches the memory no
	 * more, whether it has failed or not.
	 */
	int (*completed)(void *state, struct impi_fabric_done *done, int n);

	/*
	 * arm is called before the thread sleeps on fd of the connection. 1: it must not, as there is
	 * something to do. After 0 fd has to become readable (poll(2), POLLIN) when recv or completed may
	 * have something, or send or read may have room after they had none.
	 */
	int (*arm)(void *state);

	/*
	 * close ends the connection in order: what send has taken still arrives, for which it may wait
	 * some seconds, and then the peer's recv gives IMPI_ENDED. It closes fd. No read is under way.
	 */
	void (*close)(void *state);

	/*
	 * reset ends the connection at once: the peer's recv has to fail, and not to give IMPI_ENDED. When
	 * it returns, no read is under way any more, nor will one touch memory: that is the proc's again.
	 */
	void (*reset)(void *state);
};

struct impi_conn {
	int fd;
	const struct impi_conn_ops *ops;
	void *state;
	const struct impi_fabric_ops *fabric; /* instead of ops, in a transport with register_memory */
	size_t message;      /* of a connection of a fabric: bytes of a message, 2048 at least */
	int rails;           /* ways by which it can read, 1 to 64; long reads are divided among them */
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

	/*
	 * Both are there if connections are those of a fabric, and then all are. register_memory makes
	 * memory usable for reads in both directions, puts what it has made at *registration and what the
	 * peer's read needs at key, which has room for *key_size bytes, 256; the key's length goes to
	 * *key_size. It gives 0, or -1 if the hardware refuses: then the library closes a registration
	 * that nothing uses and calls it again. If none is left, the bytes are copied and go by send, and
	 * the call is repeated for later messages, more and more seldom. So it is fast, and has room for
	 * what is used at a time: of each connection 8 messages that are sent, and 9 that are received.
	 */
	int (*register_memory)(const struct impi_memory *m, void **registration, void *key, size_t *key_size);

	/* Ends a registration: reads by its key fail from then on. Nothing here uses it. */
	void (*unregister_memory)(void *registration);
};

/*
 * Registering memory takes long, so that the library keeps memory registered while procs lend it,
 * one registration for all links. When more is registered than so many bytes, it closes those that no
 * message uses; a single one may be larger. Without a call that is 2^30. It may be called at any
 * time, in configure for example.
 */
void impi_keep_registered(uint64_t bytes);

/* What was registered, since the process began. It is in the plugin's statistics as well. */
struct impi_registrations {
	uint64_t bytes;      /* registered now */
	uint64_t made;
	uint64_t used_again; /* messages and reads whose memory was registered already */
	uint64_t evicted;    /* registrations that were closed to make room */
	uint64_t refused;    /* messages and reads whose memory could not be registered */
};

/* impi_count_registrations may be called on any thread, but not in register_memory and
 * unregister_memory. The same holds for impi_keep_registered. */
void impi_count_registrations(struct impi_registrations *to);

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
