// Copies that are slow on some processors, and how to avoid that.
//
// AMD's Zen 3 and Zen 4 copy by "rep movsb", which the C library and the kernel use for a few KiB
// and more, at a twentieth of the usual speed if the destination lies 1 to 31 bytes behind the
// source within a page (glibc bug 30994, mended in 2.39). That is usual: memory that is shared
// begins at a page, and malloc's begins 16 bytes behind it
// (docs/decisions/0067-copies-that-are-slow.md).

#ifndef IMPI_COPIES_H
#define IMPI_COPIES_H

#include <stddef.h>
#include <stdint.h>

enum { AHEAD_LEAST = 2 << 10, AHEAD_PAGE = 4096, AHEAD_END = 32 };

// impi_slow_ahead says that this processor is one of those.
extern __attribute__((visibility("hidden"))) int impi_slow_ahead;

// impi_is_slow reports whether copying much from one place to the other is slow.
static inline int impi_is_slow(const void *to, const void *from)
{
	return impi_slow_ahead && ((uintptr_t)to - (uintptr_t)from) % AHEAD_PAGE - 1 < AHEAD_END - 1;
}

// impi_has_slow_ahead finds out whether this processor is one of those, and impi_copy_ahead copies
// n bytes, at least AHEAD_END, on one. The destination may overlap the source if it begins in front
// of it.
__attribute__((visibility("hidden"))) int impi_has_slow_ahead(void);
__attribute__((visibility("hidden"))) void *impi_copy_ahead(void *to, const void *from, size_t n);

#endif
