// How C combines numbers: a loop for each predefined operation and each size and kind of C's
// numbers.

#include <stdint.h>
#include <string.h>
#include "loops.h"
#include "fastpath.h"

// Vectors are worth some code for the processors that have them.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((optimize("O3"), target_clones("avx2", "default")))
#else
#define WIDE
#endif

// Each loop sets b to a combined with b, where a is of the lower rank. Integers are combined
// without signs where that makes no difference, since they wrap.
#define EACH(name, type, expression) \
	WIDE static void name(const void *from, void *to, uint64_t n) \
	{ \
		const type *p = from; \
		type *q = to; \
		for (uint64_t i = 0; i < n; i++) { \
			type a = p[i], b = q[i]; \
			q[i] = (type)(expression); \
		} \
	}

#define EACH_INTEGER(bits) \
	EACH(sum##bits, uint##bits##_t, a + b) \
	EACH(prod##bits, uint##bits##_t, (uint64_t)a * b) \
	EACH(max##bits, int##bits##_t, a > b ? a : b) \
	EACH(min##bits, int##bits##_t, a < b ? a : b) \
	EACH(maxu##bits, uint##bits##_t, a > b ? a : b) \
	EACH(minu##bits, uint##bits##_t, a < b ? a : b) \
	EACH(band##bits, uint##bits##_t, a & b) \
	EACH(bor##bits, uint##bits##_t, a | b) \
	EACH(bxor##bits, uint##bits##_t, a ^ b) \
	EACH(land##bits, uint##bits##_t, a != 0 && b != 0) \
	EACH(lor##bits, uint##bits##_t, (a | b) != 0) \
	EACH(lxor##bits, uint##bits##_t, (a != 0) != (b != 0))

EACH_INTEGER(8)
EACH_INTEGER(16)
EACH_INTEGER(32)
EACH_INTEGER(64)

// Of two zeros the larger one is that without a sign. NaN gives NaN.
#define EACH_FLOAT(type, bits) \
	static inline type zero##bits(type a, type b, int larger) \
	{ \
		uint##bits##_t p, q; \
		memcpy(&p, &a, sizeof a); \
		memcpy(&q, &b, sizeof b); \
		p = larger ? p & q : p | q; \
		memcpy(&a, &p, sizeof a); \
		return a; \
	} \
	EACH(fsum##bits, type, a + b) \
	EACH(fprod##bits, type, a * b) \
	EACH(fmax##bits, type, a > b ? a : a < b ? b : a == b ? zero##bits(a, b, 1) : a + b) \
	EACH(fmin##bits, type, a < b ? a : a > b ? b : a == b ? zero##bits(a, b, 0) : a + b) \
	WIDE static int nan##bits(const void *from, uint64_t n) \
	{ \
		const type *p = from; \
		int found = 0; \
		for (uint64_t i = 0; i < n; i++) \
			found |= p[i] != p[i]; \
		return found; \
	}

EACH_FLOAT(float, 32)
EACH_FLOAT(double, 64)

// The loops by operation, for elements of 1, 2, 4 and 8 bytes.
#define SIZES(name) { name##8, name##16, name##32, name##64 }
static loop *const signed_loops[OPS][4] = {
	[SUM] = SIZES(sum), [PROD] = SIZES(prod), [MAX] = SIZES(max), [MIN] = SIZES(min),
	[LAND] = SIZES(land), [LOR] = SIZES(lor), [LXOR] = SIZES(lxor), [BAND] = SIZES(band), [BOR] = SIZES(bor), [BXOR] = SIZES(bxor),
};
// The loops of unsigned numbers, for the operations where signs matter.
static loop *const unsigned_loops[OPS][4] = { [MAX] = SIZES(maxu), [MIN] = SIZES(minu) };
static loop *const float_loops[OPS][2] = { [SUM] = { fsum32, fsum64 }, [PROD] = { fprod32, fprod64 }, [MAX] = { fmax32, fmax64 }, [MIN] = { fmin32, fmin64 } };

// impi_loop_of returns the loop of an operation on elements of a type, or NULL.
loop *impi_loop_of(MPI_Op op, MPI_Datatype type)
{
	uintptr_t t = (uintptr_t)type, h = (uintptr_t)op;
	if (t >= TYPES || h >= OP_HANDLES)
		return NULL;
	unsigned i = impi_op[h], size = impi_number[t] & BYTES, log = size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
	switch (impi_number[t] & SORT) {
	case UNSIGNED:
		if (unsigned_loops[i][log] != NULL)
			return unsigned_loops[i][log];
		// fall through
	case SIGNED:
		return signed_loops[i][log];
	case FLOAT:
		return float_loops[i][log - 2];
	case BITS:
		return i >= BAND ? signed_loops[i][log] : NULL;
	case TRUTH:
		return i == LAND || i == LOR || i == LXOR ? signed_loops[i][log] : NULL;
	}
	return NULL;
}

int impi_has_nan(const void *from, uint64_t n, uint64_t size) { return size == 4 ? nan32(from, n) : nan64(from, n); }
