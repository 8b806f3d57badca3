// Blocking collective operations of procs of one host without entering Go, on the board that they
// share (core/board). A member in C does what one in Go does, so either may be in the other.
//
// Each function does a call completely, or lets Go do it. Until all waits are over, it changes
// neither the program's memory nor what this member knows of the board. What it has written to the
// board by then Go writes again in the same step, with the same bytes.

#define _GNU_SOURCE
#include "onboard.h"
#include "fastboard.h"
#include "fastsite.h"

_Alignas(AHEAD_PAGE) char impi_between[PIECE + AHEAD_PAGE];

// keep copies this member's own block to where it belongs in the result: a long one around the
// caches, which it leaves again before the program gets to it.
static inline void keep(void *to, const void *from, uint64_t n)
{
	if (n >= FAR_OWN)
		far_move(to, from, n);
	else
		move(to, from, n);
}

int impi_barrier(MPI_Comm comm)
{
	struct op o;
	if (impi_site_barrier(comm))
		return 1;
	if (!start(&o, comm))
		return 0;
	arrive(&o);
	for (uint32_t m = 0; m < o.b->members; m++)
		if (m != o.b->me && !reached(&o, m, progress(o.b, m), o.step))
			return refuse();
	return finish(&o);
}

int impi_bcast(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct op o;
	uint64_t n = bytes(count, type);
	if (impi_site_bcast(buf, count, type, root, comm))
		return 1;
	if (n > LEND_MOST || !start(&o, comm))
		return 0;
	o.lent = n >= LEND_BCAST && o.b->lend != 0 && n >= o.b->lend;
	if (!root_in(o.b, root) || (!o.lent && n > MOST))
		return refuse();
	if (n == 0)
		return done_at_once(&o);
	if ((uint32_t)root == o.b->me) {
		if (!readable(buf, n))
			return refuse();
		arrive(&o);
		return give(&o, BCAST, buf, n, others(o.b)) ? finish(&o) : refuse();
	}
	if (!writable(buf, n))
		return refuse();
	arrive(&o);
	return posted(&o, BCAST, root, n) && take(&o, root, buf, n, 0, n) ? finish(&o) : refuse();
}

int impi_gather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm)
{
	struct op o;
	if (!start(&o, comm))
		return 0;
	if (!root_in(o.b, root))
		return refuse();
	if ((uint32_t)root != o.b->me) {
		uint64_t n = bytes(scount, stype);
		if (n == 0)
			return done_at_once(&o);
		if (!block(&o, n, 1, 1) || !readable(send, n))
			return refuse();
		arrive(&o);
		return give(&o, GATHER, send, n, (uint64_t)1 << root) ? finish(&o) : refuse();
	}
	if (no_bytes(send, scount, stype, rcount, rtype))
		return done_at_once(&o);
	uint64_t n = bytes(rcount, rtype), all = n * o.b->members;
	if (!block(&o, n, o.b->members, 1) || !writable(recv, all))
		return refuse();
	if (send != MPI_IN_PLACE && (!same(scount, stype, rcount, rtype) || !readable(send, n) || overlap(send, n, recv, all)))
		return refuse();
	arrive(&o);
	if (!all_posted(&o, GATHER, n) || !collect(&o, recv, n, 0, n))
		return refuse();
	give_back(&o);
	if (send != MPI_IN_PLACE)
		keep((char *)recv + o.b->me * n, send, n);
	return finish(&o);
}

int impi_scatter(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm)
{
	struct op o;
	if (!start(&o, comm))
		return 0;
	if (!root_in(o.b, root))
		return refuse();
	if ((uint32_t)root != o.b->me) {
		uint64_t n = bytes(rcount, rtype), all = n * o.b->members;
		if (n == 0)
			return done_at_once(&o);
		if (!block(&o, n, o.b->members, o.b->members) || !writable(recv, n))
			return refuse();
		arrive(&o);
		return posted(&o, SCATTER, root, all) && take(&o, root, recv, n, o.b->me * n, all) ? finish(&o) : refuse();
	}
	if (no_bytes(recv, rcount, rtype, scount, stype))
		return done_at_once(&o);
	uint64_t n = bytes(scount, stype), all = n * o.b->members;
	if (!block(&o, n, o.b->members, o.b->members) || !readable(send, all))
		return refuse();
	if (recv != MPI_IN_PLACE && (!same(scount, stype, rcount, rtype) || !writable(recv, n) || overlap(send, all, recv, n)))
		return refuse();
	arrive(&o);
	o.block = n;
	if (!give(&o, SCATTER, send, all, others(o.b)))
		return refuse();
	if (recv != MPI_IN_PLACE)
		memcpy(recv, (const char *)send + o.b->me * n, n);
	return finish(&o);
}

int impi_allgather(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct op o;
	if (!start(&o, comm))
		return 0;
	if (no_bytes(send, scount, stype, rcount, rtype))
		return done_at_once(&o);
	uint64_t n = bytes(rcount, rtype), all = n * o.b->members;
	if (!block(&o, n, o.b->members, 1) || !writable(recv, all))
		return refuse();
	if (send != MPI_IN_PLACE && (!same(scount, stype, rcount, rtype) || !readable(send, n) || overlap(send, n, recv, all)))
		return refuse();
	char *mine = (char *)recv + o.b->me * n;
	arrive(&o);
	if (!give(&o, ALLGATHER, send == MPI_IN_PLACE ? mine : send, n, others(o.b)) || !all_posted(&o, ALLGATHER, n))
		return refuse();
	if (!collect(&o, recv, n, 0, n))
		return refuse();
	give_back(&o);
	if (send != MPI_IN_PLACE)
		keep(mine, send, n);
	return finish(&o);
}

int impi_alltoall(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct op o;
	if (impi_site_alltoall(send, scount, stype, recv, rcount, rtype, comm))
		return 1;
	if (!start(&o, comm))
		return 0;
	if (no_bytes(send, scount, stype, rcount, rtype))
		return done_at_once(&o);
	uint64_t n = bytes(rcount, rtype), all = n * o.b->members, at = o.b->me * n;
	if (!block(&o, n, o.b->members, o.b->members) || !writable(recv, all) || (o.lent && send == MPI_IN_PLACE))
		return refuse();
	if (send != MPI_IN_PLACE && (!same(scount, stype, rcount, rtype) || !readable(send, all) || overlap(send, all, recv, all)))
		return refuse();
	arrive(&o);
	o.block = n;
	if (!give(&o, ALLTOALL, send == MPI_IN_PLACE ? recv : send, all, others(o.b)) || !all_posted(&o, ALLTOALL, all))
		return refuse();
	if (!collect(&o, recv, n, at, all))
		return refuse();
	give_back(&o);
	if (send != MPI_IN_PLACE)
		keep((char *)recv + at, (const char *)send + at, n);
	return finish(&o);
}

// Where results are combined. It belongs to whoever has passed the gate.
static _Alignas(16) char scratch[PIECE > MOST ? PIECE : MOST];

int impi_combine(struct op *o, loop *f, const void *own, void *recv, uint64_t n, MPI_Datatype type)
{
	struct board *b = o->b;
	uint64_t size = impi_width[(uintptr_t)type], count = n / size;
	for (uint32_t m = b->members; m-- > 0;) {
		const void *from = m == b->me ? own : data(b, m, o->step, n);
		if (m == b->members - 1)
			move(scratch, from, n);
		else
			f(from, scratch, count);
	}
	if ((impi_number[(uintptr_t)type] & SORT) == FLOAT && impi_has_nan(scratch, count, size))
		return 0;
	move(recv, scratch, n);
	return 1;
}

// combine_lent is impi_combine for operands that the others lend. Only the root computes, so that
// it may be any NaN that becomes the result. If it returns 0 it has written to recv.
static inline int combine_lent(struct op *o, loop *f, const char *own, char *recv, uint64_t n, uint64_t size)
{
	struct board *b = o->b;
	for (uint64_t at = 0; at < n; at += PIECE) { // so that they stay in the cache
		uint64_t k = n - at < PIECE ? n - at : PIECE;
		if (b->members == 2) { // whose order makes no difference
			if (!take(o, 1 - b->me, recv + at, k, at, n))
				return 0;
			if (at + k == n)
				give_back(o);
			f(own + at, recv + at, k / size);
			continue;
		}
		for (uint32_t m = b->members; m-- > 0;) {
			int last = m == b->members - 1;
			char *to = last ? recv + at : scratch;
			if (m != b->me && !take(o, m, to, k, at, n))
				return 0;
			if (!last)
				f(m == b->me ? own + at : to, recv + at, k / size);
			else if (m == b->me)
				memcpy(to, own + at, k);
		}
	}
	return 1;
}

int impi_reduce_scatter_block(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct op o;
	uint64_t n = bytes(count, type);
	loop *f = impi_loop_of(op, type);
	if (f == NULL || n > PAIR_MOST || !start(&o, comm))
		return 0;
	if (n == 0)
		return done_at_once(&o);
	uint64_t size = impi_width[(uintptr_t)type], all = n * o.b->members;
	const char *own = send == MPI_IN_PLACE ? recv : send;
	if (all > MOST || !writable(recv, own == recv ? all : n) || !aligned(recv, size) || !aligned(own, size) || (own == send && (!readable(send, all) || overlap(send, all, recv, n))))
		return refuse();
	arrive(&o);
	o.block = n;
	if (!post(&o, REDUCE_SCATTER_BLOCK, own, all) || !all_posted(&o, REDUCE_SCATTER_BLOCK, all))
		return refuse();
	for (uint32_t m = o.b->members; m-- > 0;) {
		const char *from = (m == o.b->me ? own : data(o.b, m, o.step, all)) + o.b->me * n;
		if (m == o.b->members - 1)
			move(scratch, from, n);
		else
			f(from, scratch, n / size);
	}
	give_back(&o);
	move(recv, scratch, n);
	return finish(&o);
}

int impi_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
	struct op o;
	uint64_t n = bytes(count, type);
	loop *f = impi_loop_of(op, type);
	if (f == NULL || n > LEND_MOST || !start(&o, comm))
		return 0;
	if (n == 0 && root_in(o.b, root))
		return done_at_once(&o);
	if (!root_in(o.b, root) || !block(&o, n, 1, 1))
		return refuse();
	if ((uint32_t)root != o.b->me) {
		if (!readable(send, n))
			return refuse();
		arrive(&o);
		return give(&o, REDUCE, send, n, (uint64_t)1 << root) ? finish(&o) : refuse();
	}
	const void *own = send == MPI_IN_PLACE ? recv : send;
	uint64_t size = impi_width[(uintptr_t)type];
	if (!writable(recv, n) || !aligned(recv, size) || !aligned(own, size) || (own == send && (!readable(send, n) || overlap(send, n, recv, n))))
		return refuse();
	if (o.lent && own == recv)
		return refuse(); // or Go could not begin again
	arrive(&o);
	if (!all_posted(&o, REDUCE, n) || !(o.lent ? combine_lent(&o, f, own, recv, n, size) : impi_combine(&o, f, own, recv, n, type)))
		return refuse();
	return finish(&o);
}

int impi_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct op o;
	uint64_t n = bytes(count, type);
	loop *f = impi_loop_of(op, type);
	if (impi_site_allreduce(send, recv, count, type, op, comm))
		return 1;
	if (f == NULL || n > ALLREDUCE_MOST || !start(&o, comm))
		return 0;
	if (n == 0)
		return done_at_once(&o);
	const void *own = send == MPI_IN_PLACE ? recv : send;
	uint64_t size = impi_width[(uintptr_t)type];
	if (!writable(recv, n) || !aligned(recv, size) || !aligned(own, size) || (own == send && (!readable(send, n) || overlap(send, n, recv, n))))
		return refuse();
	arrive(&o);
	if (!post(&o, ALLREDUCE, own, n) || !all_posted(&o, ALLREDUCE, n) || !impi_combine(&o, f, own, recv, n, type))
		return refuse();
	return finish(&o);
}
