/* The representations that the data of a file may have. The argument is the file's name. */
#include "test.h"
#include <fcntl.h>
#include <unistd.h>

static const char *name;

/* raw gives n bytes of the file as they are. */
static unsigned char *raw(int n) {
  static unsigned char bytes[4096];
  int fd = open(name, O_RDONLY);
  memset(bytes, 0xee, sizeof bytes);
  CHECK(fd >= 0 && read(fd, bytes, n) == n);
  if (fd >= 0) close(fd);
  return bytes;
}

static void view(MPI_File f, MPI_Datatype e, MPI_Datatype t, const char *rep) {
  char got[MPI_MAX_DATAREP_STRING];
  MPI_Datatype e2, t2;
  MPI_Offset disp;
  CALL(MPI_File_set_view(f, 0, e, t, rep, MPI_INFO_NULL));
  CALL(MPI_File_get_view(f, &disp, &e2, &t2, got));
  CHECK(strcmp(got, rep) == 0 && disp == 0);
}

/* Each rank writes every size-th int, big-endian; all read all. */
static void ints(MPI_File f) {
  MPI_Datatype strided;
  MPI_Status s;
  int in[64], out[3], i, n;
  unsigned char *b;
  CALL(MPI_Type_create_resized(MPI_INT, 0, size * sizeof(int), &strided));
  CALL(MPI_Type_commit(&strided));
  CALL(MPI_File_set_view(f, rank * sizeof(int), MPI_INT, strided, "external32", MPI_INFO_NULL));
  for (i = 0; i < 3; i++) out[i] = 0x01020300 + 16 * i + rank;
  CALL(MPI_File_write_all(f, out, 3, MPI_INT, &s));
  CALL(MPI_Get_count(&s, MPI_INT, &n));
  CHECK(n == 3);
  CALL(MPI_File_sync(f));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  b = raw(12 * size);
  for (i = 0; i < 3 * size; i++)
    CHECK(b[4 * i] == 1 && b[4 * i + 1] == 2 && b[4 * i + 2] == 3 && b[4 * i + 3] == i / size * 16 + i % size);
  view(f, MPI_INT, MPI_INT, "external32");
  CALL(MPI_File_read_at_all(f, 0, in, 64, MPI_INT, &s)); /* as many as there are */
  CALL(MPI_Get_count(&s, MPI_INT, &n));
  CHECK(n == 3 * size);
  for (i = 0; i < 3 * size; i++) CHECK(in[i] == 0x01020300 + i / size * 16 + i % size);
  CALL(MPI_Type_free(&strided));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
}

/* A long has 4 bytes in external32. */
static void longs(MPI_File f) {
  long out[3] = {1, -2, 3}, in[5] = {0};
  MPI_Aint extent;
  MPI_Offset at;
  MPI_Status s;
  MPI_Datatype gaps;
  unsigned char *b;
  int n;
  view(f, MPI_LONG, MPI_LONG, "external32");
  CALL(MPI_File_get_type_extent(f, MPI_LONG, &extent));
  CHECK(extent == 4);
  CALL(MPI_File_get_type_extent(f, MPI_DOUBLE, &extent));
  CHECK(extent == 8);
  CALL(MPI_File_set_size(f, 0));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    CALL(MPI_File_write(f, out, 3, MPI_LONG, &s));
    CALL(MPI_Get_count(&s, MPI_LONG, &n));
    CHECK(n == 3);
    CALL(MPI_File_get_position(f, &at));
    CHECK(at == 3);
    b = raw(12);
    CHECK(b[3] == 1 && b[4] == 0xff && b[7] == 0xfe && b[11] == 3);
    CALL(MPI_File_read_at(f, 1, in, 5, MPI_LONG, &s));
    CALL(MPI_Get_count(&s, MPI_LONG, &n));
    CHECK(n == 2 && in[0] == -2 && in[1] == 3 && in[2] == 0);
  }
  CALL(MPI_Type_vector(2, 1, 2, MPI_LONG, &gaps));
  CALL(MPI_Type_commit(&gaps));
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(f, 0, MPI_LONG, gaps, "external32", MPI_INFO_NULL));
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "nothing", MPI_INFO_NULL));
  CALL(MPI_Type_free(&gaps));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
}

/* Pairs and long doubles: the first without padding, the others as in memory. */
static void others(MPI_File f) {
  struct { double d; int i; } out[2] = {{1.5, 7}, {-2, 8}}, in[2];
  long double far = 1.25L, back = 0;
  MPI_Status s;
  double d;
  int n;
  const char *reps[] = {"native", "internal", "external32"};
  for (n = 0; n < 3; n++) {
    int count;
    view(f, MPI_BYTE, MPI_BYTE, reps[n]);
    if (rank == 0) {
      memset(in, 0, sizeof in);
      CALL(MPI_File_write_at(f, 0, out, 2, MPI_DOUBLE_INT, &s));
      CALL(MPI_Get_count(&s, MPI_DOUBLE_INT, &count));
      CHECK(count == 2);
      CALL(MPI_File_read_at(f, 0, in, 2, MPI_DOUBLE_INT, &s));
      CHECK(in[0].d == 1.5 && in[0].i == 7 && in[1].d == -2 && in[1].i == 8);
      memcpy(&d, raw(24) + 12, sizeof d);
      CHECK((d == -2) == (n < 2));
      CALL(MPI_File_write_at(f, 24, &far, 1, MPI_LONG_DOUBLE, &s));
      CALL(MPI_File_read_at(f, 24, &back, 1, MPI_LONG_DOUBLE, &s));
      CHECK(back == far);
    }
    CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
}

int main(int argc, char **argv) {
  MPI_File f;
  begin(&argc, &argv);
  name = argc > 1 ? argv[1] : "datareps.out";
  CALL(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
  ints(f);
  longs(f);
  others(f);
  CALL(MPI_File_close(&f));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CALL(MPI_File_delete(name, MPI_INFO_NULL));
  return end("datareps");
}
