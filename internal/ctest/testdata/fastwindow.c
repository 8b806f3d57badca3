/* One-sided operations on windows that MPI allocates, which C code does by itself where their
   memory is shared, mixed with what it leaves to Go: derived datatypes, long operations, memory
   that no call has seen yet, and all that is wrong. With an argument, so many threads do operations
   at the same time. */
#include "test.h"
#include <pthread.h>
#include <stdint.h>

enum { SLAB = 300000, STEPS = 300, ROUNDS = 200, THREADS_MOST = 8, WIDE = 100, BURSTS = 20 };

static unsigned plan = 1;
static MPI_Datatype eight, single; /* bytes, and a number, which C leaves to Go */
static MPI_Win win;
static char *mine;

static unsigned draw(unsigned *state, unsigned n) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % n;
}

/* length draws how many bytes an operation has, a multiple of eight. */
static int length(unsigned *state) {
  static const int limits[] = {8, 16, 64, 4096, 4104, 65536, 262136, 262144, 262152, 290000};
  return limits[draw(state, sizeof limits / sizeof *limits)];
}

/* put and get move n bytes, perhaps by a datatype that C leaves to Go. */
static void put(const char *from, int n, int to, MPI_Aint disp, unsigned *state) {
  if (draw(state, 3) == 0) CALL(MPI_Put(from, n / 8, eight, to, disp, n / 8, eight, win));
  else CALL(MPI_Put(from, n, MPI_BYTE, to, disp, n / 8, MPI_DOUBLE, win));
}

static void get(char *to, int n, int from, MPI_Aint disp, unsigned *state) {
  if (draw(state, 3) == 0) CALL(MPI_Get(to, n / 8, eight, from, disp, n / 8, eight, win));
  else CALL(MPI_Get(to, n, MPI_BYTE, from, disp, n / 8, MPI_DOUBLE, win));
}

static void flush(int to, unsigned *state) {
  switch (draw(state, 2)) {
  case 0: CALL(MPI_Win_flush(to, win)); break;
  default: CALL(MPI_Win_flush_all(win));
  }
}

/* slab moves bytes to a part of other members' memory that is one thread's alone, and back. */
static void slab(int part, int parts, unsigned state, int steps) {
  char *out = malloc(SLAB), *in = malloc(SLAB);
  int k, to, n, room = SLAB / parts / 8 * 8, at;
  for (k = 0; k < steps; k++) {
    n = length(&state);
    if (n > room) n = room;
    at = part * room + (int)draw(&state, (unsigned)(room - n) / 8 + 1) * 8;
    to = (int)draw(&state, (unsigned)size);
    fill(out, n, (unsigned)(k + part));
    memset(in, 0x55, SLAB);
    put(out, n, to, rank * (SLAB / 8) + at / 8, &state);
    flush(to, &state);
    get(in, n, to, rank * (SLAB / 8) + at / 8, &state);
    if (draw(&state, 2)) CALL(MPI_Win_flush_local(to, win));
    else CALL(MPI_Win_flush_local_all(win));
    CHECK(filled(in, n, (unsigned)(k + part)));
    CHECK(n == SLAB || in[n] == 0x55);
  }
  free(out);
  free(in);
}

/* locked moves bytes while all are locked, or one is. */
static void locked(void) {
  char word[8] = "1234567";
  int other = (rank + 1) % size, third = (rank + 2) % size;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(word, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
  CALL(MPI_Win_lock_all(0, win));
  slab(0, 1, (unsigned)rank, STEPS);
  CALL(MPI_Put(word, 8, MPI_BYTE, other, rank * (SLAB / 8), 8, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(word, 8, MPI_BYTE, other, size * (SLAB / 8), 8, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(word, 8, MPI_BYTE, other, (MPI_Aint)1 << 60, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_DISP, MPI_Put(word, 8, MPI_BYTE, other, -1, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_RANK, MPI_Put(word, 8, MPI_BYTE, size, 0, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_RANK, MPI_Put(word, 8, MPI_BYTE, -77, 0, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_COUNT, MPI_Put(word, -8, MPI_BYTE, 0, 0, -8, MPI_BYTE, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(word, 8, MPI_DATATYPE_NULL, 0, 0, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_SIZE, MPI_Put(word, 8, MPI_BYTE, 0, 0, 7, MPI_BYTE, win));
  FAILS(MPI_ERR_BUFFER, MPI_Put((void *)8, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_RANK, MPI_Win_flush(size, win));
  CALL(MPI_Put(word, 8, MPI_BYTE, MPI_PROC_NULL, 0, 8, MPI_BYTE, win));
  CALL(MPI_Win_flush(MPI_PROC_NULL, win));
  CALL(MPI_Win_unlock_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(word, 8, MPI_BYTE, other, 0, 8, MPI_BYTE, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
  put(word, 8, other, rank * (SLAB / 8), &plan);
  CALL(MPI_Put(word, 8, MPI_BYTE, other, rank * (SLAB / 8), 8, MPI_BYTE, win));
  CALL(MPI_Win_flush(other, win));
  if (size > 2) {
    FAILS(MPI_ERR_RMA_SYNC, MPI_Get(word, 8, MPI_BYTE, third, 0, 8, MPI_BYTE, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(third, win));
  }
  CALL(MPI_Win_unlock(other, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Get(word, 8, MPI_BYTE, other, 0, 8, MPI_BYTE, win));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
}

/* fences moves bytes between fences, and between post, start, complete and wait. */
static void fences(void) {
  uint64_t out, in;
  int k, left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Group world, to, from;
  CALL(MPI_Comm_group(MPI_COMM_WORLD, &world));
  CALL(MPI_Group_incl(world, 1, &right, &to));
  CALL(MPI_Group_incl(world, 1, &left, &from));
  CALL(MPI_Win_fence(0, win));
  /* a fence that nothing has followed does not matter */
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
  CALL(MPI_Win_unlock(right, win));
  for (k = 0; k < 50; k++) {
    out = (uint64_t)k * 1000 + (unsigned)rank;
    CALL(MPI_Win_fence(0, win));
    CALL(MPI_Put(&out, 1, MPI_UINT64_T, right, 0, 1, MPI_UINT64_T, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(right, win));
    CALL(MPI_Win_fence(0, win));
    memcpy(&in, mine, sizeof in);
    CHECK(in == (uint64_t)k * 1000 + (unsigned)left);
    CALL(MPI_Get(&in, 1, MPI_UINT64_T, right, 0, 1, MPI_UINT64_T, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
    CALL(MPI_Win_fence(k % 2 ? MPI_MODE_NOSUCCEED : 0, win));
    CHECK(in == out);
    if (k % 2) FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&out, 1, MPI_UINT64_T, right, 0, 1, MPI_UINT64_T, win));
    if (k % 4 == 0) { /* nothing has followed this fence either, whoever has done it */
      CALL(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
      CALL(MPI_Win_unlock(right, win));
    }
    /* a fence is refused before the others are waited for, and what is no window's goes on */
    if (k % 4 == 2) {
      CALL(MPI_Win_post(from, 0, win));
      FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
      CALL(MPI_Sendrecv(&out, 1, MPI_UINT64_T, right, 7, &in, 1, MPI_UINT64_T, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(in == (uint64_t)k * 1000 + (unsigned)left);
      CALL(MPI_Barrier(MPI_COMM_WORLD));
      CALL(MPI_Win_start(to, 0, win));
      CALL(MPI_Win_complete(win));
      CALL(MPI_Win_wait(win));
    }
  }
  CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  for (k = 0; k < 50; k++) {
    out = (uint64_t)k * 3000 + (unsigned)rank;
    CALL(MPI_Win_post(from, 0, win));
    CALL(MPI_Win_start(to, 0, win));
    CALL(MPI_Put(&out, 1, MPI_UINT64_T, right, 0, 1, MPI_UINT64_T, win));
    if (size > 1) FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&out, 1, MPI_UINT64_T, rank, 0, 1, MPI_UINT64_T, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
    CALL(MPI_Win_complete(win));
    CALL(MPI_Win_wait(win));
    memcpy(&in, mine, sizeof in);
    CHECK(in == (uint64_t)k * 3000 + (unsigned)left);
    FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&out, 1, MPI_UINT64_T, right, 0, 1, MPI_UINT64_T, win));
  }
  CALL(MPI_Group_free(&world));
  CALL(MPI_Group_free(&to));
  CALL(MPI_Group_free(&from));
}

/* passed has the members pass a number around, and wait for it in loops without other calls. */
static void passed(void) {
  uint64_t k, seen, turns = (uint64_t)size * 20;
  int next = (rank + 1) % size;
  memset(mine, 0, 16);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_Win_lock_all(0, win));
  for (k = (uint64_t)rank; k < turns; k += (uint64_t)size) {
    do {
      CALL(MPI_Get(&seen, 1, MPI_UINT64_T, rank, 0, 1, MPI_UINT64_T, win));
      CALL(MPI_Win_flush(rank, win));
      CALL(MPI_Win_sync(win));
    } while (seen != k);
    seen = k + 1;
    CALL(MPI_Put(&seen, 1, MPI_UINT64_T, next, 0, 1, MPI_UINT64_T, win));
    CALL(MPI_Win_flush(next, win));
  }
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
}

/* add adds one to the number at a place of rank 0, and returns what it was: by C, or by Go. */
static int64_t add(MPI_Aint disp, unsigned *state) {
  int64_t one = 1, old = -1;
  if (draw(state, 3) == 0) CALL(MPI_Get_accumulate(&one, 1, single, &old, 1, single, 0, disp, 1, single, MPI_SUM, win));
  else if (draw(state, 2)) CALL(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, disp, MPI_SUM, win));
  else CALL(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, 0, disp, 1, MPI_INT64_T, MPI_SUM, win));
  CALL(MPI_Win_flush(0, win));
  return old;
}

/* counted has all members, and their threads, change the same numbers of rank 0. */
static void counted(unsigned state) {
  int64_t k, last = -1, old, none = 0, me, got, row[WIDE], rows[WIDE];
  int i;
  static int64_t next;
  me = 1 + rank + (int64_t)size * __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
  for (k = 0; k < ROUNDS; k++) {
    old = add(0, &state);
    CHECK(old > last);
    last = old;
    for (i = 0; i < WIDE; i++) row[i] = me;
    CALL(MPI_Accumulate(row, WIDE, draw(&state, 2) ? MPI_INT64_T : single, 0, 8, WIDE, MPI_INT64_T, MPI_REPLACE, win));
    CALL(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, rows, WIDE, MPI_INT64_T, 0, 8, WIDE, MPI_INT64_T, MPI_NO_OP, win));
    CALL(MPI_Win_flush(0, win));
    for (i = 1; i < WIDE; i++) CHECK(rows[i] == rows[0]);
    do { /* a lock of the program's own */
      if (draw(&state, 4)) CALL(MPI_Compare_and_swap(&me, &none, &got, MPI_INT64_T, 0, 1, win));
      else CALL(MPI_Compare_and_swap(&me, &none, &got, MPI_COUNT, 0, 1, win));
      CALL(MPI_Win_flush(0, win));
    } while (got != 0);
    CALL(MPI_Get(&got, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, win));
    CALL(MPI_Win_flush(0, win));
    got++;
    CALL(MPI_Put(&got, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, win));
    CALL(MPI_Win_flush(0, win));
    CALL(MPI_Fetch_and_op(&none, &got, MPI_INT64_T, 0, 1, MPI_REPLACE, win));
    CALL(MPI_Win_flush(0, win));
    CHECK(got == me);
  }
}

/* bursts has all members add to a number of rank 0 at the same time, and replace others: often,
   where no messages are needed. */
static void bursts(void) {
  int64_t one = 1, old, row[WIDE], rows[WIDE];
  int k, i, near_by, times;
  MPI_Comm host;
  CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  CALL(MPI_Comm_size(host, &near_by));
  CALL(MPI_Comm_free(&host));
  times = near_by == size ? 20000 : 200;
  for (i = 0; i < WIDE; i++) row[i] = rank;
  CALL(MPI_Win_lock_all(0, win));
  for (k = 0; k < BURSTS; k++) {
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    for (i = 0; i < times; i++) CALL(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 4, MPI_SUM, win));
    for (i = 0; i < times / 10; i++) {
      CALL(MPI_Accumulate(row, WIDE, MPI_INT64_T, 0, 200, WIDE, MPI_INT64_T, MPI_REPLACE, win));
      CALL(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, rows, WIDE, MPI_INT64_T, 0, 200, WIDE, MPI_INT64_T, MPI_NO_OP, win));
      CALL(MPI_Win_flush(0, win));
      CHECK(memcmp(rows, rows + 1, sizeof rows - sizeof *rows) == 0);
    }
  }
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  memcpy(&old, mine + 32, sizeof old);
  if (rank == 0) CHECK(old == (int64_t)BURSTS * times * size);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
}

/* typed does each operation on numbers of each sort, by C and by Go, and compares. */
#define TYPED(type, mpi, value, count)                                                            \
  do {                                                                                            \
    type x[2 * count], mine_[count], was[2 * count], byC[count], byGo[count];                     \
    int o_, i_;                                                                                   \
    MPI_Datatype one_;                                                                            \
    CALL(MPI_Type_contiguous(1, mpi, &one_));                                                     \
    CALL(MPI_Type_commit(&one_));                                                                 \
    for (o_ = 0; o_ < (int)(sizeof ops / sizeof *ops); o_++) {                                    \
      for (i_ = 0; i_ < count; i_++) x[i_] = x[count + i_] = (type)(value(i_)), mine_[i_] = (type)(value(i_ + 5)); \
      CALL(MPI_Put(x, 2 * count, mpi, rank, 0, 2 * count, mpi, win));                             \
      if (MPI_Accumulate(mine_, count, mpi, rank, 0, count, mpi, ops[o_], win) != MPI_SUCCESS) {  \
        FAILS(MPI_ERR_OP, MPI_Accumulate(mine_, count, one_, rank, 0, count, one_, ops[o_], win)); \
        FAILS(MPI_ERR_OP, MPI_Get_accumulate(mine_, count, mpi, was, count, mpi, rank, 0, count, mpi, ops[o_], win)); \
        continue;                                                                                 \
      }                                                                                           \
      CALL(MPI_Accumulate(mine_, count, one_, rank, sizeof x / 16, count, one_, ops[o_], win));   \
      CALL(MPI_Get(byC, count, mpi, rank, 0, count, mpi, win));                                   \
      CALL(MPI_Get_accumulate(NULL, 0, mpi, byGo, count, mpi, rank, sizeof x / 16, count, mpi, MPI_NO_OP, win)); \
      CALL(MPI_Win_flush(rank, win));                                                             \
      CHECK(memcmp(byC, byGo, sizeof byC) == 0);                                                  \
      CALL(MPI_Get_accumulate(mine_, count, mpi, was, count, mpi, rank, 0, count, mpi, ops[o_], win)); \
      CALL(MPI_Get_accumulate(mine_, count, one_, was + count, count, one_, rank, sizeof x / 16, count, one_, ops[o_], win)); \
      CALL(MPI_Get(byGo, count, mpi, rank, 0, count, mpi, win));                                  \
      CALL(MPI_Win_flush(rank, win));                                                             \
      CHECK(memcmp(was, byC, sizeof byC) == 0 && memcmp(was + count, byC, sizeof byC) == 0);      \
      CALL(MPI_Get(byC, count, mpi, rank, sizeof x / 16, count, mpi, win));                       \
      CALL(MPI_Fetch_and_op(mine_, was, mpi, rank, 0, ops[o_], win));                             \
      CALL(MPI_Win_flush(rank, win));                                                             \
      CHECK(memcmp(byC, byGo, sizeof byC) == 0 && memcmp(was, byC, sizeof *was) == 0);            \
    }                                                                                             \
    CALL(MPI_Type_free(&one_));                                                                   \
  } while (0)

#define NUMBER(i) ((i) * 37 - 100)
#define TRUTH(i) ((i) % 3 != 0)

static void typed(void) {
  MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_REPLACE};
  int64_t a = 1, b = 2, got = -1;
  double d = 1, e = 2, f = 3;
  CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
  TYPED(int8_t, MPI_INT8_T, NUMBER, 16);
  TYPED(uint8_t, MPI_UINT8_T, NUMBER, 32);
  TYPED(int16_t, MPI_INT16_T, NUMBER, 16);
  TYPED(uint16_t, MPI_UINT16_T, NUMBER, 8);
  TYPED(int32_t, MPI_INT32_T, NUMBER, 8);
  TYPED(uint32_t, MPI_UINT32_T, NUMBER, 64);
  TYPED(int64_t, MPI_INT64_T, NUMBER, 4);
  TYPED(uint64_t, MPI_UINT64_T, NUMBER, 300);
  TYPED(float, MPI_FLOAT, NUMBER, 8);
  TYPED(double, MPI_DOUBLE, NUMBER, 40);
  TYPED(char, MPI_BYTE, NUMBER, 40);
  TYPED(_Bool, MPI_C_BOOL, TRUTH, 40);
  CALL(MPI_Put(&a, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win));
  CALL(MPI_Compare_and_swap(&b, &b, &got, MPI_INT64_T, rank, 0, win));
  CHECK(got == 1);
  CALL(MPI_Compare_and_swap(&b, &a, &got, MPI_INT64_T, rank, 0, win));
  CHECK(got == 1);
  CALL(MPI_Compare_and_swap(&a, &a, &got, MPI_INT64_T, rank, 0, win));
  CHECK(got == 2);
  FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&d, &e, &f, MPI_DOUBLE, rank, 0, win));
  FAILS(MPI_ERR_OP, MPI_Fetch_and_op(&d, &f, MPI_DOUBLE, rank, 0, MPI_BAND, win));
  FAILS(MPI_ERR_TYPE, MPI_Fetch_and_op(&a, &got, eight, rank, 0, MPI_SUM, win));
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(&d, 1, MPI_DOUBLE, rank, 0, 1, MPI_INT64_T, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Fetch_and_op(&a, &got, MPI_INT64_T, rank, size * (SLAB / 8), MPI_SUM, win));
  FAILS(MPI_ERR_RANK, MPI_Compare_and_swap(&a, &b, &got, MPI_INT64_T, size, 0, win));
  CALL(MPI_Win_unlock(rank, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Accumulate(&a, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Fetch_and_op(&a, &got, MPI_INT64_T, rank, 0, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Compare_and_swap(&a, &b, &got, MPI_INT64_T, rank, 0, win));
}

struct job { int part, parts; };

static void *work(void *p) {
  struct job *j = p;
  slab(j->part, j->parts, (unsigned)(rank * 100 + j->part), STEPS / j->parts);
  return NULL;
}

static void *count(void *p) {
  struct job *j = p;
  counted((unsigned)(rank * 77 + j->part));
  return NULL;
}

static void together(int threads, void *(*what)(void *)) {
  pthread_t t[THREADS_MOST];
  struct job j[THREADS_MOST];
  int i;
  CALL(MPI_Win_lock_all(0, win));
  for (i = 0; i < threads; i++) {
    j[i].part = i;
    j[i].parts = threads;
    if (i > 0) pthread_create(&t[i], NULL, what, &j[i]);
  }
  what(&j[0]);
  for (i = 1; i < threads; i++) pthread_join(t[i], NULL);
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1, provided, i;
  int64_t end_[3];
  MPI_Win stale;
  if (threads > THREADS_MOST) threads = THREADS_MOST;
  CALL(MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
  CALL(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CALL(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  CALL(MPI_Type_contiguous(8, MPI_BYTE, &eight));
  CALL(MPI_Type_commit(&eight));
  CALL(MPI_Type_contiguous(1, MPI_INT64_T, &single));
  CALL(MPI_Type_commit(&single));
  for (i = 0; i < 3; i++) {
    CALL(MPI_Win_allocate((MPI_Aint)size * SLAB, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    CALL(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(mine, 0, (size_t)size * SLAB);
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    if (threads > 1) {
      together(threads, count);
      together(threads, work);
    } else {
      together(1, count);
      if (rank == 0) {
        memcpy(end_, mine, sizeof end_);
        CHECK(end_[0] == (int64_t)ROUNDS * size && end_[1] == 0 && end_[2] == end_[0]);
      }
      CALL(MPI_Barrier(MPI_COMM_WORLD));
      if (i == 0) bursts();
      typed();
      CALL(MPI_Barrier(MPI_COMM_WORLD));
      locked();
      fences();
      passed();
    }
    stale = win;
    CALL(MPI_Win_free(&win));
    FAILS(MPI_ERR_WIN, MPI_Put(end_, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, stale));
    FAILS(MPI_ERR_WIN, MPI_Win_flush(0, stale));
  }
  CALL(MPI_Type_free(&eight));
  CALL(MPI_Type_free(&single));
  return end("fastwindow");
}
