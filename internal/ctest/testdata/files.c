/* Files that all ranks write and read. The argument is the file's name. */
#include "test.h"

/* Hints that are set later leave others as they are. */
static void hints(MPI_File f) {
  MPI_Info info;
  int flag = 0, len = 10;
  char value[10] = "";
  CALL(MPI_Info_create(&info));
  CALL(MPI_Info_set(info, "one", "1"));
  CALL(MPI_File_set_info(f, info));
  CALL(MPI_Info_delete(info, "one"));
  CALL(MPI_Info_set(info, "two", "2"));
  CALL(MPI_File_set_info(f, info));
  CALL(MPI_Info_free(&info));
  CALL(MPI_File_get_info(f, &info));
  CALL(MPI_Info_get_string(info, "one", &len, value, &flag));
  CHECK(flag && strcmp(value, "1") == 0);
  CALL(MPI_Info_get_string(info, "two", &len, value, &flag));
  CHECK(flag && strcmp(value, "2") == 0);
  CALL(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
  enum { N = 100 };
  MPI_File f;
  MPI_Status s;
  MPI_Datatype strided;
  MPI_Offset n;
  int out[N], in[N], i, count, amode, other;
  const char *name;
  begin(&argc, &argv);
  name = argc > 1 ? argv[1] : "files.out";
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
  CALL(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
  CALL(MPI_File_set_size(f, 0));
  CALL(MPI_File_get_amode(f, &amode));
  CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
  hints(f);
  for (i = 0; i < N; i++) out[i] = rank * N + i;
  CALL(MPI_File_write_at(f, (MPI_Offset)(rank * sizeof out), out, N, MPI_INT, &s));
  CALL(MPI_Get_count(&s, MPI_INT, &count));
  CHECK(count == N);
  CALL(MPI_File_sync(f));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_File_get_size(f, &n));
  CHECK(n == (MPI_Offset)(size * sizeof out));
  other = (rank + 1) % size;
  CALL(MPI_File_read_at(f, (MPI_Offset)(other * sizeof out), in, N, MPI_INT, &s));
  for (i = 0; i < N; i++) CHECK(in[i] == other * N + i);
  CALL(MPI_File_read_at(f, n, in, N, MPI_INT, &s)); /* at the end there is nothing */
  CALL(MPI_Get_count(&s, MPI_INT, &count));
  CHECK(count == 0);
  CALL(MPI_Barrier(MPI_COMM_WORLD));

  /* Each rank sees every size-th int only. */
  CALL(MPI_Type_vector(N, 1, size, MPI_INT, &strided));
  CALL(MPI_Type_commit(&strided));
  CALL(MPI_File_set_view(f, (MPI_Offset)(rank * sizeof(int)), MPI_INT, strided, "native", MPI_INFO_NULL));
  CALL(MPI_File_write_all(f, out, N, MPI_INT, &s));
  CALL(MPI_File_seek(f, 0, MPI_SEEK_SET));
  memset(in, 0, sizeof in);
  CALL(MPI_File_read_all(f, in, N, MPI_INT, &s));
  for (i = 0; i < N; i++) CHECK(in[i] == out[i]);
  CALL(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  CALL(MPI_File_sync(f));
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  CALL(MPI_File_read_at(f, 0, in, (int)(size * sizeof(int)), MPI_BYTE, &s));
  for (i = 0; i < size; i++) CHECK(in[i] == i * N);
  CALL(MPI_Type_free(&strided));
  CALL(MPI_File_close(&f));
  CHECK(f == MPI_FILE_NULL);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CALL(MPI_File_delete(name, MPI_INFO_NULL));
  return end("files");
}
