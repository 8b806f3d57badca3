#ifndef IMPI_NATIVE_LIBRARY_H
#define IMPI_NATIVE_LIBRARY_H

#include "carried.h"
#include "shim/shim.h"

/* Finds the table of functions of a shim; the result is why that failed, or NULL. */
const char *impi_native_load(const char *path, const struct impi_native **fn);

/* The functions of the table, for Go, which cannot call pointers to functions. Buffers are numbers:
 * they are pinned, or not Go's, and Go would look for pointers in all of what a buffer is a part
 * of. */
int impi_native_version(const struct impi_native *, char *text, int room, int *standard);
int impi_native_describe(const struct impi_native *, int error, char *text, int room);
int impi_native_init(const struct impi_native *, int threads, int *provided, int *rank, int *size);
int impi_native_finalize(const struct impi_native *);
int impi_native_send(const struct impi_native *, int to, int tag, uintptr_t buf, int64_t bytes, int32_t *number);
/* The poll also takes some short messages into their boxes, unless the impi_shorts is NULL. */
struct impi_shorts;
int impi_native_poll(const struct impi_native *, struct impi_shorts *, void *buf, int64_t room, struct impi_native_message *m);
int impi_native_recv(const struct impi_native *, int32_t held, uintptr_t buf, int64_t bytes, int32_t *number);
int impi_native_open(const struct impi_native *, const int *ranks, int count, int tag, int32_t *comm);
int impi_native_close(const struct impi_native *, int32_t comm);
/* A phase. */
int impi_native_begin(const struct impi_native *, const struct impi_native_phase_args *, int32_t *number);
void impi_native_fail(const struct impi_native *, int kind);
int impi_native_test(const struct impi_native *, int32_t number);

/* Short messages, by C and Go: see shorts.go, and shortbox, which has their memory. */
/* Bytes of the longest piece of a message, and of the longest message that goes in pieces. */
enum { IMPI_PIECE_MOST = 8000, IMPI_SHORT_MOST = IMPI_SHORT_PIECES * IMPI_PIECE_LEAST };

/* How a short message travels. Its first byte is how many messages its sender has taken, modulo
 * 256, and its second byte is the form. In form WHOLE the rest of struct impi_short follows, then
 * the data. ALIKE is the form of a message whose envelope equals that of the one before it: its
 * data follow the two bytes, so that a message of 8 bytes takes no more of a cache line than it
 * takes in that MPI alone. TAKEN is no message, but two bytes that only say what was taken. */
enum impi_short_form {
	IMPI_SHORT_WHOLE, IMPI_SHORT_ALIKE, IMPI_SHORT_TAKEN, IMPI_SHORT_APART, IMPI_SHORT_APART_ALIKE,
	IMPI_SHORT_LONG_ALIKE, IMPI_SHORT_MORE,
	IMPI_SHORT_FORM_SIZE = 2
};

/* Messages that do not fit into one piece. That MPI says how long a piece is, from IMPI_PIECE_LEAST
 * to IMPI_PIECE_MOST bytes, and which is the longest message that goes in pieces, from
 * IMPI_SHORT_LEAST to IMPI_SHORT_MOST bytes (struct impi_native).
 *
 * In pieces: the first is in form WHOLE, or in LONG_ALIKE, which is ALIKE with the length of the
 * message between the form and the data. The others are in form MORE, with their data behind the
 * form. The library sends each piece at once, which for messages not much longer than a piece takes
 * less time than having the receiver fetch them.
 *
 * Longer ones apart: a message in form APART (struct impi_short alone), or APART_ALIKE (the form
 * and the length), announces the data. They are a long message of that MPI, straight from the
 * memory of the sender to that of the receiver. In the box of such a message IMPI_IS_APART stands
 * for the place of the data. */
enum { IMPI_LENGTH_SIZE = 4 };

/* All short messages of a proc, as far as Go uses it: the C code has more fields behind these. */
struct impi_shorts {
	uint64_t come; /* messages that were put into boxes */
	int32_t spare; /* places for messages to send that are free */
	int32_t error; /* of the library: it is of no use any more */
};

/* Begins short messages with the ranks of a site; NULL: there is no memory, or the library has
 * failed. */
struct impi_shorts *impi_shorts_begin(const struct impi_native *, int ranks);
int impi_shorts_end(struct impi_shorts *);
/* Takes at most so many messages, of anybody, into the boxes. The result is 0, or an error of the
 * library, for ever; IMPI_SHORT_WRONG: a message is none of ours; IMPI_SHORT_MEMORY: there is none
 * to drop a message. */
enum { IMPI_SHORT_WRONG = -2, IMPI_SHORT_MEMORY = -3 };
int impi_shorts_pump(struct impi_shorts *, int most);
void impi_shorts_attach(struct impi_shorts *, struct impi_short_boxes *);
/* Sends a message, with what was taken so far, and returns 0 if it cannot now. */
int impi_shorts_put(struct impi_short_boxes *, struct impi_short *, uintptr_t data);
/* Is told how many messages were taken, and tells the other one now and then. */
void impi_shorts_took(struct impi_short_boxes *, uint64_t taken);
/* How many messages the library is still sending, or receiving to drop them. */
int impi_shorts_sending(struct impi_shorts *);
/* Sends a message of more than IMPI_SHORT_LEAST bytes, whose data mostly come apart, and returns 0
 * if it cannot now. number is that of the request, NONE if it is done; the data are the library's
 * until then. */
int impi_shorts_lend(struct impi_short_boxes *, struct impi_short *, uintptr_t data, int32_t *number);
/* Begins to receive the data of the message that is taken next, all of which have a place there.
 * The result is as that of pump. */
int impi_shorts_fetch(struct impi_short_boxes *, uintptr_t to, uint64_t bytes, int32_t *number);
/* Drops what comes from now on, and data that come apart of messages from the one with that number
 * on. */
int impi_shorts_close(struct impi_short_boxes *, uint64_t taken);
/* Drops the next data that come apart. */
int impi_shorts_drop(struct impi_short_boxes *, uint64_t bytes);
/* One side of round trips of 8 bytes, by the calls by which C programs make them. Before them it
 * has taken so many messages, and so many bytes of the two streams come before theirs. The result
 * is as that of pump. */
struct impi_short_trips {
	uint64_t taken;
	uint32_t out_at, in_at;
	int32_t first, turns;
};
int impi_shorts_trips(struct impi_short_boxes *, struct impi_short_trips *);

#endif
