/* Blocking collective operations of members on one host, which C code does by itself over the
   host's board, mixed with all that it leaves to Go. All procs know the whole plan; whether a
   member is in C or in Go in an operation is its own choice: Go takes derived datatypes, and all
   while a nonblocking operation is under way. Arguments are the seed, and "host" if all procs are
   on one host, so that it is known in which order short vectors are combined. */
#include "test.h"
#include <math.h>
#include <stdint.h>
#include <unistd.h>

#ifndef STEPS
#define STEPS 6000
#endif
enum { COMMS = 6, LONGEST = 280000, MANY = 20 };

static unsigned plan = 1, mine;
static MPI_Comm comms[COMMS], aside;
static MPI_Request waiting = MPI_REQUEST_NULL;
static char *sent, *got, *want;
static MPI_Datatype pair; /* eight bytes */

static unsigned draw(unsigned *state, unsigned n) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % n;
}

/* byte is what rank r gives at a place of step k. */
static char byte(int k, int r, int i) { return (char)(k * 13 + r * 59 + i * 7 + i / 251); }

static void give(char *p, int n, int k, int r, int from) {
  int i;
  for (i = 0; i < n; i++) p[i] = byte(k, r, from + i);
}

/* length draws a number of bytes, a multiple of eight: often one near a limit. */
static int length(int members) {
  static const int limits[] = {8, 48, 56, 4096, 4104, 8192, 8200, 16384, 32768, 32776, 65536, 131072, 131080};
  int n = limits[draw(&plan, sizeof limits / sizeof *limits)];
  switch (draw(&plan, 4)) {
  case 0: n /= members; break;
  case 1: n = n / members + 8; break;
  case 2: n = 8 * (int)draw(&plan, 40); break;
  }
  n = n / 8 * 8;
  return n * members > LONGEST ? LONGEST / members / 8 * 8 : n;
}

/* elsewhere reports whether this member is to do an operation in Go. */
static int elsewhere(void) { return draw(&mine, 3) == 0; }

#define TYPED(n) (go ? (n) / 8 : (n)), (go ? pair : MPI_BYTE)

/* moved does an operation that moves bytes. */
static void moved(int k, MPI_Comm c, int what, int n, int root, int in_place) {
  int me, members, r, go = elsewhere(), whole;
  MPI_Comm_rank(c, &me);
  MPI_Comm_size(c, &members);
  whole = n * members;
  memset(got, 0x55, whole + 8);
  memset(want, 0x55, whole + 8);
  give(sent, whole, k, me, 0);
  switch (what) {
  case 0:
    if (me == root) give(got, n, k, root, 0);
    give(want, n, k, root, 0);
    CALL(MPI_Bcast(got, TYPED(n), root, c));
    break;
  case 1:
    for (r = 0; r < members && me == root; r++) give(want + r * n, n, k, r, 0);
    if (me == root && in_place) memcpy(got + me * n, sent, n);
    if (me == root && in_place) CALL(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, TYPED(n), root, c));
    else CALL(MPI_Gather(sent, TYPED(n), got, TYPED(n), root, c));
    break;
  case 2:
    if (!(me == root && in_place)) give(want, n, k, root, me * n);
    if (me == root && in_place) CALL(MPI_Scatter(sent, TYPED(n), MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, c));
    else CALL(MPI_Scatter(sent, TYPED(n), got, TYPED(n), root, c));
    break;
  case 3:
    for (r = 0; r < members; r++) give(want + r * n, n, k, r, 0);
    if (in_place) memcpy(got + me * n, sent, n);
    if (in_place) CALL(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, TYPED(n), c));
    else CALL(MPI_Allgather(sent, TYPED(n), got, TYPED(n), c));
    break;
  default:
    for (r = 0; r < members; r++) give(want + r * n, n, k, r, me * n);
    if (in_place) memcpy(got, sent, whole);
    if (in_place) CALL(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, TYPED(n), c));
    else CALL(MPI_Alltoall(sent, TYPED(n), got, TYPED(n), c));
  }
  CHECK(memcmp(got, want, whole + 8) == 0);
  for (r = 0; r < whole; r++)
    if (sent[r] != byte(k, me, r)) { CHECK(!"what was sent is as it was"); break; }
}

/* The types of reductions, the operations that each has, and how a and b are combined. */
#define INTEGER(X, t, m)                                                              \
  X(t, m, MPI_SUM, (t)(a + b)) X(t, m, MPI_PROD, (t)((uint64_t)a * (uint64_t)b))      \
  X(t, m, MPI_MAX, a > b ? a : b) X(t, m, MPI_MIN, a < b ? a : b)                     \
  X(t, m, MPI_LAND, a && b) X(t, m, MPI_LOR, a || b) X(t, m, MPI_LXOR, !a != !b)      \
  X(t, m, MPI_BAND, a & b) X(t, m, MPI_BOR, a | b) X(t, m, MPI_BXOR, a ^ b)
#define FLOATING(X, t, m)                                                             \
  X(t, m, MPI_SUM, a + b) X(t, m, MPI_PROD, a * b)                                    \
  X(t, m, MPI_MAX, larger(a, b)) X(t, m, MPI_MIN, -larger(-a, -b))
#define ALL(X)                                                                        \
  INTEGER(X, int8_t, MPI_INT8_T) INTEGER(X, uint8_t, MPI_UNSIGNED_CHAR)               \
  INTEGER(X, int16_t, MPI_SHORT) INTEGER(X, uint16_t, MPI_UINT16_T)                   \
  INTEGER(X, int32_t, MPI_INT) INTEGER(X, uint32_t, MPI_UNSIGNED)                     \
  INTEGER(X, int64_t, MPI_LONG) INTEGER(X, uint64_t, MPI_UNSIGNED_LONG)               \
  FLOATING(X, float, MPI_FLOAT) FLOATING(X, double, MPI_DOUBLE)                       \
  X(unsigned char, MPI_BYTE, MPI_BAND, a & b) X(unsigned char, MPI_BYTE, MPI_BXOR, a ^ b) \
  X(unsigned char, MPI_C_BOOL, MPI_LAND, a && b) X(unsigned char, MPI_C_BOOL, MPI_LOR, a || b) \
  X(unsigned char, MPI_C_BOOL, MPI_LXOR, !a != !b)

/* larger is the maximum where NaN is larger than all, and 0 larger than -0. */
static double larger(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}

/* Numbers that show in which order they were combined; now and then a special one. */
static double number(int k, int r, int i) {
  switch ((unsigned)(k * 7 + r * 3 + i * 11) % 97) {
  case 0: return k % 3 == 0 ? NAN : 0.0;
  case 1: case 2: return -0.0;
  case 3: case 4: return 0.0;
  case 5: return INFINITY;
  }
  return 1.0 / (1 + r) + i % 17 - 8.0 / (1 + i % 5);
}

#define IS_FLOAT(t) ((t)0.5 != 0)
#define VALUE(t, k, r, i) (IS_FLOAT(t) ? (t)number(k, r, i) : (t)((uint64_t)((unsigned)(k) * 2654435761u + (unsigned)(r) * 40503u + (unsigned)(i) * 97u) * 0x9e3779b97f4a7c15u >> (i % 3 ? 3 : 59)))
static int n_cases, chosen, one_host;

/* One case: gives the operands, or computes the result of all, from the last rank to the first. */
#define CASE(t, m, o, e)                                                              \
  if (n_cases++ == chosen) {                                                          \
    int i, r, count = n / (int)sizeof(t);                                             \
    *type = m, *op = o, *width = (int)sizeof(t), *floats = IS_FLOAT(t);               \
    for (i = 0; i < count; i++) {                                                     \
      t b = VALUE(t, k, members - 1, i);                                              \
      ((t *)(void *)sent)[i] = VALUE(t, k, me, i);                                    \
      for (r = members - 2; r >= 0; r--) {                                            \
        t a = VALUE(t, k, r, i);                                                      \
        b = (t)(e);                                                                   \
      }                                                                               \
      ((t *)(void *)want)[i] = b;                                                     \
    }                                                                                 \
  }

static void prepare(int k, int n, int me, int members, MPI_Datatype *type, MPI_Op *op, int *width, int *floats) {
  n_cases = 0;
  ALL(CASE)
}

/* equal compares results, to the last bit where exact is set, but for which NaN it is. */
static int equal(int n, int width, int floats, int exact) {
  int i;
  if (!floats) return memcmp(got, want, n) == 0;
  for (i = 0; i < n; i += width) {
    double a = width == 4 ? *(float *)(void *)(got + i) : *(double *)(void *)(got + i);
    double b = width == 4 ? *(float *)(void *)(want + i) : *(double *)(void *)(want + i);
    if (isnan(a) && isnan(b)) continue;
    if (memcmp(got + i, want + i, width) != 0 && (exact || !(fabs(a - b) <= 1e-4 * (1 + fabs(b))))) return 0;
  }
  return 1;
}

/* reduced does a reduction. */
static void reduced(int k, MPI_Comm c, int all, int n, int root, int in_place) {
  int me, members, width = 1, floats = 0, result;
  MPI_Datatype type = MPI_BYTE;
  MPI_Op op = MPI_SUM;
  MPI_Comm_rank(c, &me);
  MPI_Comm_size(c, &members);
  chosen = (int)draw(&plan, n_cases);
  prepare(k, n, me, members, &type, &op, &width, &floats);
  result = all || me == root;
  in_place = in_place && result;
  memset(got, 0x55, n + 8);
  if (in_place) memcpy(got, sent, n);
  if (all) CALL(MPI_Allreduce(in_place ? MPI_IN_PLACE : sent, got, n / width, type, op, c));
  else CALL(MPI_Reduce(in_place ? MPI_IN_PLACE : sent, got, n / width, type, op, root, c));
  if (result) CHECK(equal(n, width, floats, op == MPI_MAX || op == MPI_MIN || members == 2 || (one_host && n <= 4096)));
  else CHECK(n == 0 || got[0] == 0x55);
  CHECK(got[n] == 0x55);
}

/* reduce_scattered does a reduction of which each member gets a part. */
static void reduce_scattered(int k, MPI_Comm c, int n, int in_place) {
  int me, members, width = 1, floats = 0, part;
  MPI_Datatype type = MPI_BYTE;
  MPI_Op op = MPI_SUM;
  MPI_Comm_rank(c, &me);
  MPI_Comm_size(c, &members);
  chosen = (int)draw(&plan, n_cases);
  prepare(k, n, me, members, &type, &op, &width, &floats);
  part = n / width / members * width;
  memset(got, 0x55, n + 8);
  if (in_place) memcpy(got, sent, part * members);
  CALL(MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : sent, got, part / width, type, op, c));
  memmove(want, want + me * part, part);
  CHECK(equal(part, width, floats, op == MPI_MAX || op == MPI_MIN || members == 2));
  CHECK(got[in_place ? part * members : part] == 0x55);
}

/* same_bits wants all members to have the same result, NaNs included. */
static void same_bits(MPI_Comm c, int k) {
  double in[4], out[4], first[4];
  union { uint64_t bits; double value; } x;
  int i, me;
  MPI_Comm_rank(c, &me);
  for (i = 0; i < 4; i++) {
    x.bits = 0x7ff8000000000000u + (unsigned)(k + me * 5 + i);
    in[i] = (k + me + i) % 3 ? x.value : 1.0 + me;
  }
  CALL(MPI_Allreduce(in, out, 4, MPI_DOUBLE, k % 2 ? MPI_MAX : MPI_SUM, c));
  memcpy(first, out, sizeof out);
  CALL(MPI_Bcast(first, 4, MPI_DOUBLE, 0, c));
  CHECK(memcmp(first, out, sizeof out) == 0);
}

/* burst has a root far ahead of the others, one of which does not come for a while: it must not
   write over what they still have to read. */
static void burst(int k, MPI_Comm c, int n, int root) {
  int i, me;
  MPI_Comm_rank(c, &me);
  if (me != root && draw(&mine, 2)) usleep(300);
  for (i = 0; i < 24; i++) {
    if (me == root) give(got, n, k + i, root, 0);
    CALL(MPI_Bcast(got, n, MPI_BYTE, root, c));
    give(want, n, k + i, root, 0);
    CHECK(memcmp(got, want, n) == 0);
  }
}

/* divert begins or ends something that makes Go do all operations of this member. */
static void divert(void) {
  if (waiting == MPI_REQUEST_NULL && draw(&mine, 2)) CALL(MPI_Ibarrier(aside, &waiting));
}

static void meet(void) {
  if (waiting == MPI_REQUEST_NULL) CALL(MPI_Ibarrier(aside, &waiting));
  CALL(MPI_Wait(&waiting, MPI_STATUS_IGNORE));
}

/* make makes a communicator in place of number i. */
static void make(int i) {
  if (comms[i] != MPI_COMM_NULL) CALL(MPI_Comm_free(&comms[i]));
  switch (draw(&plan, 4)) {
  case 0: CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i])); break;
  case 1: CALL(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[i])); break;
  case 2: CALL(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[i])); break;
  default: CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &comms[i]));
  }
  CALL(MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN));
}

/* truncated reports whether members without a board, which exchange messages, have found that
 * counts differ. */
static int truncated(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return !one_host && class == MPI_ERR_TRUNCATE;
}

/* wrong_counts has one of two members on a host call operations with another length: both get an
   error, and the next operation works. */
static void wrong_counts(void) {
  MPI_Comm c;
  int me, i, code, x = 1, sum = 0;
  double a[64] = {0}, b[64];
  CALL(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &c));
  CALL(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
  CALL(MPI_Comm_rank(c, &me));
  for (i = 0; i < 5; i++) {
    CALL(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c));
    CHECK(sum == 2);
    CALL(MPI_Allgather(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, c));
    code = MPI_Allgather(a, 2 + me, MPI_DOUBLE, b, 2 + me, MPI_DOUBLE, c);
    if (!truncated(code)) FAILS(MPI_ERR_COUNT, code);
    code = MPI_Allgather(sent, 40000 + me, MPI_BYTE, got, 40000 + me, MPI_BYTE, c);
    if (!truncated(code)) FAILS(MPI_ERR_COUNT, code);
    CALL(MPI_Alltoall(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, c));
    code = MPI_Allreduce(a, b, 1 + me, MPI_DOUBLE, MPI_SUM, c);
    if (!truncated(code)) FAILS(MPI_ERR_COUNT, code);
    CALL(MPI_Bcast(a, 2, MPI_DOUBLE, 0, c));
    if (me == 0) CALL(MPI_Bcast(a, 2, MPI_DOUBLE, 0, c));
    else FAILS(MPI_ERR_COUNT, MPI_Bcast(a, 3, MPI_DOUBLE, 0, c));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 2, MPI_DOUBLE, 2, c));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 2, MPI_DOUBLE, MPI_BAND, c));
    FAILS(MPI_ERR_COUNT, MPI_Reduce(a, b, -1, MPI_DOUBLE, MPI_SUM, 0, c));
    FAILS(MPI_ERR_BUFFER, MPI_Gather(NULL, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, c));
  }
  CALL(MPI_Comm_free(&c));
}

/* many has more communicators at a time than a board has slots. */
static void many(void) {
  MPI_Comm made[MANY];
  int i, k, sum, one = 1;
  for (i = 0; i < MANY; i++) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &made[i]));
  for (k = 0; k < 5; k++)
    for (i = 0; i < MANY; i++) {
      CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[i]));
      CHECK(sum == size);
    }
  for (i = 0; i < MANY; i++) CALL(MPI_Comm_free(&made[i]));
}

int main(int argc, char **argv) {
  int k, i, n, members, what, root, in_place;
  MPI_Datatype type;
  MPI_Op op;
  begin(&argc, &argv);
  if (argc > 1) plan = (unsigned)atoi(argv[1]);
  one_host = argc > 2;
  mine = plan * 31 + (unsigned)rank * 977;
  sent = malloc(LONGEST + 64), got = malloc(LONGEST + 64), want = malloc(LONGEST + 64);
  CALL(MPI_Type_contiguous(2, MPI_INT, &pair));
  CALL(MPI_Type_commit(&pair));
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &aside));
  for (i = 0; i < COMMS; i++) comms[i] = MPI_COMM_NULL, make(i);
  prepare(0, 0, 0, 1, &type, &op, &n, &i); /* counts the cases */
  if (size % 2 == 0) wrong_counts();
  for (k = 0; k < STEPS; k++) {
    MPI_Comm c = draw(&plan, 3) ? MPI_COMM_WORLD : comms[draw(&plan, COMMS)];
    MPI_Comm_size(c, &members);
    n = length(size); /* the same for all, as communicators differ in size */
    root = (int)draw(&plan, members), in_place = draw(&plan, 4) == 0;
    what = (int)draw(&plan, 10);
    if (what < 5) moved(k, c, what, n, root, in_place);
    else if (what == 6 && draw(&plan, 2)) reduce_scattered(k, c, n, in_place);
    else if (what < 7) reduced(k, c, what == 5, n, root, in_place);
    else if (what == 7) CALL(MPI_Barrier(c));
    else if (what == 8) burst(k, c, n / 4, root);
    else same_bits(c, k);
    divert();
    if (k % 8 == 7) meet();
    if (k % 50 == 49) meet(), make((int)draw(&plan, COMMS));
    if (k % 1000 == 999) many();
  }
  return end("fastboard");
}
