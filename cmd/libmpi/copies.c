// ThreadSanitizer puts its own memcpy in the place of the C library's, and takes what the library
// copies through memory that procs share for races of the program's threads: it does not see how
// the library keeps its copies apart. So the library has these functions to itself, as much of a
// jump as those of the dynamic linker, which lead to what the program would call, so that
// AddressSanitizer and valgrind look at the program's buffers; but with ThreadSanitizer to the C
// library itself.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include "copies.h"

#define OWN __attribute__((visibility("hidden")))

typedef void *(*copier)(void *, const void *, size_t);
typedef void *(*filler)(void *, int, size_t);
typedef int (*comparer)(const void *, const void *, size_t);

// Until the library is loaded, constructors of others may call it.
__attribute__((optimize("no-tree-loop-distribute-patterns"))) static void *early(void *to, const void *from, size_t n)
{
	char *d = to;
	const char *s = from;
	if (d < s)
		for (size_t i = 0; i < n; i++)
			d[i] = s[i];
	else
		for (size_t i = n; i > 0; i--)
			d[i - 1] = s[i - 1];
	return to;
}

__attribute__((optimize("no-tree-loop-distribute-patterns"))) static void *fillEarly(void *to, int c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = c;
	return to;
}

static int compareEarly(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;
	for (; n > 0; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

static copier copy = early, move = early;
static filler fill = fillEarly;
static comparer compare = compareEarly;

int impi_slow_ahead; // 0 until the library is loaded, and where a tool looks at copies

OWN void *memcpy(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
	if (n >= AHEAD_LEAST && impi_is_slow(to, from))
		return impi_copy_ahead(to, from, n);
#endif
	return copy(to, from, n);
}
OWN void *memmove(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
	if (n >= AHEAD_LEAST && impi_is_slow(to, from) && (uintptr_t)to - (uintptr_t)from >= n)
		return impi_copy_ahead(to, from, n);
#endif
	return move(to, from, n);
}
OWN void *memset(void *to, int c, size_t n) { return fill(to, c, n); }
OWN int memcmp(const void *a, const void *b, size_t n) { return compare(a, b, n); }

// find looks for the functions where the program finds them.
__attribute__((constructor(101))) static void find(void)
{
	void *at = RTLD_DEFAULT, *f;
	if (dlsym(RTLD_DEFAULT, "__tsan_init")) {
		void *c = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); // stays open, as the library does
		if (c)
			at = c;
	}
#if defined(__x86_64__)
	if (!dlsym(RTLD_DEFAULT, "__tsan_init") && !dlsym(RTLD_DEFAULT, "__asan_init"))
		impi_slow_ahead = impi_has_slow_ahead();
#endif
	if ((f = dlsym(at, "memcpy")))
		copy = (copier)f;
	if ((f = dlsym(at, "memmove")))
		move = (copier)f;
	if ((f = dlsym(at, "memset")))
		fill = (filler)f;
	if ((f = dlsym(at, "memcmp")))
		compare = (comparer)f;
}
