// Long messages between procs by the site's own MPI, without entering Go: a short message has the
// envelope, and the data go straight from the sender's memory to the receiver's
// (docs/decisions/0047-native-sites.md).

#ifndef IMPI_FAST_LONG_H
#define IMPI_FAST_LONG_H

#include "requests.h"

enum { LOOK_BYTES = 64 }; // for each so many bytes of data that are moving C looks once more

// most is the longest message that C may be able to send or receive.
static inline uint64_t most(void) { return x->carriers.lend != NULL ? LONG_MOST : MAX_FASTBOX; }

// is_apart reports whether the data of a message of n bytes come apart.
static inline int is_apart(struct peer *l, struct place *p, uint32_t n) { return n > CARRIED_MOST && l->carrier != NULL && *(uint32_t *)p->data == NOWHERE; }

// lends reports whether C can send a message of n bytes whose data go apart. The gate is passed.
static inline int lends(uint64_t n) { return n <= LONG_MOST && x->spare != NONE; }

// join makes a request one whose data the site's MPI is moving. The gate is passed.
static inline void join(struct request *r, int32_t number)
{
	int32_t i = (int32_t)(r - x->table);
	r->state = MOVING;
	r->board = number;
	r->what = 0;
	r->next = NONE;
	if (x->moves.first == NONE)
		x->moves.first = i;
	else
		x->table[x->moves.last].next = i;
	x->moves.last = i;
}

// sending makes the request of a send whose data are moving, or have left if number is NONE. The
// gate is passed.
static inline struct request *sending(int32_t number, MPI_Comm comm, uint64_t n)
{
	struct request *r = new(DONE, comm, NONE);
	r->bytes = (uint32_t)n;
	if (number != NONE)
		join(r, number);
	return r;
}

// moved reports whether the data of a request that is moving are there, or have left. The gate is
// passed.
static inline int moved(struct request *r)
{
	if (r->board == NONE) // it has failed, and Go says why
		return 0;
	int error = x->carriers.test(x->carriers.library, r->board);
	if (error == NONE)
		return 0;
	if (error != 0) {
		r->board = NONE;
		r->what = (uint32_t)error;
		return 0;
	}
	int32_t i = (int32_t)(r - x->table), before = NONE;
	for (int32_t k = x->moves.first; k != i; k = x->table[k].next)
		before = k;
	detach(&x->moves.first, &x->moves.last, before, r);
	r->state = DONE;
	return 1;
}

#endif
