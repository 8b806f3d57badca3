// How long C waits before Go does, which can sleep and looks at all links, and when it offers its
// core meanwhile: as package plugins/sdk/support/polling does for Go.

#ifndef IMPI_PATIENCE_H
#define IMPI_PATIENCE_H

#include <sched.h>
#include "gate.h"
#include "measure.h"

// How Go waits, in nanoseconds and polls, and how often C looks between two yields: at memory, and
// at a carrier, which takes as long as some looks at memory.
enum { PATIENCE = 200000, STOLEN = 20000, POLLS_MAX = 64, LOOKS = 4, CARRIER_LOOKS = 8, LAST_LOOKS = 256 };

// observe sets how often C looks before it yields from the time of a yield, as Go's Spinner does.
// Go has no occasion to do that while all waits end in C. A yield in which another thread ran
// halves the looks only: on a core to which a launcher has bound this process, that is often one of
// the Go runtime's, for a microsecond.
static inline void observe(uint64_t yield)
{
	if (yield > x->shared)
		x->polls /= 2;
	else
		x->polls = x->polls == 0 ? 1 : x->polls < POLLS_MAX / 2 ? 2 * x->polls : POLLS_MAX;
}

// A wait for something that comes by a carrier. Go takes long to look at one: if one proc left its
// wait to Go, so would the other one, which waits for it, and again the first. So C waits as long
// as Go would before it sleeps.
struct wait {
	int looks; // before the next yield
	uint64_t begun; // when it has first offered the core; 0: not yet
};

// wait_for begins a wait, with more looks than usual by more. Where other threads compute, C only
// makes the first looks, since Go would sleep then; these take longer than a message that is under
// way.
static inline struct wait wait_for(int more)
{
	if (x->polls > 0)
		return (struct wait){ .looks = x->polls * CARRIED + more };
	return (struct wait){ .looks = x->yields ? CARRIER_LOOKS : LAST_LOOKS + more / 4 };
}

// offer yields the core, and reports whether C goes on waiting.
__attribute__((noinline)) static int offer(struct wait *w)
{
	if (!x->yields || x->serves)
		return 0;
	uint64_t before = impi_nanoseconds();
	if (w->begun == 0)
		w->begun = before;
	else if (before - w->begun >= PATIENCE)
		return 0;
	x->carried++; // Go looks at the other links after fewer calls that have waited for long
	sched_yield();
	uint64_t took = impi_nanoseconds() - before;
	observe(took);
	w->looks = took <= x->shared ? x->polls * CARRIER_LOOKS : CARRIER_LOOKS;
	if (took > STOLEN)
		w->begun = 1; // the next looks are the last ones: what is waited for may have come meanwhile
	return 1;
}

// goes_on reports whether C looks once more.
static inline int goes_on(struct wait *w)
{
	if (GLANCE(x->leave_asked))
		return 0;
	return w->looks-- > 0 || offer(w);
}

#endif
