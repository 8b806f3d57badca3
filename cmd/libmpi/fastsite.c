// Blocking collective operations by the site's own MPI without entering Go, where all members are
// at the site and have a communicator of it. Each begins what Go would begin, so that members in Go
// and in C are in one operation. If an operation is not over soon, Go goes on with it: it finds the
// operation in the team when the same call gets there.

#include "fastsite.h"
#include "gate.h"
#include "loops.h"
#include "patience.h"

enum { BYTES_LOOK = 8 }; // for each so many bytes of an operation C looks once more

uint8_t impi_site_type[TYPES], impi_site_op[OP_HANDLES];

// start passes the gate and returns a communicator, if C may do its next operation, of n bytes;
// otherwise NULL, without the gate. One operation in TEAM_SELDOM is left to Go, which looks whether
// anything else has come; long operations count as several, since they take longer.
static struct comm *start(MPI_Comm comm, uint64_t n)
{
	static uint32_t done; // guarded by the gate
	if (x->carriers.begin == NULL || !enter())
		return NULL;
	struct comm *c = find(comm);
	if (c != NULL && c->team != NONE && !COUNTS && x->teams[c->team].pending == NONE) {
		done += 1 + (uint32_t)(n / TEAM_LONG);
		if (done < TEAM_SELDOM)
			return c;
		done = 0;
	}
	leave();
	return NULL;
}

static int refuse(void)
{
	leave();
	return 0;
}

// finish does an operation of n bytes, or leaves it to Go.
static int finish(struct comm *c, struct phase *p, uint64_t n)
{
	struct team *t = &x->teams[c->team];
	int32_t number = NONE;
	p->comm = c->team;
	int error = x->carriers.begin(x->carriers.library, p, &number);
	for (struct wait w = wait_for((int)(n / BYTES_LOOK)); !error && number != NONE && goes_on(&w);) {
		error = x->carriers.test(x->carriers.library, number);
		if (error == NONE)
			error = 0;
		else
			number = NONE;
	}
	int over = !error && number == NONE;
	if (over)
		atomic_fetch_add_explicit(&t->count, 1, memory_order_relaxed);
	else
		t->pending = number, t->error = error;
	leave();
	return over;
}

// same reports whether a block that is sent is as long as one that is received.
static inline int same(uint64_t n, uint64_t m) { return n == m && n != 0 && n != UINT64_MAX; }

static inline int overlap(const void *p, uint64_t n, const void *q, uint64_t m) { return (const char *)p < (const char *)q + m && (const char *)q < (const char *)p + n; }

int impi_site_barrier(MPI_Comm comm)
{
	struct comm *c = start(comm, 0);
	return c != NULL && finish(c, &(struct phase){ .phase = PHASE_BARRIER }, 0);
}

int impi_site_bcast(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
	uint64_t n = bytes(count, type);
	struct comm *c = n == 0 || n > TEAM_MOST ? NULL : start(comm, n);
	if (c == NULL)
		return 0;
	if (root < 0 || root >= c->size || !held(root == c->rank ? impi_readable : impi_writable, buf, n))
		return refuse();
	return finish(c, &(struct phase){ .phase = PHASE_BCAST, .root = root, .n = (int64_t)n, .out = buf }, n);
}

int impi_site_alltoall(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	uint64_t n = bytes(rcount, rtype);
	struct comm *c = n == 0 || n > TEAM_MOST ? NULL : start(comm, n);
	if (c == NULL)
		return 0;
	uint64_t all = n * (uint64_t)c->size;
	if (all > TEAM_MOST || !held(impi_writable, recv, all))
		return refuse();
	if (send == MPI_IN_PLACE)
		send = NULL;
	else if (!same(bytes(scount, stype), n) || impi_kind[(uintptr_t)stype] != impi_kind[(uintptr_t)rtype] || !held(impi_readable, send, all) || overlap(send, all, recv, all))
		return refuse();
	return finish(c, &(struct phase){ .phase = PHASE_ALLTOALL, .n = (int64_t)n, .in = send, .out = recv }, all);
}

int impi_site_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	uint64_t n = bytes(count, type);
	uintptr_t o = (uintptr_t)op;
	if (n == 0 || n > TEAM_MOST || impi_site_type[(uintptr_t)type] == 0 || o >= OP_HANDLES || impi_site_op[o] == 0 || impi_loop_of(op, type) == NULL)
		return 0;
	struct comm *c = start(comm, n);
	if (c == NULL)
		return 0;
	if (send == MPI_IN_PLACE)
		send = NULL;
	if (!held(impi_writable, recv, n) || (send != NULL && (!held(impi_readable, send, n) || overlap(send, n, recv, n))))
		return refuse();
	return finish(c, &(struct phase){ .phase = PHASE_ALLREDUCE, .type = impi_site_type[(uintptr_t)type] - 1, .op = impi_site_op[o] - 1, .n = count, .in = send, .out = recv }, n);
}
