/* One-sided communication: all kinds of window and of synchronisation. */
#include "test.h"

static void fences(void) {
  int mem[16], in[4] = {0}, i, one = 1, left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Win win;
  int *base, flag, unit;
  MPI_Aint *bytes, reach;
  char name[MPI_MAX_OBJECT_NAME];
  for (i = 0; i < 16; i++) mem[i] = rank * 100 + i;
  CALL(MPI_Win_create(mem, sizeof mem, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CALL(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  CALL(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
  CHECK(flag && base == mem);
  CALL(MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag));
  CHECK(flag && *bytes == sizeof mem);
  /* a window that is not shared gives each proc its own memory only */
  CALL(MPI_Win_shared_query(win, rank, &reach, &unit, &base));
  CHECK(reach == sizeof mem && unit == sizeof(int) && base == mem);
  if (size > 1) {
    CALL(MPI_Win_shared_query(win, right, &reach, &unit, &base));
    CHECK(reach == 0 && base == NULL);
  }
  FAILS(MPI_ERR_RANK, MPI_Win_shared_query(win, size, &reach, &unit, &base));
  CALL(MPI_Win_get_name(MPI_WIN_NULL, name, &i));
  CHECK(strcmp(name, "MPI_WIN_NULL") == 0 && i == 12);
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Get(in, 4, MPI_INT, right, 4, 4, MPI_INT, win));
  CALL(MPI_Win_fence(0, win));
  for (i = 0; i < 4; i++) CHECK(in[i] == right * 100 + 4 + i);
  CALL(MPI_Put(&rank, 1, MPI_INT, right, 0, 1, MPI_INT, win));
  CALL(MPI_Accumulate(&one, 1, MPI_INT, 0, 8, 1, MPI_INT, MPI_SUM, win));
  CALL(MPI_Win_fence(0, win));
  CHECK(mem[0] == left);
  if (rank == 0) CHECK(mem[8] == 8 + size);
  FAILS(MPI_ERR_RANK, MPI_Put(&one, 1, MPI_INT, size + 1, 0, 1, MPI_INT, win));
  CALL(MPI_Win_fence(0, win));
  CALL(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL);
}

static void locks(void) {
  int *mem, one = 1, old = -1, i, got, want, seen = -1;
  MPI_Win win;
  MPI_Request r;
  CALL(MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win));
  memset(mem, 0, 4 * sizeof(int));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  for (i = 0; i < 20; i++) {
    CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CALL(MPI_Get(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    CALL(MPI_Win_flush(0, win));
    got++;
    CALL(MPI_Put(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    CALL(MPI_Win_unlock(0, win));
  }
  CALL(MPI_Win_lock_all(0, win));
  for (i = 0; i < 20; i++) {
    CALL(MPI_Fetch_and_op(&one, &old, MPI_INT, size - 1, 1, MPI_SUM, win));
    CALL(MPI_Win_flush(size - 1, win));
    CHECK(old > seen);
    seen = old;
  }
  want = rank;
  CALL(MPI_Rput(&want, 1, MPI_INT, (rank + 1) % size, 2, 1, MPI_INT, win, &r));
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
  if (rank == 0) CHECK(mem[0] == 20 * size);
  if (rank == size - 1) CHECK(mem[1] == 20 * size);
  CHECK(mem[2] == (rank + size - 1) % size);
  CALL(MPI_Win_unlock(rank, win));
  CALL(MPI_Win_free(&win));
}

static void posts(void) {
  int mem = -1, left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Group world, to, from;
  MPI_Win win;
  CALL(MPI_Win_create(&mem, sizeof mem, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  CALL(MPI_Comm_group(MPI_COMM_WORLD, &world));
  CALL(MPI_Group_incl(world, 1, &right, &to));
  CALL(MPI_Group_incl(world, 1, &left, &from));
  CALL(MPI_Win_post(from, 0, win));
  CALL(MPI_Win_start(to, 0, win));
  CALL(MPI_Put(&rank, 1, MPI_INT, right, 0, 1, MPI_INT, win));
  CALL(MPI_Win_complete(win));
  CALL(MPI_Win_wait(win));
  CHECK(mem == left);
  CALL(MPI_Group_free(&world));
  CALL(MPI_Group_free(&to));
  CALL(MPI_Group_free(&from));
  CALL(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  fences();
  locks();
  posts();
  return end("rma");
}
