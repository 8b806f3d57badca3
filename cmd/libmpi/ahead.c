// See copies.h.

#include "copies.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

int impi_has_slow_ahead(void)
{
	enum { ZEN3_AND_4 = 0x19 };
	unsigned a, b, c, d;
	if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx || d != signature_AMD_edx)
		return 0;
	__get_cpuid(1, &a, &b, &c, &d);
	__builtin_cpu_init();
	return (a >> 8 & 0xf) + (a >> 20 & 0xff) == ZEN3_AND_4 && __builtin_cpu_supports("avx");
}

__attribute__((target("avx"))) void *impi_copy_ahead(void *to, const void *from, size_t n)
{
	enum { WIDTH = 32 };
	char *d = to, *end = d + n;
	const char *s = from;
	_mm256_storeu_si256((__m256i *)d, _mm256_loadu_si256((const __m256i *)s));
	size_t head = WIDTH - (uintptr_t)d % WIDTH; // from here on stores are within a line
	for (d += head, s += head; end - d >= 4 * WIDTH; d += 4 * WIDTH, s += 4 * WIDTH) {
		__m256i v0 = _mm256_loadu_si256((const __m256i *)s), v1 = _mm256_loadu_si256((const __m256i *)(s + WIDTH));
		__m256i v2 = _mm256_loadu_si256((const __m256i *)(s + 2 * WIDTH)), v3 = _mm256_loadu_si256((const __m256i *)(s + 3 * WIDTH));
		_mm256_store_si256((__m256i *)d, v0);
		_mm256_store_si256((__m256i *)(d + WIDTH), v1);
		_mm256_store_si256((__m256i *)(d + 2 * WIDTH), v2);
		_mm256_store_si256((__m256i *)(d + 3 * WIDTH), v3);
	}
	for (; end - d >= WIDTH; d += WIDTH, s += WIDTH)
		_mm256_store_si256((__m256i *)d, _mm256_loadu_si256((const __m256i *)s));
	s += end - WIDTH - d;
	// the end, of which some bytes are stored a second time
	_mm256_storeu_si256((__m256i *)(end - WIDTH), _mm256_loadu_si256((const __m256i *)s));
	return to;
}
#endif
