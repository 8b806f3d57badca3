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

/* A representation of this program: an int has 8 bytes, of which the first 4 are the int and 1000,
   and a char is the other case. An item of mixed is an int and two chars. */
struct mixed { int i; char c[2]; };
static MPI_Datatype mixed;
static struct state { int calls, broken; } state;

static int wide_extent(MPI_Datatype t, MPI_Aint *extent, void *extra) {
  *extent = t == MPI_INT ? 8 : 1;
  return extra == &state && (t == MPI_INT || t == MPI_CHAR) ? MPI_SUCCESS : MPI_ERR_TYPE;
}

static int convert(char *user, MPI_Datatype t, MPI_Count n, char *file, MPI_Offset position, int to_file, struct state *st) {
  MPI_Count k;
  st->calls++;
  if (st->broken) return MPI_ERR_OTHER;
  for (k = position; k < position + n; k++) {
    int is_int = t == MPI_INT || (t == mixed && k % 3 == 0), x;
    char *at = t == MPI_INT ? user + k * sizeof(int) : t == MPI_CHAR ? user + k : user + k / 3 * sizeof(struct mixed) + (k % 3 ? 3 + k % 3 : 0);
    if (is_int && to_file) {
      memcpy(&x, at, sizeof x), x += 1000, memcpy(file, &x, sizeof x), memset(file + 4, 0xaa, 4);
    } else if (is_int) {
      memcpy(&x, file, sizeof x), x -= 1000, memcpy(at, &x, sizeof x);
    } else if (to_file) {
      *file = *at ^ 0x20;
    } else {
      *at = *file ^ 0x20;
    }
    file += is_int ? 8 : 1;
  }
  return MPI_SUCCESS;
}
static int wide_read(void *user, MPI_Datatype t, int n, void *file, MPI_Offset position, void *extra) { return convert(user, t, n, file, position, 0, extra); }
static int wide_write(void *user, MPI_Datatype t, int n, void *file, MPI_Offset position, void *extra) { return convert(user, t, n, file, position, 1, extra); }
static int large_read(void *user, MPI_Datatype t, MPI_Count n, void *file, MPI_Offset position, void *extra) { return convert(user, t, n, file, position, 0, extra); }
static int large_write(void *user, MPI_Datatype t, MPI_Count n, void *file, MPI_Offset position, void *extra) { return convert(user, t, n, file, position, 1, extra); }

static void programs(MPI_File f) {
  static const char *reps[] = {"wide", "wide_c"};
  int lengths[] = {1, 2}, i, k, n;
  MPI_Aint at[] = {0, sizeof(int)}, extent;
  MPI_Datatype types[] = {MPI_INT, MPI_CHAR};
  MPI_Status s;
  MPI_Offset pos;
  CALL(MPI_Type_create_struct(2, lengths, at, types, &mixed));
  CALL(MPI_Type_create_resized(mixed, 0, sizeof(struct mixed), &mixed));
  CALL(MPI_Type_commit(&mixed));
  CALL(MPI_Register_datarep(reps[0], wide_read, wide_write, wide_extent, &state));
  CALL(MPI_Register_datarep_c(reps[1], large_read, large_write, wide_extent, &state));
  CALL(MPI_Register_datarep("as it is", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, wide_extent, &state));
  FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("wide", wide_read, wide_write, wide_extent, &state));
  FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("external32", wide_read, wide_write, wide_extent, &state));
  FAILS(MPI_ERR_ARG, MPI_Register_datarep("no extents", wide_read, wide_write, NULL, NULL));
  for (i = 0; i < 2; i++) {
    int in[8] = {0}, mine[2] = {10 * rank, 10 * rank + 1};
    struct mixed a[3] = {{1, "ab"}, {2, "cd"}, {3, "ef"}}, b[3];
    unsigned char *bytes;
    CALL(MPI_File_set_size(f, 0));
    view(f, MPI_INT, MPI_INT, reps[i]);
    CALL(MPI_File_get_type_extent(f, MPI_INT, &extent));
    CHECK(extent == 8);
    CALL(MPI_File_write_at_all(f, 2 * rank, mine, 2, MPI_INT, &s));
    CALL(MPI_Get_count(&s, MPI_INT, &n));
    CHECK(n == 2);
    CALL(MPI_File_sync(f));
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    bytes = raw(16 * size);
    for (k = 0; k < 2 * size; k++) {
      memcpy(&n, bytes + 8 * k, sizeof n);
      CHECK(n == 1000 + 10 * (k / 2) + k % 2 && bytes[8 * k + 7] == 0xaa);
    }
    CALL(MPI_File_read_at_all(f, 1, in, 8, MPI_INT, &s)); /* up to the file's end */
    CALL(MPI_Get_count(&s, MPI_INT, &n));
    CHECK(n == (2 * size - 1 < 8 ? 2 * size - 1 : 8) && in[0] == 1);
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    view(f, MPI_CHAR, MPI_CHAR, reps[i]);
    if (rank == 0) {
      CALL(MPI_File_seek(f, 0, MPI_SEEK_SET));
      CALL(MPI_File_write(f, a, 3, mixed, &s));
      CALL(MPI_Get_count(&s, mixed, &n));
      CHECK(n == 3);
      CALL(MPI_File_get_position(f, &pos));
      CHECK(pos == 30);
      bytes = raw(30);
      CHECK(bytes[8] == 'A' && bytes[9] == 'B' && bytes[10] == (1002 & 0xff) && bytes[29] == 'F');
      memset(b, 0, sizeof b);
      CALL(MPI_File_read_at(f, 0, b, 3, mixed, &s));
      CHECK(b[0].i == 1 && b[1].c[1] == 'd' && b[2].i == 3 && b[2].c[0] == 'e');
    }
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    CALL(MPI_File_set_size(f, 29)); /* without the last char */
    if (rank == 0) {
      memset(b, 0, sizeof b);
      CALL(MPI_File_read_at(f, 0, b, 3, mixed, &s));
      CALL(MPI_Get_elements(&s, mixed, &n));
      CHECK(n == 8 && b[2].i == 3 && b[2].c[0] == 'e' && b[2].c[1] == 0);
      state.broken = 1;
      FAILS(MPI_ERR_CONVERSION, MPI_File_read_at(f, 0, b, 1, mixed, &s));
      FAILS(MPI_ERR_CONVERSION, MPI_File_write_at(f, 0, b, 1, mixed, &s));
      FAILS(MPI_ERR_CONVERSION, MPI_File_write_at(f, 0, in, 1, MPI_DOUBLE, &s)); /* no extent */
      state.broken = 0;
    }
    CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
  CHECK(state.calls >= (rank == 0 ? 8 : 4));
  view(f, MPI_CHAR, MPI_CHAR, "as it is");
  if (rank == 0) {
    CALL(MPI_File_write_at(f, 0, "abc", 3, MPI_CHAR, &s));
    CHECK(memcmp(raw(3), "abc", 3) == 0);
    /* 8 bytes, and nobody to make them */
    FAILS(MPI_ERR_CONVERSION, MPI_File_write_at(f, 0, &n, 1, MPI_INT, &s));
  }
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_Type_free(&mixed));
}

int main(int argc, char **argv) {
  MPI_File f;
  begin(&argc, &argv);
  name = argc > 1 ? argv[1] : "datareps.out";
  CALL(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
  ints(f);
  longs(f);
  others(f);
  programs(f);
  CALL(MPI_File_close(&f));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CALL(MPI_File_delete(name, MPI_INFO_NULL));
  return end("datareps");
}
