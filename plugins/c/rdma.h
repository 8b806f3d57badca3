/* What the files of the plane rdma share. docs/plugin-protocol.md has the control region byte by
 * byte. Each link has a struct rdma and a thread, on which all of it runs but the cache. */
#ifndef IMPI_PLUGIN_RDMA_H
#define IMPI_PLUGIN_RDMA_H

#include "internal.h"

enum {
	SLOTS = 8,              /* of each area of a control region */
	MAX_LENT = 1024,        /* regions that are lent over one link at a time */
	MAX_RAILS = 64,
	KEY_BYTES = 256,        /* of a registration, at most */
	HEADER = 32,            /* bytes before each message of a connection */
	MAX_FETCHES = 4,        /* parts of a message that are asked for before the first has come */
	MAX_TAKEN = 512,        /* messages of which the peer was not told yet that they were taken */
};
#define MAX_LENGTH ((uint64_t)1 << 30)
#define MAX_REGION ((uint64_t)1 << 46)

/* What the proc submits, and what the plugin completes. */
enum { SEND_SLOT = 1, SEND_LOAN, FREE_SLOT, READ_PART, MESSAGE_DONE, PROC_ENDED, FORGET };
enum { SLOT_SENT = 1, LOAN_SENT, ARRIVED, OFFERED, WAS_READ, PEER_ENDED };

/* An entry of a ring, as it is in memory. */
struct entry {
	uint32_t kind, region;
	uint64_t number, message, at;
	uint32_t generation, slot;
	uint64_t offset, length, unused;
};

/* A region that was read from the region channel. Its descriptor is owned by who has this. */
struct lent {
	uint32_t number, generation;
	uint64_t size;
	int fd;
};

/* The plugin's side of a control region. */
struct port {
	uint8_t *mem;
	size_t size, slot_size;
	int file, bell, channel;       /* file is -1 once it was taken */
	uint64_t in_head, in_tail, out_head, out_tail;
	uint64_t sends, gives, frees;  /* messages in slots; slots for receiving that were filled, and given back */
	int left;                      /* the region channel has ended: the proc has closed the link, or died */
	struct lent *lent;             /* that nobody has taken */
	size_t lent_n, lent_cap;
};

/* rdma_port.c. Functions that fail have said why in the log, and the link ends. */
int port_make(struct port *p, size_t slot_size, int fds[3]);
void port_close(struct port *p);
int port_next(struct port *p, struct entry *e);     /* 1, 0: nothing, -1 */
int port_complete(struct port *p, struct entry e);  /* 0, -1 */
int port_arrive(struct port *p, size_t n);
void port_deaf(struct port *p);
int port_left(struct port *p);
int port_arm(struct port *p);                       /* 1: there is something to do, 0, -1 */
uint8_t *port_send_slot(struct port *p, uint32_t slot);
uint8_t *port_receive_slot(struct port *p);         /* NULL: the proc has all */
int port_stage_at(struct port *p, const struct entry *e, uint64_t *at); /* 0: it is not in one slot */

/* rdma_lent.c */
int port_look(struct port *p);                      /* 0, -1 */
int port_lent(struct port *p, struct lent *l);      /* 1, 0: nothing, -1 */
void port_forsake(struct port *p);                  /* closes what nobody has taken */

/* rdma_cache.c: memory that is registered, for all links. */
struct file;
struct use {
	int registered;          /* 0: it cannot be, only mem is there */
	void *registration;
	const uint8_t *key;
	size_t key_size;
	uint8_t *mem;
};
struct file *cache_lend(int fd, uint64_t size);     /* owns fd; NULL: it has failed */
void cache_hold(struct file *f);                    /* for one more call of cache_reclaim */
void cache_reclaim(struct file *f);
int cache_use(struct file *f, struct use *u);       /* 0, -1: it cannot be mapped */
void cache_unuse(struct file *f);
uint64_t file_size(const struct file *f);

/* rdma_wire.c: what the two sides of a connection send each other, as package fabric of the SDK. */
enum { HELLO = 1, EAGER, OFFER, TAKEN, ENDED_ALL, MORE, ASKS, PIECE };
enum { ANSWERS_ASKS = 1 }; /* a bit of a hello's offset */
struct header {
	uint8_t kind;
	uint16_t key;            /* bytes of the key that follows */
	uint32_t allowed;        /* further messages that may be sent to the sender of this */
	uint64_t number, length, offset;
};
void header_put(const struct header *h, uint8_t to[HEADER]);
int header_parse(struct header *h, const uint8_t from[HEADER], size_t n);

/* What the proc has submitted. The memory of a loan is held until it is sent. */
struct submission {
	struct entry e;
	struct file *from;
	uint8_t *copied;         /* of a loan that cannot be offered: the rest that is to be copied */
	uint64_t rest;
	uint64_t sent;           /* bytes of a message in a slot */
};

/* A message that was offered to the peer. */
struct loan {
	uint64_t message;        /* its number for the peer; 0: it was copied */
	uint64_t number;         /* its number for the proc */
	struct file *file;
	uint8_t *data;
	uint64_t length;
};

/* A message that the peer has offered. */
struct offered {
	uint64_t number;         /* 0: the place is vacant */
	uint64_t offset, length;
	uint8_t key[KEY_BYTES];
	size_t key_size;
};

/* A read of the proc. */
struct read {
	int used;
	uint64_t number, message;
	struct file *into;
	void *local;
	uint8_t key[KEY_BYTES];
	size_t key_size;
	int parts;               /* that are not complete */
	uint8_t *mem;            /* of one that is fetched, and where in the message it begins */
	uint64_t size, at, asked, copied;
};

/* What goes by one rail of a read. */
struct part {
	enum { VACANT, WANTED, UNDER_WAY } state;
	struct read *read;
	int rail;
	uint8_t *into;
	uint64_t size, from, op;
};

/* A part of a message that the peer has asked for. */
struct owing {
	uint64_t message, at;
	uint8_t *data;
	uint64_t length;
};

struct region {
	uint32_t number, generation;
	struct file *file;
};

struct rdma {
	struct port port;
	struct impi_conn conn;
	const struct impi_fabric_ops *ops;
	int announced;           /* that the proc has gone, for Drain */

	/* Outward, rdma_send.c. */
	int begun, over;         /* hello was sent; the end */
	struct submission queue[2 * SLOTS + 1];
	int queued;
	uint64_t taken[MAX_TAKEN]; /* of which the peer is to be told */
	int taken_n;
	uint32_t allowed, most;  /* messages that the peer has room for, and can have */
	uint32_t owed;           /* by how many its own allowance is to grow */
	size_t peer_slot;        /* bytes of a message for the peer; 0: its hello has not come */
	int answers;             /* it answers asks */
	uint64_t offers;
	struct loan loans[SLOTS];
	int loans_n;
	struct owing wanted[MAX_FETCHES];
	int wanted_n;

	/* Inward, rdma_receive.c. */
	uint32_t given;          /* messages that the peer may still send */
	struct offered open[SLOTS];
	uint64_t last_offer;
	int peer_over, conn_ended;
	uint8_t keys[KEY_BYTES]; /* the first bytes behind a header: the proc cannot change them */
	uint8_t *scratch;        /* for parts that are fetched */

	/* Reads, rdma_read.c. */
	struct region *regions;  /* by number */
	size_t regions_n, regions_cap;
	struct file *own;        /* the control region, once it is needed */
	struct read reads[SLOTS + 1];
	struct read *slow[SLOTS + 1]; /* that are fetched, oldest first */
	int slow_n;
	struct part *parts;
	int *queue_of_parts;     /* WANTED, oldest first */
	int parts_n, parts_wanted, parts_under_way;
	uint64_t last_op;
	int rails, rail;
	uint8_t rail_down[MAX_RAILS];
};

/* Why a link ends: somebody breaks the rules (a warning), or is gone. They return -1. */
int rules_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
int rdma_lost(const char *format, ...) __attribute__((format(printf, 1, 2)));

int rdma_post(struct rdma *x, struct header h, const void *data, size_t n); /* 1, 0: no room, -1 */
int rdma_submissions(struct rdma *x); /* these give 1 if they have done something, 0, or -1 */
int rdma_send(struct rdma *x);
int rdma_receive(struct rdma *x);
int rdma_completions(struct rdma *x);
int rdma_issue(struct rdma *x);
int rdma_ask(struct rdma *x);
size_t piece_size(const struct rdma *x); /* bytes that a message with data can have, in both directions */
int rdma_wanted(struct rdma *x, const struct header *h);
int rdma_peer_took(struct rdma *x, const struct header *h);
int rdma_fetched(struct rdma *x, const struct header *h);
int rdma_begin_read(struct rdma *x, const struct entry *e);
int rdma_forget(struct rdma *x, const struct entry *e);
int rdma_is_read(const struct rdma *x, uint64_t message);
int rdma_reads(const struct rdma *x); /* how many of the proc are under way */
struct file *rdma_find(struct rdma *x, const struct entry *e); /* NULL: the proc breaks the rules */
struct offered *rdma_open(struct rdma *x, uint64_t number);
void rdma_release_sends(struct rdma *x);
void rdma_release_reads(struct rdma *x);

#endif
