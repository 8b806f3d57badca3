#include "measure.h"
#include "fastpath.h"

struct measure impi_measure;

// impi_called counts a call that has begun at a time of impi_clock.
void impi_called(int call, uint64_t begun, int peer, int tag, int64_t size, uintptr_t comm)
{
	(void)peer, (void)tag, (void)size, (void)comm;
	struct sum *s = &impi_measure.sums[call];
	atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->time, impi_clock() - begun, memory_order_relaxed);
}

// impi_size is the size of a buffer, or -1 if only Go knows it.
int64_t impi_size(MPI_Count count, MPI_Datatype type)
{
	uintptr_t t = (uintptr_t)type;
	return t < TYPES && impi_width[t] > 0 && count >= 0 ? count * impi_width[t] : -1;
}
