#ifndef IMPI_NATIVE_LIBRARY_H
#define IMPI_NATIVE_LIBRARY_H

#include "shim/shim.h"

enum impi_native_phase {
	IMPI_NATIVE_BARRIER = 1, IMPI_NATIVE_BCAST, IMPI_NATIVE_REDUCE, IMPI_NATIVE_ALLREDUCE,
	IMPI_NATIVE_GATHER, IMPI_NATIVE_ALLGATHER, IMPI_NATIVE_ALLTOALL
};

struct impi_native_phase_args { /* struct phase of cmd/libmpi's fastpath.h */
	int32_t comm, phase, type, op, root;
	int64_t n; /* bytes, or elements of reductions */
	uintptr_t in, out;
};

/* Finds the table of functions of a shim; the result is why that failed, or NULL. */
const char *impi_native_load(const char *path, const struct impi_native **fn);

/* The functions of the table, for Go, which cannot call pointers to functions. Buffers are numbers: they are
 * pinned, or not Go's, and Go would look for pointers in all of what a buffer is a part of. */
int impi_native_version(const struct impi_native *, char *text, int room, int *standard);
int impi_native_describe(const struct impi_native *, int error, char *text, int room);
int impi_native_init(const struct impi_native *, int threads, int *provided, int *rank, int *size);
int impi_native_finalize(const struct impi_native *);
int impi_native_send(const struct impi_native *, int to, int tag, uintptr_t buf, int64_t bytes, int32_t *number);
struct impi_shorts; /* of which the poll takes some, too; or NULL */
int impi_native_poll(const struct impi_native *, struct impi_shorts *, void *buf, int64_t room, struct impi_native_message *m);
int impi_native_recv(const struct impi_native *, int32_t held, uintptr_t buf, int64_t bytes, int32_t *number);
int impi_native_open(const struct impi_native *, const int *ranks, int count, int tag, int32_t *comm);
int impi_native_close(const struct impi_native *, int32_t comm);
/* A phase, whose number is that of enum impi_native_phase. */
int impi_native_begin(const struct impi_native *, const struct impi_native_phase_args *, int32_t *number);
void impi_native_fail(const struct impi_native *, int kind);
int impi_native_test(const struct impi_native *, int32_t number);

/* Short messages, by C and Go: see shorts.go, whose memory this is. */
enum { IMPI_SHORT_LAG = 32 }; /* taken messages of which a silent proc tells the sender */
enum { IMPI_SHORT_BOXES = 64, IMPI_SHORT_BOX = 128, IMPI_SHORT_ENVELOPE = 32, IMPI_PIECE_LEAST = 4000, IMPI_PIECE_MOST = 8000, IMPI_SHORT_PIECES = 5, IMPI_SHORT_LEAST = 2 * IMPI_PIECE_LEAST, IMPI_SHORT_MOST = IMPI_SHORT_PIECES * IMPI_PIECE_LEAST, IMPI_SHORT_PLACE = 4096 * IMPI_SHORT_PIECES, IMPI_SHORT_AREA = IMPI_SHORT_PLACE * IMPI_SHORT_BOXES };

/* A message: struct place of cmd/libmpi's fastpath.h, but for mark. It travels as it stands, with its data behind
 * it and its form in the second byte, before which is what was taken, modulo 256. One whose envelope is that of
 * the message before it leaves out all but these two bytes: a message of 8 bytes then takes no more of a cache
 * line than it takes in that MPI alone. */
enum impi_short_form { IMPI_SHORT_WHOLE, IMPI_SHORT_ALIKE, IMPI_SHORT_TAKEN /* it only says what was taken */, IMPI_SHORT_APART, IMPI_SHORT_APART_ALIKE, IMPI_SHORT_LONG_ALIKE, IMPI_SHORT_MORE, IMPI_SHORT_FORM_SIZE = 2 };

/* A message of more bytes than a piece of that MPI has (struct impi_native), or IMPI_PIECE_MOST, goes in pieces: the first is in form WHOLE, or LONG_ALIKE, which is
 * ALIKE with the message's length behind the form; the others are MORE, and nothing else comes before them. So the
 * library sends each at once, which for some more bytes takes less time than having the receiver fetch them.
 *
 * Messages of up to IMPI_SHORT_LEAST bytes are sent so, and where that MPI wants it those of up to IMPI_SHORT_MOST. The
 * data of longer ones come apart, by a long message of that MPI, straight from
 * the memory of the sender to that of the receiver. It is in form WHOLE or ALIKE but for its form, ALIKE with its
 * length behind the form. Its box says that its data are where none can be. */
enum { IMPI_LONG_MOST = 4 << 20, IMPI_LENGTH_SIZE = 4 };
#define IMPI_IS_APART UINT32_MAX
struct impi_short {
	uint32_t taken; /* how many of the receiver's messages its sender has taken */
	uint32_t at;    /* so many bytes of the stream come before it */
	uint64_t context;
	int32_t rank, tag;
	uint32_t bytes, kind;
};

/* What Go sees of all of them; the rest is behind it. */
struct impi_shorts {
	uint64_t come; /* messages that were put into boxes */
	int32_t spare; /* places for messages to send that are free */
	int32_t error; /* of the library: it is of no use any more */
};

/* The messages to and from one rank. */
struct impi_short_boxes {
	_Atomic uint64_t read;  /* of those that were sent, how many the other one has taken */
	_Atomic uint64_t told;  /* of those that have come, how many were taken, now and then */
	_Atomic uint64_t bytes; /* of the stream that have come */
	_Atomic uint32_t sleeps;
	int32_t rank;
	uint64_t come;          /* messages */
	uint32_t said;          /* how many taken ones the other one knows of */
	uint32_t closed;        /* what comes is dropped */
	struct impi_shorts *all;
	uint32_t sent;          /* messages */
	uint8_t knows[2], unused[2];      /* whether there is a last one */
	uint32_t rest, rest_at;           /* bytes of the next message that are still to come, and its place in the stream */
	uint64_t base;                    /* messages that had come when all of them had been taken */
	struct impi_short last[2];        /* that was sent, and that has come */
	char in[IMPI_SHORT_BOXES][IMPI_SHORT_BOX];
	char data[IMPI_SHORT_AREA];
};

/* Begins them; NULL: there is no memory, or the library has failed. */
struct impi_shorts *impi_shorts_begin(const struct impi_native *, int ranks);
int impi_shorts_end(struct impi_shorts *);
/* Takes at most so many messages, of anybody, into the boxes. The result is 0, or an error of the library, for
 * ever; IMPI_SHORT_WRONG: a message is none of ours; IMPI_SHORT_MEMORY: there is none to drop a message. */
enum { IMPI_SHORT_WRONG = -2, IMPI_SHORT_MEMORY = -3 };
int impi_shorts_pump(struct impi_shorts *, int most);
void impi_shorts_attach(struct impi_shorts *, struct impi_short_boxes *);
/* Sends a message, with what was taken so far, and returns 0 if it cannot now. */
int impi_shorts_put(struct impi_short_boxes *, struct impi_short *, uintptr_t data);
/* Is told how many messages were taken, and tells the other one now and then. */
void impi_shorts_took(struct impi_short_boxes *, uint64_t taken);
/* How many messages the library is still sending, or receiving to drop them. */
int impi_shorts_sending(struct impi_shorts *);
/* Sends a message of more than IMPI_SHORT_LEAST bytes, whose data mostly come apart, and returns 0 if it cannot now. number is that of the request, NONE if it
 * is done; the data are the library's until then. */
int impi_shorts_lend(struct impi_short_boxes *, struct impi_short *, uintptr_t data, int32_t *number);
/* Begins to receive the data of the message that is taken next, all of which have a place there. The result is as
 * that of pump. */
int impi_shorts_fetch(struct impi_short_boxes *, uintptr_t to, uint64_t bytes, int32_t *number);
/* Drops what comes from now on, and data that come apart of messages from the one with that number on. */
int impi_shorts_close(struct impi_short_boxes *, uint64_t taken);
/* Drops the next data that come apart. */
int impi_shorts_drop(struct impi_short_boxes *, uint64_t bytes);
/* One side of round trips of 8 bytes, by the calls by which C programs make them. Before them it has taken so
 * many messages, and so many bytes of the two streams come before theirs. The result is as that of pump. */
struct impi_short_trips {
	uint64_t taken;
	uint32_t out_at, in_at;
	int32_t first, turns;
};
int impi_shorts_trips(struct impi_short_boxes *, struct impi_short_trips *);

#endif
