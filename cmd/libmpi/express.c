// Short messages between procs of one host without entering Go: notes, written and taken
// where both sides see them. Each function here does its call whole, or leaves everything as
// it is and has Go do it; errors are all Go's.

#include <limits.h>
#include <mpi.h>
#include <string.h>
#include "_cgo_export.h"
#include "express.h"

#define WEAK(name) __attribute__((weak, alias(#name)))
#define W(x) ((GoUintptr)(x))
#define LOAD(x) atomic_load_explicit(&(x), memory_order_acquire)
#define GLANCE(x) atomic_load_explicit(&(x), memory_order_relaxed)
#define STORE(x, v) atomic_store_explicit(&(x), v, memory_order_release)

struct express impi_express = { .gate = CLOSED };
uint8_t impi_width[TYPES], impi_kind[TYPES];
_Atomic uintptr_t impi_readable[PAGES], impi_writable[PAGES];

static struct express *const x = &impi_express;

static inline void rest(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

// enter passes the gate, unless somebody else is inside or Go has closed it.
static inline int enter(void)
{
	uint32_t open = OPEN;
	return atomic_compare_exchange_strong_explicit(&x->gate, &open, INSIDE, memory_order_acquire, memory_order_relaxed);
}

static inline void leave(void) { STORE(x->gate, OPEN); }

// known tells whether Go has found that there is memory from p on, n bytes of it, of at most
// a page's length.
static inline int known(_Atomic uintptr_t pages[PAGES], const void *p, uint64_t n)
{
	uintptr_t from = (uintptr_t)p >> PAGE_SHIFT, to = ((uintptr_t)p + n - 1) >> PAGE_SHIFT;
	return n == 0 || (GLANCE(pages[from % PAGES]) == from && GLANCE(pages[to % PAGES]) == to);
}

// bytes gives the size of a buffer, or more than any note has if it is not for C.
static inline uint64_t bytes(MPI_Count count, MPI_Datatype type)
{
	uintptr_t t = (uintptr_t)type;
	if (t >= TYPES || impi_width[t] == 0 || count < 0 || count > INT_MAX)
		return UINT64_MAX;
	return (uint64_t)count * impi_width[t];
}

// find gives what Go has told of a communicator, or NULL.
static inline struct comm *find(MPI_Comm comm)
{
	uintptr_t h = (uintptr_t)comm;
	struct comm *c = &x->comms[(h ^ h >> 3 ^ h >> 32) % COMMS];
	return c->handle == h ? c : NULL;
}

// to gives the lane to a rank, or NULL.
static inline struct lane *to(struct comm *c, int rank)
{
	if (c == NULL || rank < 0 || rank >= RANKS || c->lane[rank] == NONE)
		return NULL;
	return &x->lanes[c->lane[rank]];
}

// move copies few bytes.
static inline void move(void *to, const void *from, uint64_t n)
{
	if (n == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, n);
}

// room gives the place of the next note, or NULL. The caller is inside.
static inline struct place *room(struct lane *l)
{
	if (l->sent - l->seen >= NOTE_PLACES) {
		uint64_t seen = LOAD(*l->read);
		if (l->sent - seen >= NOTE_PLACES)
			return NULL;
		l->seen = seen;
	}
	return &l->out[l->sent % NOTE_PLACES];
}

// post sends a message as a note. The caller is inside.
static inline int post(const void *buf, uint64_t n, MPI_Datatype type, int dest, int tag, MPI_Comm comm, struct lane **by)
{
	struct comm *c = find(comm);
	struct lane *l = to(c, dest);
	if (l == NULL || !l->sends || tag > c->tag_ub)
		return 0;
	struct place *p = room(l);
	if (p == NULL)
		return 0;
	p->context = c->context;
	p->rank = c->rank;
	p->tag = tag;
	p->len = (uint32_t)n;
	p->kind = impi_kind[(uintptr_t)type];
	move(p->data, buf, n);
	l->sent++;
	atomic_exchange(&p->mark, l->sent << 32 | (l->out_at & UINT32_MAX));
	*by = l;
	return 1;
}

static int send_note(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	uint64_t n = bytes(count, type);
	struct lane *l;
	if (n > MAX_NOTE || tag < 0 || !known(impi_readable, buf, n) || !enter())
		return 0;
	int sent = post(buf, n, type, dest, tag, comm, &l);
	int asleep = sent && atomic_load(l->sleeps) != 0;
	leave();
	if (asleep)
		expressWake((GoInt32)(l - x->lanes));
	return sent;
}

// next gives the note that comes next by a lane, or NULL. The caller is inside.
static inline struct place *next(struct lane *l)
{
	struct place *p = &l->in[l->taken % NOTE_PLACES];
	return LOAD(p->mark) == ((l->taken + 1) << 32 | (l->in_at & UINT32_MAX)) ? p : NULL;
}

// take says that the next note is done with. The caller is inside.
static inline void take(struct lane *l)
{
	l->taken++;
	if (l->taken % NOTE_LAG == 0)
		STORE(*l->told, l->taken);
}

// look waits for the next note, as long as nobody wants to come in and nothing else
// comes. The caller is inside.
static inline struct place *look(struct lane *l)
{
	for (int i = x->polls;; i--) {
		struct place *p = next(l);
		if (p != NULL)
			return p;
		if (i <= 0 || GLANCE(*l->bytes) != l->in_at || GLANCE(x->knock))
			return NULL;
		rest();
	}
}

// fill stores what was received, but for the error.
static inline void fill(MPI_Status *status, int source, int tag, uint32_t n)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->MPI_SOURCE = source;
	status->MPI_TAG = tag;
	memset(status->MPI_internal, 0, sizeof status->MPI_internal);
	status->MPI_internal[0] = (int)n;
}

// fits tells whether a note is for a receive. It was read once into the arguments.
static inline int fits(uint64_t context, int32_t rank, int32_t tag, uint32_t len, uint64_t want_context, int want_rank, int want_tag, uint64_t room)
{
	return context == want_context && rank == want_rank && (tag == want_tag || want_tag == MPI_ANY_TAG) && tag >= 0 && len <= MAX_NOTE && len <= room;
}

// get is recv_note for who is inside.
static int get(void *buf, uint64_t space, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct comm *c = find(comm);
	struct lane *l = to(c, source);
	if (l == NULL || !l->takes || x->first != NONE || x->haste++ % HASTE == HASTE - 1)
		return 0;
	struct place *p = look(l);
	if (p == NULL)
		return 0;
	int32_t rank = p->rank, from = p->tag; // once: the other side can write to it
	uint32_t n = p->len;
	if (!fits(p->context, rank, from, n, c->context, source, tag, space) || !known(impi_writable, buf, n))
		return 0;
	move(buf, p->data, n);
	take(l);
	fill(status, rank, from, n);
	return 1;
}

static int recv_note(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	uint64_t space = bytes(count, type);
	if (space == UINT64_MAX || (tag < 0 && tag != MPI_ANY_TAG))
		return 0;
	if ((status != MPI_STATUS_IGNORE && !known(impi_writable, status, sizeof *status)) || !enter())
		return 0;
	int taken = get(buf, space, source, tag, comm, status);
	leave();
	return taken;
}

int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	if (send_note(buf, count, datatype, dest, tag, comm))
		return MPI_SUCCESS;
	return abiSend(W(buf), count, W(datatype), dest, tag, W(comm), 0);
}
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) WEAK(PMPI_Send);

int PMPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	if (send_note(buf, count, datatype, dest, tag, comm))
		return MPI_SUCCESS;
	return abiSend(W(buf), count, W(datatype), dest, tag, W(comm), 1);
}
int MPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) WEAK(PMPI_Send_c);

int PMPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	if (recv_note(buf, count, datatype, source, tag, comm, status))
		return MPI_SUCCESS;
	return abiRecv(W(buf), count, W(datatype), source, tag, W(comm), W(status), 0);
}
int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status) WEAK(PMPI_Recv);

int PMPI_Recv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	if (recv_note(buf, count, datatype, source, tag, comm, status))
		return MPI_SUCCESS;
	return abiRecv(W(buf), count, W(datatype), source, tag, W(comm), W(status), 1);
}
int MPI_Recv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status) WEAK(PMPI_Recv_c);
