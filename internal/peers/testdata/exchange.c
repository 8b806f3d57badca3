/* Command exchange, in C: what its package exchange in Go does, call by call, for
   any MPI. Both run in one job, and talk to each other.

   usage: exchange TEST [NUMBER...] [+ TEST [NUMBER...]]...

   Every rank runs the same tests. One that finds a fault says so and aborts. */

#include <mpi.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD

static int rank, size;
static const char *test = "start";

static void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "exchange: %s: rank %d: ", test, rank);
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  fflush(stderr);
  va_end(args);
  MPI_Abort(WORLD, 1);
  exit(1);
}

static void must(int code, const char *what) {
  if (code != MPI_SUCCESS) fail("%s gave %d", what, code);
}
#define DO(call) must((call), #call)

static void *memory(size_t n) {
  void *p = malloc(n ? n : 1);
  if (!p) fail("no memory for %lu bytes", (unsigned long)n);
  return p;
}

/* The byte at i of the message with a seed. */
static unsigned char patternByte(long i, long seed) { return (unsigned char)(i * 31 + i / 251 + seed); }

static void write_letters(unsigned char *b, long n, long seed) {
  long i;
  for (i = 0; i < n; i++) b[i] = patternByte(i, seed);
}

static void read_letters(const unsigned char *b, long n, long seed) {
  long i;
  for (i = 0; i < n; i++)
    if (b[i] != patternByte(i, seed)) fail("byte %ld of %ld is %d, want %d", i, n, b[i], patternByte(i, seed));
}

/* Receives n bytes of the seed, and checks what the status says. */
static void receive(unsigned char *b, long room, long n, long seed, int source, int tag, int from, int with) {
  MPI_Status st;
  int count;
  DO(MPI_Recv(b, (int)room, MPI_BYTE, source, tag, WORLD, &st));
  DO(MPI_Get_count(&st, MPI_BYTE, &count));
  if (st.MPI_SOURCE != from || st.MPI_TAG != with || count != n)
    fail("got %d bytes from %d with tag %d; want %ld from %d with %d", count, st.MPI_SOURCE, st.MPI_TAG, n, from, with);
  read_letters(b, n, seed);
}

static void ring(long *a) {
  long round, value = 0;
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Status st;
  for (round = 0; round < a[0]; round++) {
    int token[2];
    if (rank == 0) {
      token[0] = (int)value; token[1] = (int)round;
      DO(MPI_Send(token, 2, MPI_INT, next, 7, WORLD));
      DO(MPI_Recv(token, 2, MPI_INT, before, 7, WORLD, &st));
      if (token[0] != value + size - 1 || token[1] != round) fail("round %ld: the token is %d, %d", round, token[0], token[1]);
      value = token[0];
    } else {
      DO(MPI_Recv(token, 2, MPI_INT, before, 7, WORLD, &st));
      token[0]++;
      DO(MPI_Send(token, 2, MPI_INT, next, 7, WORLD));
    }
  }
}

/* a: two ranks, the datalen, the longest message. Sizes at the edges of packets. */
static void pingpong(long *a) {
  static const long fixed[] = {0, 1, 2, 7, 8, 100, 1023, 1024, 4096, 65536, 1 << 20, (4 << 20) + 3, 16 << 20, 64 << 20};
  long sizes[64], d = a[2], n = 0, i, k;
  unsigned char *out, *in;
  int peer = rank == a[0] ? (int)a[1] : (int)a[0];
  if (rank != a[0] && rank != a[1]) return;
  for (i = 0; i < (long)(sizeof fixed / sizeof *fixed); i++) sizes[n++] = fixed[i];
  for (k = 1; k <= 5; k++)
    for (i = -1; i <= 1; i++) sizes[n++] = k * d + i;
  out = memory(a[3]); in = memory(a[3]);
  for (i = 0; i < n; i++) {
    long len = sizes[i];
    if (len > a[3]) continue;
    if (rank == a[0]) {
      write_letters(out, len, i);
      DO(MPI_Send(out, (int)len, MPI_BYTE, peer, (int)i, WORLD));
      receive(in, len, len, i + 1, peer, (int)i, peer, (int)i);
    } else {
      receive(in, len, len, i, peer, (int)i, peer, (int)i);
      write_letters(out, len, i + 1);
      DO(MPI_Send(out, (int)len, MPI_BYTE, peer, (int)i, WORLD));
    }
  }
  free(out); free(in);
}

/* a: sender, receiver, tag, length. The send must not be complete before the
   receive is there, and must be soon after. */
static void ssend(long *a) {
  unsigned char *b, note = 0;
  MPI_Request r;
  MPI_Status st;
  int done, from = (int)a[0], to = (int)a[1], tag = (int)a[2];
  if (rank != from && rank != to) return;
  b = memory(a[3]);
  if (rank == from) {
    write_letters(b, a[3], tag);
    DO(MPI_Issend(b, (int)a[3], MPI_BYTE, to, tag, WORLD, &r));
    DO(MPI_Send(&note, 1, MPI_BYTE, to, tag + 1, WORLD));
    DO(MPI_Recv(&note, 1, MPI_BYTE, to, tag + 2, WORLD, &st));
    DO(MPI_Test(&r, &done, &st));
    if (done) fail("a synchronous send was complete without a receive");
    DO(MPI_Send(&note, 1, MPI_BYTE, to, tag + 3, WORLD));
    DO(MPI_Wait(&r, &st));
    DO(MPI_Ssend(b, (int)a[3], MPI_BYTE, to, tag, WORLD));
  } else {
    DO(MPI_Recv(&note, 1, MPI_BYTE, from, tag + 1, WORLD, &st));
    DO(MPI_Send(&note, 1, MPI_BYTE, from, tag + 2, WORLD));
    DO(MPI_Recv(&note, 1, MPI_BYTE, from, tag + 3, WORLD, &st));
    receive(b, a[3], a[3], tag, from, tag, from, tag);
    receive(b, a[3], a[3], tag, from, tag, from, tag);
  }
  free(b);
}

/* a: sender, receiver, tag. Whether a synchronous send is complete after its
   acknowledgement has come: it was sent before 100 round trips of other messages. */
static void lostack(long *a) {
  unsigned char note = 0;
  MPI_Request r;
  MPI_Status st;
  int i, done, peer = rank == a[0] ? (int)a[1] : (int)a[0];
  if (rank != a[0] && rank != a[1]) return;
  if (rank == a[0]) DO(MPI_Issend(&note, 1, MPI_BYTE, peer, (int)a[2], WORLD, &r));
  else DO(MPI_Recv(&note, 1, MPI_BYTE, peer, (int)a[2], WORLD, &st));
  for (i = 0; i < 100; i++) {
    if (rank == a[1]) DO(MPI_Send(&note, 1, MPI_BYTE, peer, 71, WORLD));
    DO(MPI_Recv(&note, 1, MPI_BYTE, peer, 71, WORLD, &st));
    if (rank == a[0]) DO(MPI_Send(&note, 1, MPI_BYTE, peer, 71, WORLD));
  }
  if (rank == a[0]) {
    DO(MPI_Test(&r, &done, &st));
    printf("exchange: tag %ld: %s\n", a[2], done ? "complete" : "never acknowledged");
    fflush(stdout);
    if (!done) DO(MPI_Wait(&r, &st));
  }
}

/* a: sender, receiver, messages. None is received before the last is there. */
static void flood(long *a) {
  long i, from = a[0], to = a[1], n = a[2];
  unsigned char b[64];
  MPI_Status st;
  if (rank == from) {
    for (i = 0; i < n; i++) {
      write_letters(b, i % 64, i);
      DO(MPI_Send(b, (int)(i % 64), MPI_BYTE, (int)to, 11, WORLD));
    }
    DO(MPI_Send(b, 0, MPI_BYTE, (int)to, 12, WORLD));
    DO(MPI_Recv(b, 0, MPI_BYTE, (int)to, 13, WORLD, &st));
  } else if (rank == to) {
    DO(MPI_Recv(b, 0, MPI_BYTE, (int)from, 12, WORLD, &st));
    for (i = 0; i < n; i++) receive(b, 64, i % 64, i, (int)from, 11, (int)from, 11);
    DO(MPI_Send(b, 0, MPI_BYTE, (int)from, 13, WORLD));
  }
}

/* backlog is between ranks that are not LAM's. */
static void backlog(long *a) { (void)a; }

/* a: how many receivers, the receivers. Everybody sends to each of them in turn, which
   does not say from whom it wants what. */
static void wild(long *a) {
  int to, i, k, seen[256];
  long j;
  unsigned char b[300];
  for (j = 0; j < a[0]; j++) {
    to = (int)a[1 + j];
    if (rank != to) {
      for (k = 0; k < 3; k++) {
        write_letters(b, 100 + rank, rank + k);
        DO(MPI_Send(b, 100 + rank, MPI_BYTE, to, 100 * (rank + 1) + k, WORLD));
      }
    } else {
      memset(seen, 0, sizeof seen);
      for (i = 0; i < 3 * (size - 1); i++) {
        MPI_Status st;
        int count;
        DO(MPI_Recv(b, 300, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &st));
        DO(MPI_Get_count(&st, MPI_BYTE, &count));
        if (st.MPI_SOURCE < 0 || st.MPI_SOURCE >= size || count != 100 + st.MPI_SOURCE || st.MPI_TAG != 100 * (st.MPI_SOURCE + 1) + seen[st.MPI_SOURCE])
          fail("got %d bytes from %d with tag %d, after %d of it", count, st.MPI_SOURCE, st.MPI_TAG, seen[st.MPI_SOURCE & 255]);
        read_letters(b, count, st.MPI_SOURCE + seen[st.MPI_SOURCE]++);
      }
    }
    DO(MPI_Barrier(WORLD));
  }
  for (j = 0; j < a[0]; j++) { /* any tag of a source */
    to = (int)a[1 + j];
    if (rank != to) {
      write_letters(b, 10, rank);
      DO(MPI_Send(b, 10, MPI_BYTE, to, 5, WORLD));
      DO(MPI_Send(b, 10, MPI_BYTE, to, 60 + rank, WORLD));
    } else {
      for (i = 0; i < size; i++)
        if (i != rank) receive(b, 300, 10, i, i, 5, i, 5);
      for (i = 0; i < size; i++)
        if (i != rank) receive(b, 300, 10, i, i, MPI_ANY_TAG, i, 60 + i);
    }
    DO(MPI_Barrier(WORLD));
  }
}

/* a: messages per pair, datalen. All pairs at once, short and long ones. */
static void pairs(long *a) {
  long n = a[0], d = a[1], k;
  int peer, used = 0, total = (int)(2 * n * (size - 1));
  MPI_Request *r = memory(total * sizeof *r);
  MPI_Status *st = memory(total * sizeof *st);
  unsigned char **b = memory(total * sizeof *b);
#define LENGTH(from, to, k) (((k) % 3 == 0) ? 5 + (from) : ((k) % 3 == 1) ? d + (to) : 2 * d + 7)
  for (k = 0; k < n; k++)
    for (peer = 0; peer < size; peer++) {
      if (peer == rank) continue;
      b[used] = memory(LENGTH(peer, rank, k));
      DO(MPI_Irecv(b[used], (int)LENGTH(peer, rank, k), MPI_BYTE, peer, (int)k, WORLD, &r[used]));
      used++;
      b[used] = memory(LENGTH(rank, peer, k));
      write_letters(b[used], LENGTH(rank, peer, k), rank * 7 + peer + k);
      DO(MPI_Isend(b[used], (int)LENGTH(rank, peer, k), MPI_BYTE, peer, (int)k, WORLD, &r[used]));
      used++;
    }
  DO(MPI_Waitall(used, r, st));
  used = 0;
  for (k = 0; k < n; k++)
    for (peer = 0; peer < size; peer++) {
      if (peer == rank) continue;
      read_letters(b[used], LENGTH(peer, rank, k), peer * 7 + rank + k);
      free(b[used]); free(b[used + 1]);
      used += 2;
    }
  free(r); free(st); free(b);
}

static void barrier(long *a) {
  long i;
  for (i = 0; i < a[0]; i++) DO(MPI_Barrier(WORLD));
}

/* a: the bytes of a message, how many ranks spawn, the ranks: others, for which this one waits. */
static void spawn(long *a) {
  long i;
  for (i = 0; i < a[1]; i++) DO(MPI_Barrier(WORLD));
}

/* a: datalen, the most items, how many roots, the roots. At the edges of packets. */
static void bcast(long *a) {
  long counts[8], d = a[0] / sizeof(int), i, k, r;
  int root, *b;
  counts[0] = 0; counts[1] = 1; counts[2] = 100; counts[3] = d - 1;
  counts[4] = d; counts[5] = d + 1; counts[6] = 2 * d + 1; counts[7] = 3;
  b = memory((2 * d + 1 + 200) * sizeof *b);
  for (r = 0; r < a[2]; r++)
    for (i = 0; i < 8; i++) {
      long n = counts[i];
      if (n < 0 || n > a[1]) continue;
      root = (int)a[3 + r];
      for (k = 0; k < n; k++) b[k] = rank == root ? (int)(k * 3 + root - 5) : -1;
      DO(MPI_Bcast(b, (int)n, MPI_INT, root, WORLD));
      for (k = 0; k < n; k++)
        if (b[k] != k * 3 + root - 5) fail("from %d: item %ld of %ld is %d", root, k, n, b[k]);
      DO(MPI_Barrier(WORLD)); /* LAM takes a second one for a note of its own */
    }
  free(b);
}

/* Composition of maps x -> a x + b, which does not commute. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type) {
  int *x = in, *y = inout, i;
  (void)type;
  for (i = 0; i + 1 < *len; i += 2) {
    int m = (int)((long)x[i] * y[i] % 1000003), b = (int)(((long)x[i] * y[i + 1] + x[i + 1]) % 1000003);
    y[i] = m; y[i + 1] = b;
  }
}

/* a: how many roots, the roots. */
static void reduce(long *a) {
  long i, k;
  MPI_Op op;
  DO(MPI_Op_create(compose, 0, &op));
  for (i = 0; i < a[0]; i++) {
    int root = (int)a[1 + i], in[100], out[100], pair[2], composed[2], want[2];
    double x[3], y[3];
    long sum[2], total[2];
    for (k = 0; k < 100; k++) { in[k] = (int)(rank * 100 + k); out[k] = -1; }
    DO(MPI_Reduce(in, out, 100, MPI_INT, MPI_SUM, root, WORLD));
    for (k = 0; k < 100; k++)
      if (rank == root && out[k] != size * (size - 1) / 2 * 100 + size * k) fail("sum to %d: item %ld is %d", root, k, out[k]);
    x[0] = rank; x[1] = -rank; x[2] = 0.5;
    DO(MPI_Reduce(x, y, 3, MPI_DOUBLE, MPI_MAX, root, WORLD));
    if (rank == root && (y[0] != size - 1 || y[1] != 0 || y[2] != 0.5)) fail("maxima to %d: %g %g %g", root, y[0], y[1], y[2]);
    sum[0] = 1L << rank; sum[1] = -rank;
    DO(MPI_Reduce(sum, total, 2, MPI_LONG, MPI_BOR, root, WORLD));
    if (rank == root && total[0] != (1L << size) - 1) fail("bits to %d: %ld", root, total[0]);
    pair[0] = rank + 2; pair[1] = rank;
    DO(MPI_Reduce(pair, composed, 2, MPI_INT, op, root, WORLD));
    want[0] = size + 1; want[1] = size - 1;
    for (k = size - 2; k >= 0; k--) {
      int left[2], two = 2;
      left[0] = (int)k + 2; left[1] = (int)k;
      compose(left, want, &two, NULL);
    }
    if (rank == root && (composed[0] != want[0] || composed[1] != want[1]))
      fail("maps to %d: %d %d, want %d %d", root, composed[0], composed[1], want[0], want[1]);
  }
  DO(MPI_Op_free(&op));
}

/* a: items. */
static void allreduce(long *a) {
  long n = a[0], k;
  int round;
  double *x = memory(n * sizeof *x), *y = memory(n * sizeof *y);
  for (round = 0; round < 3; round++) {
    for (k = 0; k < n; k++) { x[k] = rank + k + round; y[k] = -1; }
    DO(MPI_Allreduce(x, y, (int)n, MPI_DOUBLE, MPI_SUM, WORLD));
    for (k = 0; k < n; k++)
      if (y[k] != size * (size - 1) / 2 + (double)size * (k + round)) fail("round %d: item %ld is %g", round, k, y[k]);
  }
  free(x); free(y);
}

/* One array of each basic type. The receiver makes the same one and compares, and
   sends back what it got. */
#define TYPE(T, handle, ...) \
  { \
    static const T values[] = {__VA_ARGS__}; \
    travel(values, sizeof values / sizeof *values, sizeof *values, handle, #handle, 0); \
  }

static int travel_from, travel_to;

static void travel(const void *values, int n, size_t width, MPI_Datatype type, const char *name, size_t meant) {
  char in[4096];
  MPI_Status st;
  int count, i;
  size_t skip = meant ? meant : width;
  memset(in, 0, sizeof in);
  if (rank == travel_from) DO(MPI_Send((void *)values, n, type, travel_to, 21, WORLD));
  if (rank == travel_from || rank == travel_to) {
    DO(MPI_Recv(in, n + 3, type, rank == travel_from ? travel_to : travel_from, 21, WORLD, &st));
    DO(MPI_Get_count(&st, type, &count));
    if (count != n) fail("%s: %d items, want %d", name, count, n);
    for (i = 0; i < n; i++)
      if (memcmp(in + i * width, (const char *)values + i * width, skip)) fail("%s: item %d of %d is another one", name, i, n);
  }
  if (rank == travel_to) DO(MPI_Send(in, n, type, travel_from, 21, WORLD));
}

struct float_int { float v; int i; };
struct double_int { double v; int i; };
struct long_int { long v; int i; };
struct int_int { int v; int i; };
struct short_int { short v; int i; };
struct longdouble_int { long double v; int i; };

/* Of a pair with padding behind or inside, only the members are compared. */
#define PAIR(T, V, handle, first, second) \
  { \
    static struct T out[2], in[4]; \
    MPI_Status st; \
    int count = 0, i; \
    V values[2]; \
    values[0] = first; values[1] = second; \
    memset(out, 0, sizeof out); memset(in, 0, sizeof in); \
    for (i = 0; i < 2; i++) { out[i].v = values[i]; out[i].i = 1000000 * i - 7; } \
    if (rank == travel_from) DO(MPI_Send(out, 2, handle, travel_to, 22, WORLD)); \
    if (rank == travel_from || rank == travel_to) { \
      DO(MPI_Recv(in, 4, handle, rank == travel_from ? travel_to : travel_from, 22, WORLD, &st)); \
      DO(MPI_Get_count(&st, handle, &count)); \
      for (i = 0; i < 2; i++) \
        if (count != 2 || in[i].v != out[i].v || in[i].i != out[i].i) fail(#handle ": %d items, item %d has %g and %d", count, i, (double)in[i].v, in[i].i); \
    } \
    if (rank == travel_to) DO(MPI_Send(in, 2, handle, travel_from, 22, WORLD)); \
  }

/* a: two ranks. */
static void types(long *a) {
  static const long double wide[] = {0, 1, -3, 1.0L / 3, 1e4000L, -1e-4000L};
  travel_from = (int)a[0]; travel_to = (int)a[1];
  TYPE(char, MPI_CHAR, 'a', 0, 127)
  TYPE(unsigned char, MPI_UNSIGNED_CHAR, 0, 128, 255)
  TYPE(unsigned char, MPI_BYTE, 0, 129, 255)
  TYPE(short, MPI_SHORT, 0, -1, 32767, -32768, 0x1234)
  TYPE(unsigned short, MPI_UNSIGNED_SHORT, 0, 65535, 0x1234)
  TYPE(int, MPI_INT, 0, -1, 2147483647, -2147483647 - 1, 0x12345678)
  TYPE(unsigned, MPI_UNSIGNED, 0, 4294967295u, 0x12345678)
  TYPE(long, MPI_LONG, 0, -1, 0x123456789abcdef0, -0x123456789abcdef0)
  TYPE(unsigned long, MPI_UNSIGNED_LONG, 0, 0xfedcba9876543210ul, 1)
  TYPE(long long, MPI_LONG_LONG_INT, 0, -1, 0x123456789abcdef0ll)
  TYPE(float, MPI_FLOAT, 0, -1.5f, 3.0e38f, 1e-40f)
  TYPE(double, MPI_DOUBLE, 0, -1.5, 1.7e308, 5e-324, 0.1)
  TYPE(unsigned long long, MPI_UNSIGNED_LONG_LONG, 0, 0xfedcba9876543210ull, 1)
  TYPE(wchar_t, MPI_WCHAR, 0, 'x', 0x1f600)
  travel(wide, 6, sizeof *wide, MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", 10);
  PAIR(float_int, float, MPI_FLOAT_INT, 1.5f, -2.25f)
  PAIR(double_int, double, MPI_DOUBLE_INT, 1.5, -0.1)
  PAIR(long_int, long, MPI_LONG_INT, 1L << 40, -5)
  PAIR(short_int, short, MPI_SHORT_INT, 12345, -5)
  PAIR(longdouble_int, long double, MPI_LONG_DOUBLE_INT, 1.5L, -1.0L / 3)
  PAIR(int_int, int, MPI_2INT, 2147483647, -2)
}

/* a: two ranks, datalen. A vector, an indexed one and a structure of several kinds, short
   and long. Then some structures are broadcast by each rank. */
struct record { double x; int n; char name[6]; long id; };

static MPI_Datatype record_type(void) {
  struct record r;
  int lens[4], i;
  MPI_Aint disps[4], base;
  MPI_Datatype types[4], t;
  lens[0] = 1; lens[1] = 1; lens[2] = 6; lens[3] = 1;
  types[0] = MPI_DOUBLE; types[1] = MPI_INT; types[2] = MPI_CHAR; types[3] = MPI_LONG;
  DO(MPI_Get_address(&r, &base));
  DO(MPI_Get_address(&r.x, &disps[0])); DO(MPI_Get_address(&r.n, &disps[1]));
  DO(MPI_Get_address(&r.name, &disps[2])); DO(MPI_Get_address(&r.id, &disps[3]));
  for (i = 0; i < 4; i++) disps[i] -= base;
  DO(MPI_Type_create_struct(4, lens, disps, types, &t));
  DO(MPI_Type_commit(&t));
  return t;
}

static void fill_record(struct record *r, int i) {
  int k;
  memset(r, 0, sizeof *r);
  r->x = i * 0.5; r->n = -i; r->id = (1L << 33) + i;
  for (k = 0; k < 5; k++) r->name[k] = (char)('a' + (i + k) % 26);
}

static int same_record(const struct record *r, const struct record *s) {
  return r->x == s->x && r->n == s->n && r->id == s->id && !memcmp(r->name, s->name, 6);
}

static void derived(long *a) {
  int peer = rank == a[0] ? (int)a[1] : (int)a[0], n, i, root, big = (int)(3 * a[2] / 20), few = a[2] / 26 < 100 ? (int)a[2] / 26 : 100;
  MPI_Datatype t = record_type(), column;
  struct record *out = memory(big * sizeof *out), *in = memory(big * sizeof *in);
  int matrix[12][10], k;
  MPI_Status st;
  DO(MPI_Type_vector(12, 2, 10, MPI_INT, &column));
  DO(MPI_Type_commit(&column));
  for (i = 0; i < big; i++) fill_record(&out[i], i);
  if (rank == a[0] || rank == a[1])
    for (k = 0; k < 3; k++) {
      n = k == 0 ? 1 : k == 1 ? 10 : big;
      memset(in, 0, big * sizeof *in);
      if (rank == a[0]) DO(MPI_Send(out, n, t, peer, 31, WORLD));
      DO(MPI_Recv(in, n, t, peer, 31, WORLD, &st));
      for (i = 0; i < n; i++)
        if (!same_record(&in[i], &out[i])) fail("record %d of %d: %g %d %s %ld", i, n, in[i].x, in[i].n, in[i].name, in[i].id);
      if (rank == a[1]) DO(MPI_Send(in, n, t, peer, 31, WORLD));
    }
  if (rank == a[0] || rank == a[1]) {
    for (i = 0; i < 12; i++)
      for (k = 0; k < 10; k++) matrix[i][k] = rank == a[0] ? i * 10 + k : -1;
    if (rank == a[0]) DO(MPI_Send(&matrix[0][3], 1, column, peer, 32, WORLD));
    else {
      DO(MPI_Recv(&matrix[0][5], 1, column, peer, 32, WORLD, &st));
      for (i = 0; i < 12; i++)
        for (k = 0; k < 10; k++)
          if (matrix[i][k] != (k == 5 || k == 6 ? i * 10 + k - 2 : -1)) fail("element %d, %d of the matrix is %d", i, k, matrix[i][k]);
    }
  }
  for (root = 0; root < size; root++) {
    memset(in, 0, big * sizeof *in);
    if (rank == root) memcpy(in, out, big * sizeof *in);
    DO(MPI_Bcast(in, few, t, root, WORLD));
    for (i = 0; i < few; i++)
      if (!same_record(&in[i], &out[i])) fail("broadcast of %d: record %d: %g %d %s %ld", root, i, in[i].x, in[i].n, in[i].name, in[i].id);
    DO(MPI_Barrier(WORLD));
  }
  DO(MPI_Type_free(&t));
  DO(MPI_Type_free(&column));
  free(out); free(in);
}

/* a: two ranks. They talk without end; somebody is killed meanwhile. */
static void pump(long *a) {
  int peer = rank == a[0] ? (int)a[1] : (int)a[0];
  unsigned char b[1000];
  MPI_Status st;
  long i;
  if (rank != a[0] && rank != a[1]) {
    DO(MPI_Recv(b, 1, MPI_BYTE, (int)a[0], 1, WORLD, &st)); /* for ever */
    return;
  }
  for (i = 0;; i++) {
    if (rank == a[0]) DO(MPI_Send(b, 1000, MPI_BYTE, peer, 41, WORLD));
    DO(MPI_Recv(b, 1000, MPI_BYTE, peer, 41, WORLD, &st));
    if (rank == a[1]) DO(MPI_Send(b, 1000, MPI_BYTE, peer, 41, WORLD));
    if (i == 20) { printf("exchange: pump: rank %d runs\n", rank); fflush(stdout); }
  }
}

static const struct { const char *name; void (*run)(long *); int least; } tests[] = {
  {"ring", ring, 1}, {"pingpong", pingpong, 4}, {"ssend", ssend, 4}, {"lostack", lostack, 3}, {"flood", flood, 3}, {"wild", wild, 1},
  {"spawn", spawn, 3}, {"pairs", pairs, 2}, {"barrier", barrier, 1}, {"bcast", bcast, 3}, {"reduce", reduce, 1}, {"allreduce", allreduce, 1},
  {"types", types, 2}, {"derived", derived, 3}, {"pump", pump, 2}, {"backlog", backlog, 3},
};

int main(int argc, char **argv) {
  int i = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &size);
  while (i < argc) {
    long numbers[64];
    int n = 0;
    size_t k;
    test = argv[i++];
    memset(numbers, 0, sizeof numbers);
    while (i < argc && strcmp(argv[i], "+") && n < 64) numbers[n++] = atol(argv[i++]);
    i++;
    for (k = 0; k < sizeof tests / sizeof *tests; k++)
      if (!strcmp(tests[k].name, test)) break;
    if (k == sizeof tests / sizeof *tests || n < tests[k].least) fail("no such test, or too few numbers (%d)", n);
    tests[k].run(numbers);
    printf("exchange: %s: rank %d of %d: ok\n", test, rank, size);
    fflush(stdout);
  }
  test = "finalize";
  MPI_Finalize();
  printf("exchange: rank %d: finalized\n", rank);
  return 0;
}
