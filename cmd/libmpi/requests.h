// The requests of C: see fastrequest.h and faststart.c.

#ifndef IMPI_REQUESTS_H
#define IMPI_REQUESTS_H

#include "gate.h"

// A request of C is a place in a table. Its handle has the kind, the index of the place, and the
// generation, which tells it from earlier requests in the same place.
static inline MPI_Request handle(struct request *r)
{
	uint64_t i = (uint64_t)(r - x->table);
	return (MPI_Request)(uintptr_t)((uint64_t)r->gen << 32 | (uint64_t)KIND << KIND_SHIFT | i << SHIFT);
}

// request returns the request of a handle, or NULL if it is not one of C's. The gate is passed.
static inline struct request *request(MPI_Request h)
{
	uint64_t v = (uint64_t)(uintptr_t)h, i = (uint32_t)v >> SHIFT & ((1u << (KIND_SHIFT - SHIFT)) - 1);
	if ((uint32_t)v >> KIND_SHIFT != KIND || v % (1 << SHIFT) != 0 || i >= REQUESTS || x->table[i].gen != v >> 32 || x->table[i].state == FREE)
		return NULL;
	return &x->table[i];
}

// new takes a free request, which there must be. The gate is passed.
static inline struct request *new(uint32_t state, MPI_Comm comm, int peer)
{
	struct request *r = &x->table[x->spare];
	x->spare = r->next;
	r->gen++;
	r->state = state;
	r->comm = (uintptr_t)comm;
	r->peer = peer;
	r->next = NONE;
	return r;
}

// detach takes a request out of a list, in which before is the one before it, or NONE. The gate is
// passed.
static inline void detach(int32_t *first, int32_t *last, int32_t before, struct request *r)
{
	if (before == NONE)
		*first = r->next;
	else
		x->table[before].next = r->next;
	if (*last == (int32_t)(r - x->table))
		*last = before;
}

#endif
