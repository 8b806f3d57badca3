/* Nonblocking collective operations of members on one host, which C code starts and completes by
   itself over the host's board, mixed with blocking ones, with messages, and with all that it
   leaves to Go. All procs know the whole plan; how a member completes an operation, and when, is
   its own choice, as is whether it is in C or in Go: Go takes derived datatypes. Arguments are the
   seed, and "host" if all procs are on one host, where C must have started many operations. */
#include "test.h"
#include <stdint.h>
#include <math.h>
#include <unistd.h>

#ifndef STEPS
#define STEPS 4000
#endif
enum { COMMS = 4, LONGEST = 40000, OPEN = 12, TAG = 77 };

static unsigned plan = 1, mine;
static MPI_Comm comms[COMMS];
static MPI_Datatype pair; /* eight bytes */
static int by_c, one_host;

/* An operation under way. */
static struct open {
  MPI_Request q;
  char *sent, *got, *want;
  int n, whole, nan, line; /* bytes sent, and of got */
} opens[OPEN];
static int n_open;

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
  static const int limits[] = {8, 48, 56, 4096, 4104, 8192, 8200, 16384, 32760, 32768};
  int n = limits[draw(&plan, sizeof limits / sizeof *limits)];
  switch (draw(&plan, 4)) {
  case 0: n = n / members / 8 * 8; break;
  case 1: n = 8; break;
  case 2: n = 8 * (int)draw(&plan, 40); break;
  }
  return n * members > LONGEST ? LONGEST / members / 8 * 8 : n;
}

/* value is what rank r gives to reductions: whole numbers, whose sums are exact, and now and then
 * no number. */
static double value(int k, int r, int i, int nan) {
  union { uint64_t bits; double value; } x;
  x.bits = 0x7ff8000000000000u + (unsigned)(k + r * 5 + i);
  return nan && (k + r + i) % 3 ? x.value : (k * 7 + r * 3 + i) % 1000;
}

/* check looks at what an operation that is over has left. */
static void check(struct open *o) {
  int i, ok = 1;
  if (o->nan)
    for (i = 0; i < o->whole / 8; i++) {
      double a = ((double *)(void *)o->got)[i], b = ((double *)(void *)o->want)[i];
      ok = ok && (isnan(a) ? isnan(b) : a == b);
    }
  else ok = memcmp(o->got, o->want, o->whole + 8) == 0;
  if (!ok) fprintf(stderr, "rank %d: an operation of line %d\n", rank, o->line);
  CHECK(ok);
}

/* drop removes operation i, which is over. */
static void drop(int i) {
  struct open o = opens[i];
  CHECK(o.q == MPI_REQUEST_NULL);
  check(&o);
  opens[i] = opens[--n_open];
  opens[n_open] = o;
}

static void empty(MPI_Status *s) {
  int n = -1, cancelled = -1;
  CALL(MPI_Get_count(s, MPI_BYTE, &n));
  CALL(MPI_Test_cancelled(s, &cancelled));
  CHECK(s->MPI_SOURCE == MPI_ANY_SOURCE && s->MPI_TAG == MPI_ANY_TAG && n == 0 && !cancelled);
}

/* complete completes an operation, or some, in one of many ways. */
static void complete(void) {
  MPI_Request list[OPEN];
  MPI_Status s[OPEN];
  int at[OPEN], i, k, flag = 0, n = 0;
  if (n_open == 0) return;
  k = (int)draw(&mine, n_open);
  for (i = 0; i < n_open; i++) list[i] = opens[i].q;
  switch (draw(&mine, 12)) {
  case 0: /* all, as they are */
    CALL(MPI_Waitall(n_open, list, s));
    for (i = 0; i < n_open; i++) empty(&s[i]), opens[i].q = list[i];
    while (n_open > 0) drop(n_open - 1);
    break;
  case 1: /* some of them, backwards */
    n = k + 1;
    for (i = 0; i < n; i++) list[i] = opens[n_open - 1 - i].q;
    CALL(MPI_Waitall(n, list, MPI_STATUSES_IGNORE));
    for (i = 0; i < n; i++) opens[n_open - 1].q = list[i], drop(n_open - 1);
    break;
  case 2:
    CALL(MPI_Waitany(n_open, list, &i, s));
    empty(s);
    opens[i].q = list[i], drop(i);
    break;
  case 3:
    CALL(MPI_Waitsome(n_open, list, &n, at, s));
    for (i = 0; i < n; i++) opens[at[i]].q = list[at[i]];
    for (i = n_open - 1; i >= 0; i--)
      if (opens[i].q == MPI_REQUEST_NULL) drop(i);
    break;
  case 4:
    while (!flag) CALL(MPI_Testall(n_open, list, &flag, s));
    for (i = 0; i < n_open; i++) opens[i].q = list[i];
    while (n_open > 0) drop(n_open - 1);
    break;
  case 5:
    while (!flag) CALL(MPI_Request_get_status(opens[k].q, &flag, s));
    empty(s);
    CALL(MPI_Wait(&opens[k].q, s));
    empty(s);
    drop(k);
    break;
  case 6: case 7: case 8:
    while (!flag) CALL(MPI_Test(&opens[k].q, &flag, s));
    empty(s);
    drop(k);
    break;
  case 9: /* the oldest there is in this list */
    CALL(MPI_Wait(&opens[0].q, MPI_STATUS_IGNORE));
    drop(0);
    break;
  default:
    CALL(MPI_Wait(&opens[k].q, s));
    empty(s);
    drop(k);
  }
}

/* misuse wants requests of collective operations to be what they are also where C has made them. */
static void misuse(void) {
  MPI_Request q = n_open > 0 ? opens[0].q : MPI_REQUEST_NULL;
  if (q == MPI_REQUEST_NULL) return;
  FAILS(MPI_ERR_REQUEST, MPI_Cancel(&q));
  FAILS(MPI_ERR_REQUEST, MPI_Request_free(&q));
  CHECK(q == opens[0].q);
  CHECK(MPI_Request_fromint(MPI_Request_toint(q)) == q);
}

#define TYPED(n) (go ? (n) / 8 : (n)), (go ? pair : MPI_BYTE)

/* nowhere is a buffer that does not matter, of which nobody may look at more than that it was
 * given. */
static void *nowhere(int k) { return (void *)(intptr_t)(k % 2 == 0 ? 1 : -1); }

/* start starts an operation. */
static void start(int k, MPI_Comm c) {
  int me, members, what = (int)draw(&plan, 9), r, n, root, in_place = draw(&plan, 4) == 0, go = draw(&mine, 8) == 0, i, result;
  struct open *o = &opens[n_open];
  MPI_Comm_rank(c, &me);
  MPI_Comm_size(c, &members);
  n = length(size);
  root = (int)draw(&plan, members);
  o->n = o->whole = n * members, o->nan = 0, o->line = __LINE__;
  memset(o->got, 0x55, o->whole + 8);
  memset(o->want, 0x55, o->whole + 8);
  give(o->sent, o->n, k, me, 0);
  switch (what) {
  case 0:
    CALL(MPI_Ibarrier(c, &o->q));
    break;
  case 1:
    if (me == root) give(o->got, n, k, root, 0);
    give(o->want, n, k, root, 0);
    CALL(MPI_Ibcast(o->got, TYPED(n), root, c, &o->q));
    break;
  case 2:
    for (r = 0; r < members && me == root; r++) give(o->want + r * n, n, k, r, 0);
    if (me == root && in_place) memcpy(o->got + me * n, o->sent, n);
    if (me == root && in_place) CALL(MPI_Igather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, o->got, TYPED(n), root, c, &o->q));
    else CALL(MPI_Igather(o->sent, TYPED(n), me == root ? o->got : nowhere(k), TYPED(n), root, c, &o->q));
    break;
  case 3:
    if (!(me == root && in_place)) give(o->want, n, k, root, me * n);
    if (me == root && in_place) CALL(MPI_Iscatter(o->sent, TYPED(n), MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, c, &o->q));
    else CALL(MPI_Iscatter(me == root ? o->sent : nowhere(k), TYPED(n), o->got, TYPED(n), root, c, &o->q));
    break;
  case 4:
    for (r = 0; r < members; r++) give(o->want + r * n, n, k, r, 0);
    if (in_place) memcpy(o->got + me * n, o->sent, n);
    if (in_place) CALL(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, o->got, TYPED(n), c, &o->q));
    else CALL(MPI_Iallgather(o->sent, TYPED(n), o->got, TYPED(n), c, &o->q));
    break;
  case 5:
    for (r = 0; r < members; r++) give(o->want + r * n, n, k, r, me * n);
    if (in_place) memcpy(o->got, o->sent, o->whole);
    if (in_place) CALL(MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, o->got, TYPED(n), c, &o->q));
    else CALL(MPI_Ialltoall(o->sent, TYPED(n), o->got, TYPED(n), c, &o->q));
    break;
  case 8: /* four numbers of which some are not: Go decides which becomes the result */
    n = 32;
    o->nan = 1; /* fall through */
  default: /* sums of whole numbers */
    result = what == 6 || o->nan || me == root;
    in_place = in_place && result;
    o->n = o->whole = n;
    memset(o->got + n, 0x55, 8);
    for (i = 0; i < n / 8; i++) {
      double sum = value(k, members - 1, i, o->nan);
      for (r = members - 2; r >= 0; r--) sum = value(k, r, i, o->nan) + sum;
      ((double *)(void *)o->sent)[i] = value(k, me, i, o->nan);
      if (result) ((double *)(void *)o->want)[i] = sum;
    }
    if (in_place) memcpy(o->got, o->sent, n);
    if (what != 7) CALL(MPI_Iallreduce(in_place ? MPI_IN_PLACE : o->sent, o->got, n / 8, MPI_DOUBLE, MPI_SUM, c, &o->q));
    else CALL(MPI_Ireduce(in_place ? MPI_IN_PLACE : o->sent, o->got, n / 8, MPI_DOUBLE, MPI_SUM, root, c, &o->q));
  }
  o->line = 1000 * (what + 1) + k % 1000;
  by_c += (uint32_t)(uintptr_t)o->q >> 27 == 15;
  n_open++;
}

/* meet does a blocking operation, for which nobody has to have completed anything. */
static void meet(int k, MPI_Comm c) {
  int me, members, r, sum = 0, at = k + rank, root;
  int *all = malloc(size * sizeof *all);
  MPI_Comm_rank(c, &me);
  MPI_Comm_size(c, &members);
  root = (int)draw(&plan, members);
  at = k * 10 + me;
  switch (draw(&plan, 4)) {
  case 0: CALL(MPI_Barrier(c)); break;
  case 1:
    CALL(MPI_Bcast(&at, 1, MPI_INT, root, c));
    CHECK(at == k * 10 + root);
    break;
  case 2:
    CALL(MPI_Allreduce(&at, &sum, 1, MPI_INT, MPI_SUM, c));
    CHECK(sum == members * k * 10 + members * (members - 1) / 2);
    break;
  default:
    CALL(MPI_Allgather(&at, 1, MPI_INT, all, 1, MPI_INT, c));
    for (r = 0; r < members; r++) CHECK(all[r] == k * 10 + r);
  }
  free(all);
}

/* pass sends a message around while operations are under way. */
static void pass(int k) {
  int to = (rank + 1) % size, from = (rank + size - 1) % size, out = k * 100 + rank, in = -1;
  MPI_Request q[2];
  if (draw(&plan, 2)) {
    CALL(MPI_Sendrecv(&out, 1, MPI_INT, to, TAG, &in, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else {
    CALL(MPI_Irecv(&in, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, &q[0]));
    CALL(MPI_Isend(&out, 1, MPI_INT, to, TAG, MPI_COMM_WORLD, &q[1]));
    CALL(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
  }
  CHECK(in == k * 100 + from);
}

/* together completes an operation and a message by one call. */
static void together(int k) {
  int to = (rank + 1) % size, from = (rank + size - 1) % size, out = k, in = -1, sum = 0;
  MPI_Request q[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  CALL(MPI_Iallreduce(&out, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q[1]));
  CALL(MPI_Irecv(&in, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, &q[0]));
  CALL(MPI_Isend(&out, 1, MPI_INT, to, TAG, MPI_COMM_WORLD, &q[3]));
  CALL(MPI_Waitall(4, q, MPI_STATUSES_IGNORE));
  CHECK(in == k && sum == k * size);
}

/* ahead has a root far ahead of the others, one of which does not come for a while: it must not
   write over what they still have to read. */
static void ahead(int k, MPI_Comm c, int n, int root) {
  enum { MANY = 30 };
  static MPI_Request q[MANY];
  static char bufs[MANY][4200], want[4200];
  int i, me;
  MPI_Comm_rank(c, &me);
  if (me != root && draw(&mine, 2)) usleep(300);
  for (i = 0; i < MANY; i++) {
    if (me == root) give(bufs[i], n, k + i, root, 0);
    else memset(bufs[i], 0, n);
    CALL(MPI_Ibcast(bufs[i], n, MPI_BYTE, root, c, &q[i]));
    if (me == root || draw(&mine, 3) == 0) CALL(MPI_Wait(&q[i], MPI_STATUS_IGNORE));
  }
  CALL(MPI_Waitall(MANY, q, MPI_STATUSES_IGNORE));
  for (i = 0; i < MANY; i++) {
    give(want, n, k + i, root, 0);
    CHECK(memcmp(bufs[i], want, n) == 0);
  }
}

/* all completes all that is under way. */
static void all(void) {
  while (n_open > 0) complete();
}

/* make makes a communicator in place of number i, which may have operations under way. */
static void make(int i) {
  if (comms[i] != MPI_COMM_NULL) CALL(MPI_Comm_free(&comms[i]));
  switch (draw(&plan, 3)) {
  case 0: CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i])); break;
  case 1: CALL(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[i])); break;
  default: CALL(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[i]));
  }
  CALL(MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN));
  if (draw(&plan, 2)) CALL(MPI_Barrier(comms[i])); /* from then on it has a place on the board */
}

/* wrong_counts has one of two members on a host start operations with another length: both get an
   error, and the next operation works. */
static void wrong_counts(void) {
  MPI_Comm c;
  MPI_Request q, other;
  int me, i, x = 1, sum = 0, flag;
  double a[8] = {0}, b[16];
  CALL(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &c));
  CALL(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
  CALL(MPI_Comm_rank(c, &me));
  CALL(MPI_Barrier(c));
  for (i = 0; i < 8; i++) {
    CALL(MPI_Iallgather(a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, c, &q));
    CALL(MPI_Wait(&q, MPI_STATUS_IGNORE));
    CALL(MPI_Iallgather(a, 2 + me, MPI_DOUBLE, b, 2 + me, MPI_DOUBLE, c, &q));
    CALL(MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c, &other));
    if (i % 2) {
      FAILS(MPI_ERR_COUNT, MPI_Wait(&q, MPI_STATUS_IGNORE));
    } else {
      int code, class = MPI_SUCCESS;
      do code = MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
      while (code == MPI_SUCCESS && !flag);
      CALL(MPI_Error_class(code, &class));
      CHECK(class == MPI_ERR_COUNT);
    }
    CHECK(q == MPI_REQUEST_NULL);
    CALL(MPI_Wait(&other, MPI_STATUS_IGNORE));
    CHECK(sum == 2);
    FAILS(MPI_ERR_ROOT, MPI_Ibcast(a, 2, MPI_DOUBLE, 2, c, &q));
    FAILS(MPI_ERR_OP, MPI_Iallreduce(a, b, 2, MPI_DOUBLE, MPI_BAND, c, &q));
    FAILS(MPI_ERR_COUNT, MPI_Ireduce(a, b, -1, MPI_DOUBLE, MPI_SUM, 0, c, &q));
    FAILS(MPI_ERR_BUFFER, MPI_Iallgather(b, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, c, &q));
    FAILS(MPI_ERR_TYPE, MPI_Ialltoall(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_DOUBLE, c, &q));
  }
  CALL(MPI_Comm_free(&c));
}

int main(int argc, char **argv) {
  int k, i;
  begin(&argc, &argv);
  if (argc > 1) plan = (unsigned)atoi(argv[1]);
  one_host = argc > 2;
  mine = plan * 31 + (unsigned)rank * 977;
  for (i = 0; i < OPEN; i++) {
    opens[i].sent = malloc(LONGEST + 64);
    opens[i].got = malloc(LONGEST + 64);
    opens[i].want = malloc(LONGEST + 64);
    memset(opens[i].sent, 0, LONGEST + 64);
    memset(opens[i].got, 0, LONGEST + 64);
  }
  CALL(MPI_Type_contiguous(2, MPI_INT, &pair));
  CALL(MPI_Type_commit(&pair));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  for (i = 0; i < COMMS; i++) comms[i] = MPI_COMM_NULL, make(i);
  if (one_host && (size == 2 || size == 4)) wrong_counts(); /* each pair has a place on the board */
  for (k = 0; k < STEPS; k++) {
    MPI_Comm c = draw(&plan, 3) ? MPI_COMM_WORLD : comms[draw(&plan, COMMS)];
    unsigned what = draw(&plan, 20);
    int root, members, n;
    if (what < 12) {
      while (n_open == OPEN) complete();
      start(k, c);
    } else if (what < 15) {
      meet(k, c);
    } else if (what < 17) {
      pass(k);
    } else if (what < 18) {
      together(k);
    } else if (what < 19 && draw(&plan, 4) == 0) {
      static const int sizes[] = {8, 48, 56, 4096, 4104};
      MPI_Comm_size(c, &members);
      root = (int)draw(&plan, members), n = sizes[draw(&plan, 5)];
      ahead(k, c, n, root);
    } else if (draw(&plan, 8) == 0) {
      make((int)draw(&plan, COMMS));
    }
    while (draw(&mine, 2)) complete();
    if (draw(&mine, 50) == 0) misuse();
    if (draw(&mine, 200) == 0) usleep(500); /* computes */
    if (draw(&plan, 60) == 0) all();
  }
  all();
  if (one_host && size > 1) CHECK(by_c > STEPS / 20);
  if (getenv("VERBOSE")) fprintf(stderr, "rank %d: %d by C\n", rank, by_c);
  return end("faststart");
}
