/* Compiled by the mpicc of a site's own MPI: what shim.h promises, by that MPI. It needs MPI-3.
 * Our library calls it by one thread at a time. */
#define _GNU_SOURCE /* dladdr */
#include "shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* For tests: they want to see that functions are called (IMPI_NATIVE_TRACE), by the thread of init
 * alone (IMPI_NATIVE_FUNNELLED), and that some messages are sent and then none
 * (IMPI_NATIVE_SENDS). */
#ifdef IMPI_NATIVE_FUNNELLED
static _Thread_local int is_home;
#define AT_HOME() (is_home ? (void)0 : abort())
#else
#define AT_HOME() ((void)0)
#endif
#ifdef IMPI_NATIVE_TRACE
#include <stdio.h>
#define TRACE() (AT_HOME(), (void)fprintf(stderr, "impi_native: %s\n", __func__))
#else
#define TRACE() AT_HOME()
#endif
#ifdef IMPI_NATIVE_SENDS
static int sent;
#define SENDS_ON() \
	if (sent++ >= IMPI_NATIVE_SENDS) \
	return kind_of(MPI_ERR_INTERN)
#else
#define SENDS_ON() ((void)0)
#endif

/* for messages */
static MPI_Comm all = MPI_COMM_NULL;
/* for making other communicators: libraries send messages for that, which poll would take for
 * ours */
static MPI_Comm makers = MPI_COMM_NULL;

/* A table of values that are known by number outside. */
#define TABLE(name, type)                                                                  \
	static struct {                                                                        \
		type *of;                                                                          \
		int32_t *unused;                                                                   \
		int32_t size, free;                                                                \
	} name;                                                                                \
	static int32_t name##_take(void)                                                       \
	{                                                                                      \
		if (!name.free) {                                                                  \
			int32_t i, size = name.size ? 2 * name.size : 64;                              \
			type *of = realloc(name.of, (size_t)size * sizeof *of);                        \
			if (!of)                                                                       \
				return IMPI_NATIVE_NONE;                                                   \
			name.of = of;                                                                  \
			int32_t *unused = realloc(name.unused, (size_t)size * sizeof *unused);         \
			if (!unused)                                                                   \
				return IMPI_NATIVE_NONE;                                                   \
			name.unused = unused;                                                          \
			for (i = size; i-- > name.size;)                                               \
				unused[name.free++] = i;                                                   \
			name.size = size;                                                              \
		}                                                                                  \
		return name.unused[--name.free];                                                   \
	}                                                                                      \
	static void name##_give(int32_t i) { name.unused[name.free++] = i; }

TABLE(requests, MPI_Request)
TABLE(messages, MPI_Message)
struct team {
	MPI_Comm comm;
	int me, size;
};
TABLE(comms, struct team)

static MPI_Comm shorts = MPI_COMM_NULL;  /* for short messages, which poll must not take */
/* for long messages, which no receive of short ones must match */
static MPI_Comm longs = MPI_COMM_NULL;

/* The receives of short messages, which the library fills in this order. */
static struct {
	MPI_Request *of;
	char *memory;
	int64_t room;
	int count, next;
} posted;

enum { SHORT_OPS = 1 << 24 }; /* from here on numbers are of short_op */

static MPI_Datatype types[IMPI_NATIVE_TYPES];
/* bytes of an element of each type in memory, with the gap that a pair may have */
static int widths[IMPI_NATIVE_TYPES];
static MPI_Op ops[IMPI_NATIVE_OPS];

/* result_of gives an error of a class: its kind, and the class above that for describe. */
static int result_of(int class, enum impi_native_error kind) { return class << IMPI_NATIVE_KIND_BITS | (int)kind; }

/* A class that stands for a kind. */
static int kind_of(int class)
{
	switch (class) {
	case MPI_SUCCESS:
		return 0;
	case MPI_ERR_TRUNCATE:
		return result_of(class, IMPI_NATIVE_LONGER);
	case MPI_ERR_COUNT:
		return result_of(class, IMPI_NATIVE_COUNT);
	case MPI_ERR_NO_MEM:
		return result_of(class, IMPI_NATIVE_NO_MEMORY);
	default:
		return result_of(class, IMPI_NATIVE_OTHER);
	}
}

/* result is what our library is told of an error of that MPI. */
static int result(int error)
{
	int class = MPI_ERR_OTHER;
	if (error == MPI_SUCCESS)
		return 0;
	MPI_Error_class(error, &class);
	return kind_of(class > 0 ? class : MPI_ERR_OTHER);
}

static int copy_text(const char *from, char *to, int room)
{
	int n = (int)strcspn(from, "\r\n");
	if (room < 1)
		return kind_of(MPI_ERR_ARG);
	if (n >= room)
		n = room - 1;
	memcpy(to, from, (size_t)n);
	to[n] = 0;
	return 0;
}

static int version(char *text, int room, int *standard)
{
	char full[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length, minor, error;
	if ((error = MPI_Get_version(standard, &minor)) || (error = MPI_Get_library_version(full, &length)))
		return result(error);
	return copy_text(full, text, room);
}

static int describe(int error, char *text, int room)
{
	char full[MPI_MAX_ERROR_STRING] = "";
	int length, class = error >> IMPI_NATIVE_KIND_BITS;
	if (class == 0)
		return copy_text(error == IMPI_NATIVE_SHORTER ? "a member has sent fewer bytes than another one expects" :
			error == IMPI_NATIVE_LONGER ? "a member has sent more bytes than another one expects" : "another member has failed", text, room);
	MPI_Error_string(class, full, &length);
	return copy_text(full, text, room);
}

static int init(int threads, int *provided, int *rank, int *size)
{
	static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
	int there = 0, got = MPI_THREAD_SINGLE, error;
	if (threads < 0 || threads > IMPI_NATIVE_MULTIPLE)
		return kind_of(MPI_ERR_ARG);
#ifdef IMPI_NATIVE_FUNNELLED
	threads = IMPI_NATIVE_FUNNELED, is_home = 1;
#endif
	MPI_Initialized(&there);
	if (there)
		return kind_of(MPI_ERR_OTHER); /* somebody else in this process uses it */
	if ((error = MPI_Init_thread(NULL, NULL, levels[threads], &got)))
		return result(error);
	*provided = IMPI_NATIVE_SINGLE;
	for (int i = 0; i <= threads; i++)
		if (got >= levels[i])
			*provided = i;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if ((error = MPI_Comm_dup(MPI_COMM_WORLD, &all)) || (error = MPI_Comm_dup(MPI_COMM_WORLD, &makers)) || (error = MPI_Comm_dup(MPI_COMM_WORLD, &shorts)) ||
	    (error = MPI_Comm_dup(MPI_COMM_WORLD, &longs)))
		return result(error);
	MPI_Comm_set_errhandler(longs, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(shorts, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(makers, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
	MPI_Comm_rank(all, rank);
	MPI_Comm_size(all, size);

	MPI_Datatype t[] = {MPI_BYTE, MPI_INT8_T, MPI_UINT8_T, MPI_INT16_T, MPI_UINT16_T, MPI_INT32_T,
		MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T, MPI_FLOAT, MPI_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_BOOL,
		MPI_SHORT_INT, MPI_2INT, MPI_LONG_INT, MPI_FLOAT_INT, MPI_DOUBLE_INT};
	MPI_Op o[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_MINLOC, MPI_MAXLOC};
	memcpy(types, t, sizeof types);
	memcpy(ops, o, sizeof ops);
	for (int i = 0; i < IMPI_NATIVE_TYPES; i++) {
		MPI_Aint low, width = 0;
		MPI_Type_get_extent(types[i], &low, &width);
		widths[i] = (int)width;
	}
	return 0;
}

#ifndef OPEN_MPI
/* MPICH from 4.1 on tells the launcher that it is finalized in a handler of exit, and Hydra kills
 * the procs of a job if one of them ends without having told. A program in Go ends without the
 * handlers of C, so finalize runs those of that MPI's library. They are those that are registered
 * with its handle, which is seen here: RTLD_DEEPBIND has the library find this function first. */
enum { HANDLES = 4 };
static void *handles[HANDLES];

int __cxa_atexit(void (*f)(void *), void *arg, void *handle)
{
	Dl_info here, mpi;
	int (*next)(void (*)(void *), void *, void *);
	*(void **)&next = dlsym(RTLD_NEXT, "__cxa_atexit");
	if (handle && dladdr(*(void **)&f, &here) && dladdr((void *)(uintptr_t)MPI_Finalize, &mpi) && here.dli_fbase == mpi.dli_fbase)
		for (int i = 0; i < HANDLES; i++)
			if (!handles[i] || handles[i] == handle) {
				handles[i] = handle;
				break;
			}
	return next ? next(f, arg, handle) : -1;
}

void __cxa_finalize(void *handle);

static void run_exit_handlers(void)
{
	for (int i = HANDLES; i-- > 0;)
		if (handles[i])
			__cxa_finalize(handles[i]); /* each runs once, so exit does not run them again */
}
#else
static void run_exit_handlers(void) {}
#endif

static int finalize(void)
{
	/* Communicators that are left go with the library: to free them takes their members, in one
	 * order. */
	MPI_Comm_free(&all);
	MPI_Comm_free(&makers);
	MPI_Comm_free(&shorts);
	MPI_Comm_free(&longs);
	int error = result(MPI_Finalize());
	run_exit_handlers();
	return error;
}

/* Open MPI gives this request for a send that is done at once: it need not be tested. */
#ifdef OPEN_MPI
extern char ompi_request_empty[] __attribute__((weak));
static inline int done_at_once(MPI_Request r) { return (void *)r == (void *)ompi_request_empty; }
#else
static inline int done_at_once(MPI_Request r) { return r == MPI_REQUEST_NULL; }
#endif

/* numbered gives a request that has begun its number. */
static int numbered(MPI_Request *r, int32_t *number)
{
	if ((*number = requests_take()) == IMPI_NATIVE_NONE)
		return result(MPI_Wait(r, MPI_STATUS_IGNORE)); /* no memory is left: at least nothing is lost */
	requests.of[*number] = *r;
	return 0;
}

/* begun is numbered, unless the request is done already. */
static int begun(int error, MPI_Request *r, int32_t *number)
{
	int done = 0;
	*number = IMPI_NATIVE_NONE;
	if (error)
		return result(error);
	if (done_at_once(*r))
		return 0;
	if ((error = MPI_Test(r, &done, MPI_STATUS_IGNORE)) || done)
		return result(error);
	return numbered(r, number);
}

static int begin_send(int to, int tag, const void *buf, int64_t bytes, int32_t *number)
{
	MPI_Request r;
	if (bytes < 0 || bytes > INT_MAX)
		return kind_of(MPI_ERR_COUNT);
	SENDS_ON();
	AT_HOME();
	return begun(MPI_Isend(buf, (int)bytes, MPI_BYTE, to, tag, all, &r), &r, number);
}

static int poll_one(void *buf, int64_t room, struct impi_native_message *m)
{
	MPI_Message msg;
	MPI_Status st;
	AT_HOME();
	int flag = 0, n = 0, error = MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, all, &flag, &msg, &st);
	if (error)
		return result(error);
	if (!flag)
		return IMPI_NATIVE_NONE;
	MPI_Get_count(&st, MPI_BYTE, &n);
	m->source = st.MPI_SOURCE;
	m->tag = st.MPI_TAG;
	m->bytes = n;
	m->held = IMPI_NATIVE_NONE;
	if (n <= room)
		return result(MPI_Mrecv(buf, n, MPI_BYTE, &msg, MPI_STATUS_IGNORE));
	if ((m->held = messages_take()) == IMPI_NATIVE_NONE)
		return kind_of(MPI_ERR_NO_MEM);
	messages.of[m->held] = msg;
	return 0;
}

static int begin_recv(int32_t held, void *buf, int64_t bytes, int32_t *number)
{
	MPI_Request r;
	if (held < 0 || held >= messages.size)
		return kind_of(MPI_ERR_ARG);
	if (bytes < 0 || bytes > INT_MAX)
		return kind_of(MPI_ERR_COUNT);
	int error = MPI_Imrecv(buf, (int)bytes, MPI_BYTE, &messages.of[held], &r);
	messages_give(held);
	return begun(error, &r, number);
}

static int test_short_op(int32_t number);

static int test(int32_t number)
{
	int done = 0;
	AT_HOME();
	if (number >= SHORT_OPS)
		return test_short_op(number);
	if (number < 0 || number >= requests.size)
		return kind_of(MPI_ERR_REQUEST);
	int error = MPI_Test(&requests.of[number], &done, MPI_STATUS_IGNORE);
	if (error || done)
		requests_give(number);
	else
		return IMPI_NATIVE_NONE;
	return result(error);
}

static int open_comm(const int *ranks, int count, int tag, int32_t *comm)
{
	MPI_Group of_all, some;
	int error = MPI_Comm_group(makers, &of_all);
	if (error)
		return result(error);
	if (!(error = MPI_Group_incl(of_all, count, ranks, &some))) {
		struct team t;
		if (!(error = MPI_Comm_create_group(makers, some, tag, &t.comm))) {
			MPI_Comm_set_errhandler(t.comm, MPI_ERRORS_RETURN);
			MPI_Comm_rank(t.comm, &t.me);
			MPI_Comm_size(t.comm, &t.size);
			if ((*comm = comms_take()) == IMPI_NATIVE_NONE)
				error = MPI_ERR_NO_MEM; /* after the others were helped to make it */
			else
				comms.of[*comm] = t;
		}
		MPI_Group_free(&some);
	}
	MPI_Group_free(&of_all);
	return result(error);
}

static int close_comm(int32_t comm)
{
	if (comm < 0 || comm >= comms.size)
		return kind_of(MPI_ERR_COMM);
	int error = MPI_Comm_free(&comms.of[comm].comm);
	comms_give(comm);
	return result(error);
}

/* PHASE checks what all phases of collectives have in common. */
#define PHASE(comm, n)                          \
	MPI_Request r;                              \
	TRACE();                                    \
	if ((comm) < 0 || (comm) >= comms.size)     \
		return kind_of(MPI_ERR_COMM);                    \
	if ((n) < 0 || (n) > INT_MAX)               \
		return kind_of(MPI_ERR_COUNT)

#define IN(in) ((in) ? (in) : MPI_IN_PLACE)

/* Short collective operations by messages. What libraries have for operations that only begin takes
 * two to three times as long for them as what they have for those that block, which the proc could
 * not leave to answer others. Whether an operation is a short one depends on what all members know
 * alike. */
enum {
	SHORT_MOST = 16 << 10,  /* bytes */
	PAIR_MOST = 4 << 20,    /* of two members, who send each other no more than one message */
	SHORT_REDUCE = 4 << 20, /* of an Allreduce of 2, 4, 8 or 16 members */
	SHORT_TEAM = 16,        /* members */
	SHORT_TAG = 1,
	KINDS = (1 << IMPI_NATIVE_KIND_BITS) - 1,
	FEW = 32,  /* elements that are combined here */
	LOOKS = 4, /* before the caller gets a turn */
};
#ifdef OPEN_MPI /* of whose messages those of 4 KiB wait for their receivers */
enum { REDUCE_HALVES = 4 << 10 };
#else
enum { REDUCE_HALVES = 8 << 10 };
#endif
enum { AS_BARRIER, AS_BCAST, AS_ALLREDUCE, AS_HALVES, AS_ALLTOALL };

static struct short_op {
	struct short_op *next; /* that is not used either */
	int32_t number;
	MPI_Comm comm;
	int what, me, size, root, round, levels; /* size is 1 << levels in reductions */
	MPI_Request of[2 * SHORT_TEAM]; /* of this round */
	int wants[2 * SHORT_TEAM];      /* bytes that are received; -1: it sends */
	/* result is the first error: what is left is done all the same, as others wait for it */
	int left, result;
	const char *in;
	char *out, *spare;
	int64_t bytes, room; /* of a block; of spare */
	int count, width, type, op; /* of reductions */
} **short_ops, *unused_ops;
static int32_t short_count;
static int failed; /* the kind of error with which they begin */

static void fail(int kind) { failed = kind & KINDS; }

/* short_new takes one, with room for spare bytes. */
static struct short_op *short_new(int what, int32_t comm, int64_t spare)
{
	struct short_op *s = unused_ops;
	if (!s) {
		struct short_op **all = realloc(short_ops, ((size_t)short_count + 1) * sizeof *all);
		if (!all)
			return NULL;
		short_ops = all;
		if (!(s = calloc(1, sizeof *s)))
			return NULL;
		s->number = SHORT_OPS + short_count;
		short_ops[short_count++] = unused_ops = s;
	}
	if (spare > s->room) {
		free(s->spare);
		s->room = 0;
		if (!(s->spare = malloc((size_t)spare)))
			return NULL;
		s->room = spare;
	}
	unused_ops = s->next;
	s->what = what;
	s->comm = comms.of[comm].comm;
	s->me = comms.of[comm].me;
	s->size = comms.of[comm].size;
	s->round = s->left = 0;
	s->result = result_of(0, (enum impi_native_error)failed);
	return s;
}

static inline void fails(struct short_op *s, int what)
{
	if (!s->result)
		s->result = what;
}

/* some receives some bytes from a member and sends others to one; -1: not. A tag above SHORT_TAG
 * says which kind of error its sender has seen, whose data are of no use then. */
static void some(struct short_op *s, void *in, int64_t ins, int from, const void *out, int64_t outs, int to)
{
	int error;
	if (from >= 0) {
		s->wants[s->left] = (int)ins;
		if (!(error = MPI_Irecv(in, (int)ins, MPI_BYTE, from, MPI_ANY_TAG, s->comm, &s->of[s->left])))
			s->left++;
		else
			fails(s, result(error));
	}
	if (to >= 0) {
		s->wants[s->left] = -1;
		if (!(error = MPI_Isend(out, (int)outs, MPI_BYTE, to, SHORT_TAG + (s->result & KINDS), s->comm, &s->of[s->left])))
			s->left += !done_at_once(s->of[s->left]);
		else
			fails(s, result(error));
	}
}

/* swap is some for whole blocks. */
static void swap(struct short_op *s, void *in, int from, const void *out, int to) { some(s, in, s->bytes, from, out, s->bytes, to); }

/* reduce_some combines n elements with others. What is asked of a library for few of them takes as
 * long as the message that brings them. */
static int reduce_some(struct short_op *s, const void *in, void *out, int n)
{
	if (n > FEW || s->op != IMPI_NATIVE_SUM)
		return MPI_Reduce_local(in, out, n, types[s->type], ops[s->op]);
	if (s->type == IMPI_NATIVE_DOUBLE)
		for (int i = 0; i < n; i++)
			((double *)out)[i] += ((const double *)in)[i];
	else if (s->type == IMPI_NATIVE_FLOAT)
		for (int i = 0; i < n; i++)
			((float *)out)[i] += ((const float *)in)[i];
	else if (s->type == IMPI_NATIVE_INT32 || s->type == IMPI_NATIVE_UINT32)
		for (int i = 0; i < n; i++)
			((uint32_t *)out)[i] += ((const uint32_t *)in)[i];
	else if (s->type == IMPI_NATIVE_INT64 || s->type == IMPI_NATIVE_UINT64)
		for (int i = 0; i < n; i++)
			((uint64_t *)out)[i] += ((const uint64_t *)in)[i];
	else
		return MPI_Reduce_local(in, out, n, types[s->type], ops[s->op]);
	return MPI_SUCCESS;
}

/* reduce_got combines n elements at an offset with those that another member has sent, and tells
 * where the library put them: in the first round what this member has lies in memory that is only
 * read, if it is not in place. */
static void reduce_got(struct short_op *s, int round, int64_t at, int n)
{
	char *out = s->out + at * s->width;
	int error = round == 0 && s->in ? reduce_some(s, s->in + at * s->width, out, n) : reduce_some(s, s->spare, out, n);
	if (error)
		fails(s, result(error));
}

static inline char *place_of(struct short_op *s, int round, int64_t at) { return round == 0 && s->in ? s->out + at * s->width : s->spare; }

static inline const char *given_by(struct short_op *s, int round, int64_t at) { return (round == 0 && s->in ? s->in : s->out) + at * s->width; }

/* halve has a member's half of its elements at a level, [0] from and [1] to, and the other half,
 * which the member that differs in that bit has. */
static void halve(const struct short_op *s, int level, int mine[2], int others[2])
{
	int from = 0, to = s->count;
	for (int l = 0;; l++) {
		int middle = from + (to - from) / 2, upper = s->me >> l & 1;
		mine[0] = upper ? middle : from, mine[1] = upper ? to : middle;
		others[0] = upper ? from : middle, others[1] = upper ? middle : to;
		if (l == level)
			return;
		from = mine[0], to = mine[1];
	}
}

/* halves is a round of a reduction of a long vector: each member reduces a part of it, and all get
 * all parts. */
static void halves(struct short_op *s, int r)
{
	int mine[2], others[2], level = r < s->levels ? r : 2 * s->levels - 1 - r;
	if (r > 0 && r <= s->levels) {
		halve(s, r - 1, mine, others);
		reduce_got(s, r - 1, mine[0], mine[1] - mine[0]);
	}
	if (level < 0)
		return;
	halve(s, level, mine, others);
	int64_t of_mine = (int64_t)(mine[1] - mine[0]) * s->width, of_others = (int64_t)(others[1] - others[0]) * s->width;
	if (r < s->levels)
		some(s, place_of(s, r, mine[0]), of_mine, s->me ^ 1 << level, given_by(s, r, others[0]), of_others, s->me ^ 1 << level);
	else
		some(s, s->out + (int64_t)others[0] * s->width, of_others, s->me ^ 1 << level, s->out + (int64_t)mine[0] * s->width, of_mine, s->me ^ 1 << level);
}

/* pass_on is a round of a broadcast. A member whose distance from the root has 1 as its lowest bit
 * is a leaf. */
static void pass_on(struct short_op *s, int r)
{
	int away = (s->me - s->root + s->size) % s->size, low = away & -away;
	if (r == 0 && away > 0) {
		swap(s, s->out, (away - low + s->root) % s->size, NULL, -1);
		return;
	}
	if (r > 1 || (r == 1 && away == 0))
		return;
	s->round = 2;
	for (int d = SHORT_TEAM; d > 0; d >>= 1)
		if ((away == 0 || d < low) && away + d < s->size)
			swap(s, NULL, -1, s->out, (away + d + s->root) % s->size);
}

/* round_of begins what comes next, of which there is nothing if left stays 0. */
static void round_of(struct short_op *s)
{
	int r = s->round++, away = 1 << r;
	switch (s->what) {
	case AS_BARRIER:
		if (away < s->size)
			swap(s, NULL, (s->me - away + s->size) % s->size, NULL, (s->me + away) % s->size);
		return;
	case AS_ALLREDUCE:
		if (r > 0)
			reduce_got(s, r - 1, 0, s->count);
		if (away < s->size)
			swap(s, place_of(s, r, 0), s->me ^ away, given_by(s, r, 0), s->me ^ away);
		return;
	case AS_HALVES:
		halves(s, r);
		return;
	case AS_BCAST:
		pass_on(s, r);
		return;
	default:
		for (int i = 1; r == 0 && i < s->size; i++) {
			int to = (s->me + i) % s->size, from = (s->me - i + s->size) % s->size;
			swap(s, s->out + from * s->bytes, from, s->in + to * s->bytes, to);
		}
		if (r == 0 && s->in != s->spare) /* not in place */
			memcpy(s->out + s->me * s->bytes, s->in + s->me * s->bytes, (size_t)s->bytes);
	}
}

static inline int bytes_of(const MPI_Status *st)
{
#ifdef OPEN_MPI /* what MPI_Get_count looks at after some checks */
	return (int)st->_ucount;
/* since when there is MPICH's ABI */
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 30100000
	return st->count_lo; /* no message here has 2 GiB */
#else
	int n = 0;
	MPI_Get_count(st, MPI_BYTE, &n);
	return n;
#endif
}

/* look_at compares what has come with the bytes that this member wants. */
static inline void look_at(struct short_op *s, const MPI_Status *st, int wants)
{
	if (st->MPI_TAG != SHORT_TAG)
		fails(s, result_of(0, (enum impi_native_error)(st->MPI_TAG - SHORT_TAG)));
	else if (bytes_of(st) != wants)
		fails(s, result_of(0, bytes_of(st) < wants ? IMPI_NATIVE_SHORTER : IMPI_NATIVE_LONGER));
}

/* short_on goes on with an operation, which is another's to take when it is done. */
static int short_on(struct short_op *s)
{
	for (;;) {
		while (s->left > 0) {
			MPI_Status st;
			int done = 0, error = MPI_SUCCESS, i = s->left - 1;
			for (int looks = 0; !done && looks < LOOKS && !error; looks++)
				error = MPI_Test(&s->of[i], &done, &st);
			if (error)
				fails(s, result(error)); /* and the message is over */
			else if (!done)
				return IMPI_NATIVE_NONE;
			else if (s->wants[i] >= 0)
				look_at(s, &st, s->wants[i]);
			s->left = i;
		}
		round_of(s);
		if (s->left > 0)
			continue;
		s->next = unused_ops;
		unused_ops = s;
		return s->result;
	}
}

static int test_short_op(int32_t number)
{
	number -= SHORT_OPS;
	return number < short_count ? short_on(short_ops[number]) : kind_of(MPI_ERR_REQUEST);
}

static int short_begun(struct short_op *s, int32_t *number)
{
	int error = short_on(s);
	*number = error == IMPI_NATIVE_NONE ? s->number : IMPI_NATIVE_NONE;
	return error == IMPI_NATIVE_NONE ? 0 : error;
}

/* is_short reports whether an operation of so many bytes is a short one. */
static int is_short(int32_t comm, int64_t bytes, int64_t most)
{
	int size = comms.of[comm].size;
	if (size == 2 && most == SHORT_MOST)
		most = PAIR_MOST;
	return bytes <= most && size <= SHORT_TEAM && (most != SHORT_REDUCE || (size & (size - 1)) == 0);
}

static int short_exchange(int what, int32_t comm, const void *in, void *out, int64_t bytes, int root, int32_t *number)
{
	struct short_op *s = short_new(what, comm, in || what != AS_ALLTOALL ? 0 : bytes * comms.of[comm].size);
	if (!s)
		return kind_of(MPI_ERR_NO_MEM);
	s->in = in;
	s->out = out;
	s->bytes = bytes;
	s->root = root;
	if (what == AS_ALLTOALL && !in)
		s->in = memcpy(s->spare, out, (size_t)(bytes * s->size));
	return short_begun(s, number);
}

static int short_allreduce(int32_t comm, const void *in, void *out, int64_t count, int width, int type, int op, int32_t *number)
{
	int64_t bytes = count * width;
	struct short_op *s = short_new(bytes < REDUCE_HALVES ? AS_ALLREDUCE : AS_HALVES, comm, in && comms.of[comm].size == 2 ? 0 : bytes);
	if (!s)
		return kind_of(MPI_ERR_NO_MEM);
	for (s->levels = 0; 1 << s->levels < s->size;)
		s->levels++;
	s->in = in;
	s->out = out;
	s->bytes = bytes;
	s->count = (int)count;
	s->width = width;
	s->type = type;
	s->op = op;
	if (s->size == 1 && in)
		memcpy(out, in, (size_t)bytes);
	return short_begun(s, number);
}

static int barrier(int32_t comm, int32_t *number)
{
	PHASE(comm, 0);
	if (is_short(comm, 0, SHORT_MOST))
		return short_exchange(AS_BARRIER, comm, NULL, NULL, 0, 0, number);
	return begun(MPI_Ibarrier(comms.of[comm].comm, &r), &r, number);
}

static int bcast(int32_t comm, void *buf, int64_t bytes, int root, int32_t *number)
{
	PHASE(comm, bytes);
	if (is_short(comm, bytes, SHORT_MOST))
		return short_exchange(AS_BCAST, comm, NULL, buf, bytes, root, number);
	return begun(MPI_Ibcast(buf, (int)bytes, MPI_BYTE, root, comms.of[comm].comm, &r), &r, number);
}

static int reduce(int32_t comm, const void *in, void *out, int64_t count, int type, int op, int root, int32_t *number)
{
	PHASE(comm, count);
	if (type < 0 || type >= IMPI_NATIVE_TYPES || op < 0 || op >= IMPI_NATIVE_OPS)
		return kind_of(MPI_ERR_TYPE);
	return begun(MPI_Ireduce(IN(in), out, (int)count, types[type], ops[op], root, comms.of[comm].comm, &r), &r, number);
}

static int allreduce(int32_t comm, const void *in, void *out, int64_t count, int type, int op, int32_t *number)
{
	PHASE(comm, count);
	if (type < 0 || type >= IMPI_NATIVE_TYPES || op < 0 || op >= IMPI_NATIVE_OPS)
		return kind_of(MPI_ERR_TYPE);
	if (is_short(comm, count * widths[type], SHORT_REDUCE))
		return short_allreduce(comm, in, out, count, widths[type], type, op, number);
	return begun(MPI_Iallreduce(IN(in), out, (int)count, types[type], ops[op], comms.of[comm].comm, &r), &r, number);
}

static int gather(int32_t comm, const void *in, void *out, int64_t bytes, int root, int32_t *number)
{
	PHASE(comm, bytes);
	return begun(MPI_Igather(IN(in), (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, root, comms.of[comm].comm, &r), &r, number);
}

static int allgather(int32_t comm, const void *in, void *out, int64_t bytes, int32_t *number)
{
	PHASE(comm, bytes);
	return begun(MPI_Iallgather(IN(in), (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, comms.of[comm].comm, &r), &r, number);
}

static int alltoall(int32_t comm, const void *in, void *out, int64_t bytes, int32_t *number)
{
	PHASE(comm, bytes);
	if (is_short(comm, bytes, SHORT_MOST))
		return short_exchange(AS_ALLTOALL, comm, in, out, bytes, 0, number);
	return begun(MPI_Ialltoall(IN(in), (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, comms.of[comm].comm, &r), &r, number);
}

static int shorts_begin(int64_t room, int count)
{
	int error;
	if (count < 1 || room < 1 || room > INT_MAX / count)
		return kind_of(MPI_ERR_ARG);
	posted.of = malloc((size_t)count * sizeof *posted.of);
	posted.memory = malloc((size_t)count * (size_t)room);
	if (!posted.of || !posted.memory)
		return kind_of(MPI_ERR_NO_MEM);
	posted.room = room;
	for (; posted.count < count; posted.count++) {
		MPI_Request *r = &posted.of[posted.count];
		if ((error = MPI_Recv_init(posted.memory + posted.count * room, (int)room, MPI_BYTE, MPI_ANY_SOURCE, 0, shorts, r)) || (error = MPI_Start(r)))
			return result(error);
	}
	return 0;
}

static int short_send(int to, const void *buf, int64_t bytes, int32_t *number)
{
	MPI_Request r;
	TRACE();
	if (bytes < 0 || bytes > posted.room)
		return kind_of(MPI_ERR_COUNT);
	SENDS_ON();
	return begun(MPI_Isend(buf, (int)bytes, MPI_BYTE, to, 0, shorts, &r), &r, number);
}

static int short_next(const void **buf, int64_t *bytes, int32_t *source)
{
	MPI_Status st;
	int done = 0, error = MPI_Test(&posted.of[posted.next], &done, &st);
	if (error)
		return result(error);
	if (!done)
		return IMPI_NATIVE_NONE;
	*buf = posted.memory + posted.next * posted.room;
	*bytes = bytes_of(&st);
	*source = st.MPI_SOURCE;
	return 0;
}

static int short_again(void)
{
	int error = MPI_Start(&posted.of[posted.next]);
	if (++posted.next == posted.count)
		posted.next = 0;
	return result(error);
}

static int shorts_end(void)
{
	int error = 0;
	while (!error && posted.count > 0) {
		MPI_Request *r = &posted.of[--posted.count];
		if (!(error = MPI_Cancel(r)) && !(error = MPI_Wait(r, MPI_STATUS_IGNORE)))
			error = MPI_Request_free(r);
	}
	free(posted.of);
	free(posted.memory);
	posted.of = NULL;
	posted.memory = NULL;
	return result(error);
}

static int long_send(int to, const void *buf, int64_t bytes, int32_t *number)
{
	MPI_Request r;
	TRACE();
	*number = IMPI_NATIVE_NONE;
	if (bytes < 0 || bytes > INT_MAX)
		return kind_of(MPI_ERR_COUNT);
	int error = MPI_Isend(buf, (int)bytes, MPI_BYTE, to, 0, longs, &r);
	return error || done_at_once(r) ? result(error) : numbered(&r, number); /* it takes its receiver */
}

static int long_recv(int from, void *buf, int64_t bytes, int32_t *number)
{
	MPI_Request r;
	if (bytes < 0 || bytes > INT_MAX)
		return kind_of(MPI_ERR_COUNT);
	return begun(MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, 0, longs, &r), &r, number);
}

#ifdef OPEN_MPI /* whose sm and vader send up to 4 KiB at once */
enum { PIECE = 4000, MOST = 8000 };
#else /* a segment of UCX and of MPICH's own shared memory has 8 KiB */
enum { PIECE = 8000, MOST = 20000 };
#endif

#ifdef OPEN_MPI
enum { FAMILY = IMPI_NATIVE_OPEN_MPI };
#elif defined(MPICH_VERSION) || defined(MPICH_NUMVERSION) || defined(I_MPI_VERSION) || defined(MVAPICH2_VERSION) || defined(MVAPICH_VERSION)
enum { FAMILY = IMPI_NATIVE_MPICH };
#else
enum { FAMILY = IMPI_NATIVE_ANY };
#endif

const struct impi_native impi_native = {
	IMPI_NATIVE_ABI, sizeof(struct impi_native), FAMILY, MPI_VERSION,
	version, init, finalize, describe,
	begin_send, poll_one, begin_recv, test,
	open_comm, close_comm,
	barrier, bcast, reduce, allreduce, gather, allgather, alltoall, fail,
	shorts_begin, short_send, short_next, short_again, shorts_end,
	long_send, long_recv,
	PIECE, MOST,
};
