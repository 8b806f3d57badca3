/* What our library calls of a site's own MPI: a table of functions without types of that MPI.
 * shim.c fills it in and is compiled by that MPI's mpicc; our library finds it by the name
 * impi_native. */
#ifndef IMPI_NATIVE_H
#define IMPI_NATIVE_H

#include <stdint.h>

#define IMPI_NATIVE_ABI 6

/* Results of all functions: 0, or NONE, or a number > 0 whose lowest bits are the kind of an error.
 * That MPI's class is above them, of which only describe knows the meaning; 0: it has seen no
 * error. */
enum { IMPI_NATIVE_NONE = -1, /* nothing has come; not done yet */ IMPI_NATIVE_KIND_BITS = 4 };
enum impi_native_error {
	IMPI_NATIVE_LONGER = 1, /* more bytes have come than were expected */
	IMPI_NATIVE_SHORTER, IMPI_NATIVE_COUNT, IMPI_NATIVE_NO_MEMORY, IMPI_NATIVE_OTHER
};

/* Datatypes and operations of the phases of collectives. */
enum impi_native_type {
	IMPI_NATIVE_BYTE, IMPI_NATIVE_INT8, IMPI_NATIVE_UINT8, IMPI_NATIVE_INT16, IMPI_NATIVE_UINT16,
	IMPI_NATIVE_INT32, IMPI_NATIVE_UINT32, IMPI_NATIVE_INT64, IMPI_NATIVE_UINT64,
	IMPI_NATIVE_FLOAT, IMPI_NATIVE_DOUBLE, IMPI_NATIVE_FLOAT_COMPLEX, IMPI_NATIVE_DOUBLE_COMPLEX, IMPI_NATIVE_BOOL,
	/* C's structs of a value and an int */
	IMPI_NATIVE_SHORT_INT, IMPI_NATIVE_INT_INT, IMPI_NATIVE_LONG_INT, IMPI_NATIVE_FLOAT_INT, IMPI_NATIVE_DOUBLE_INT,
	IMPI_NATIVE_TYPES
};
enum impi_native_op {
	IMPI_NATIVE_SUM, IMPI_NATIVE_PROD, IMPI_NATIVE_MIN, IMPI_NATIVE_MAX, IMPI_NATIVE_BAND,
	IMPI_NATIVE_BOR, IMPI_NATIVE_BXOR, IMPI_NATIVE_LAND, IMPI_NATIVE_LOR, IMPI_NATIVE_LXOR,
	IMPI_NATIVE_MINLOC, IMPI_NATIVE_MAXLOC, IMPI_NATIVE_OPS
};

/* Levels of thread support, as in MPI. */
enum { IMPI_NATIVE_SINGLE, IMPI_NATIVE_FUNNELED, IMPI_NATIVE_SERIALIZED, IMPI_NATIVE_MULTIPLE };

/* Families of MPIs: the second one has MPICH and all that keep to its ABI. */
enum { IMPI_NATIVE_ANY, IMPI_NATIVE_OPEN_MPI, IMPI_NATIVE_MPICH };

/* A message that has come: see poll. */
struct impi_native_message {
	int32_t source, tag;
	int64_t bytes;
	int32_t held; /* number for recv, of a message that did not fit into the buffer; else NONE */
};

struct impi_native {
	uint32_t abi, size; /* IMPI_NATIVE_ABI, and the bytes of this struct */

	/* What the shim was compiled for: MPIs whose handles and constants are alike, and the version
	 * of the standard. */
	uint32_t family, standard;

	/* version describes the library in one line, before init too. standard is the version that it
	 * has. */
	int (*version)(char *text, int room, int *standard);
	/* init begins, with a level of threads that is wanted; rank and size are of its world. */
	int (*init)(int threads, int *provided, int *rank, int *size);
	int (*finalize)(void);
	int (*describe)(int error, char *text, int room);

	/* send begins a message to a rank of the world. number is that of the request, NONE if it is
	 * done already. buf is the library's until then. */
	int (*send)(int to, int tag, const void *buf, int64_t bytes, int32_t *number);
	/* poll looks for one message of anybody. One that fits into buf is received there; of one that
	 * does not only its envelope is taken, and recv receives it. NONE: there is none. */
	int (*poll)(void *buf, int64_t room, struct impi_native_message *m);
	/* recv begins to receive a held message. number is as that of send. */
	int (*recv)(int32_t held, void *buf, int64_t bytes, int32_t *number);
	/* test reports 0 once a request is done and its number free, NONE before. */
	int (*test)(int32_t number);

	/* Communicators of ranks of the world, in the order of the list: all of them call open, with the
	 * same tag, which no two calls at a time share. comm is its number. */
	int (*open)(const int *ranks, int count, int tag, int32_t *comm);
	int (*close)(int32_t comm);

	/* Phases of collectives. They only begin, and test tells when they are done: an operation that
	 * blocks would keep the proc from answering others, and MPI lets no member do one that others do
	 * without blocking (MPI-4.1, 6.12). in may be NULL for MPI_IN_PLACE where MPI allows it. */
	int (*barrier)(int32_t comm, int32_t *number);
	int (*bcast)(int32_t comm, void *buf, int64_t bytes, int root, int32_t *number);
	int (*reduce)(int32_t comm, const void *in, void *out, int64_t count, int type, int op, int root, int32_t *number);
	int (*allreduce)(int32_t comm, const void *in, void *out, int64_t count, int type, int op, int32_t *number);
	int (*gather)(int32_t comm, const void *in, void *out, int64_t bytes, int root, int32_t *number);
	int (*allgather)(int32_t comm, const void *in, void *out, int64_t bytes, int32_t *number);
	int (*alltoall)(int32_t comm, const void *in, void *out, int64_t bytes, int32_t *number);

	/* fail has the phases that begin from now on be those of a member that has failed, with a kind
	 * of error; 0: no more. It takes part, and the others are told where the phase goes by
	 * messages. */
	void (*fail)(int kind);

	/* Short messages, apart from those of send. Receives for them are posted before they come, of
	 * anybody, so that the library has a place for each: count of them, with room bytes each, which
	 * no message exceeds. */
	int (*shorts_begin)(int64_t room, int count);
	/* short_send is send. */
	int (*short_send)(int to, const void *buf, int64_t bytes, int32_t *number);
	/* short_next tells which message is next, or NONE. Its memory is valid until short_again, which
	 * posts the receive again. Those of one sender come in order. */
	int (*short_next)(const void **buf, int64_t *bytes, int32_t *source);
	int (*short_again)(void);
	int (*shorts_end)(void);

	/* Long messages, apart from all others. Those of one sender are received in the order in which
	 * it sends them, each by a receive for as many bytes as it has. numbers are as those of send
	 * and recv. */
	int (*long_send)(int to, const void *buf, int64_t bytes, int32_t *number);
	int (*long_recv)(int from, void *buf, int64_t bytes, int32_t *number);

	/* So many bytes of data, with an envelope before them, the library sends at once within a
	 * machine, in one piece; and messages of up to so many bytes are faster in such pieces than by
	 * long_send. Both are the same in all procs of a site. */
	int64_t piece, most;
};

#endif
