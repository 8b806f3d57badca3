/* The pointer that all ranks share, and calls in the order of ranks. */
#include "test.h"

enum { ROUNDS = 10, RECORD = 16 };

static MPI_File open_file(const char *name, int mode) {
  MPI_File f;
  CALL(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &f));
  return f;
}

/* Records in any order: each is there once, and whole. */
static void records(const char *name) {
  MPI_File f = open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  char record[RECORD];
  signed char seen[64][ROUNDS] = {{0}};
  MPI_Offset pos = -1;
  MPI_Status s;
  MPI_Request q;
  int i, r, n, total = 0, mine = 0;
  CALL(MPI_File_set_size(f, 0));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  for (i = 0; i < ROUNDS; i++) {
    memset(record, 0, sizeof record);
    snprintf(record, sizeof record, "r%d i%d", rank, i);
    if (i % 2) {
      CALL(MPI_File_write_shared(f, record, RECORD, MPI_CHAR, &s));
    } else {
      CALL(MPI_File_iwrite_shared(f, record, RECORD, MPI_CHAR, &q));
      CALL(MPI_Wait(&q, &s));
    }
    CALL(MPI_Get_count(&s, MPI_CHAR, &n));
    CHECK(n == RECORD);
  }
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_File_get_position_shared(f, &pos));
  CHECK(pos == (MPI_Offset)size * ROUNDS * RECORD);
  CALL(MPI_File_get_position(f, &pos));
  CHECK(pos == 0); /* the own one has not moved */
  CALL(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
  for (;;) { /* each record goes to one rank */
    CALL(MPI_File_read_shared(f, record, RECORD, MPI_CHAR, &s));
    CALL(MPI_Get_count(&s, MPI_CHAR, &n));
    if (n == 0) break;
    CHECK(sscanf(record, "r%d i%d", &r, &i) == 2 && r >= 0 && r < size && i >= 0 && i < ROUNDS);
    seen[r % 64][i % ROUNDS]++;
    mine++;
  }
  CALL(MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(total == size * ROUNDS);
  CALL(MPI_Allreduce(MPI_IN_PLACE, seen, sizeof seen, MPI_SIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD));
  for (r = 0; r < size; r++)
    for (i = 0; i < ROUNDS; i++) CHECK(seen[r][i] == 1);
  CALL(MPI_File_seek_shared(f, -RECORD, MPI_SEEK_END));
  CALL(MPI_File_get_position_shared(f, &pos));
  CHECK(pos == (MPI_Offset)(size * ROUNDS - 1) * RECORD);
  FAILS(MPI_ERR_ARG, MPI_File_seek_shared(f, -1, MPI_SEEK_SET));
  if (size > 1) FAILS(MPI_ERR_ARG, MPI_File_seek_shared(f, rank, MPI_SEEK_SET));
  FAILS(MPI_ERR_ARG, MPI_File_seek_shared(f, 0, 12345));
  CALL(MPI_File_close(&f));
}

/* Rank r gives r + 1 ints, behind those of the ranks before it. */
static void ordered(const char *name) {
  MPI_File f = open_file(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status s;
  MPI_Offset pos;
  int out[64], in[64], i, round, n, all = size * (size + 1) / 2, before = rank * (rank + 1) / 2;
  CALL(MPI_File_set_size(f, 0));
  CALL(MPI_File_set_view(f, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (round = 0; round < 3; round++) {
    for (i = 0; i <= rank; i++) out[i] = 1000 * round + before + i;
    if (round == 1) {
      CALL(MPI_File_write_ordered_begin(f, out, rank + 1, MPI_INT));
      CALL(MPI_File_write_ordered_end(f, out, &s));
    } else {
      CALL(MPI_File_write_ordered(f, out, rank + 1, MPI_INT, &s));
    }
    CALL(MPI_Get_count(&s, MPI_INT, &n));
    CHECK(n == rank + 1);
  }
  CALL(MPI_File_get_position_shared(f, &pos));
  CHECK(pos == 3 * all);
  CALL(MPI_File_seek_shared(f, all, MPI_SEEK_SET));
  memset(in, 0, sizeof in);
  CALL(MPI_File_read_ordered(f, in, rank + 1, MPI_INT, &s));
  for (i = 0; i <= rank; i++) CHECK(in[i] == 1000 + before + i);
  CALL(MPI_File_read_ordered_begin(f, in, rank + 1, MPI_INT));
  CALL(MPI_File_read_ordered_end(f, in, &s));
  for (i = 0; i <= rank; i++) CHECK(in[i] == 2000 + before + i);
  CALL(MPI_File_read_at(f, 0, in, 1, MPI_INT, &s));
  CHECK(in[0] == 0);
  /* this sets the shared pointer to 0 */
  CALL(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  CALL(MPI_File_get_position_shared(f, &pos));
  CHECK(pos == 0);
  FAILS(MPI_ERR_TYPE, MPI_File_write_ordered(f, out, 1, MPI_DATATYPE_NULL, &s));
  CALL(MPI_File_close(&f));
}

/* Behind what is there, and a view from the shared pointer on. */
static void sequential(const char *name) {
  MPI_File f = open_file(name, MPI_MODE_WRONLY | MPI_MODE_APPEND | MPI_MODE_SEQUENTIAL);
  MPI_Offset at = 8 + 3 * (MPI_Offset)sizeof(int) * (size * (size + 1) / 2), pos, disp;
  MPI_Datatype e, t;
  MPI_Status s;
  char rep[MPI_MAX_DATAREP_STRING], c = 'x';
  CALL(MPI_File_get_position_shared(f, &pos));
  CHECK(pos == at);
  CALL(MPI_File_write_ordered(f, &c, 1, MPI_CHAR, &s));
  CALL(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
  CALL(MPI_File_get_view(f, &disp, &e, &t, rep));
  CHECK(disp == at + size);
  CALL(MPI_File_close(&f));
}

int main(int argc, char **argv) {
  const char *name;
  begin(&argc, &argv);
  name = argc > 1 ? argv[1] : "shared.out";
  records(name);
  ordered(name);
  sequential(name);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CALL(MPI_File_delete(name, MPI_INFO_NULL));
  return end("shared");
}
