/* What programs ask and keep beside communication: info, names, memory, time,
   generalised requests, versions; large counts, and the ABI itself. */
#include "test.h"

static void infos(void) {
  MPI_Info info, twin;
  char key[MPI_MAX_INFO_KEY + 1], value[100];
  int n, flag, len;
  CALL(MPI_Info_create(&info));
  CALL(MPI_Info_set(info, "first", "one"));
  CALL(MPI_Info_set(info, "second", "two words"));
  CALL(MPI_Info_set(info, "first", "1"));
  CALL(MPI_Info_get_nkeys(info, &n));
  CHECK(n == 2);
  CALL(MPI_Info_get_nthkey(info, 0, key));
  CHECK(strcmp(key, "first") == 0);
  CALL(MPI_Info_get(info, "second", 99, value, &flag));
  CHECK(flag && strcmp(value, "two words") == 0);
#ifdef MPI_ABI_VERSION
  CALL(MPI_Info_get(info, "second", 3, value, &flag));
  CHECK(flag && strcmp(value, "two") == 0);
#endif
  CALL(MPI_Info_get(info, "third", 99, value, &flag));
  CHECK(!flag);
  CALL(MPI_Info_get_valuelen(info, "second", &len, &flag));
  CHECK(flag && len == 9);
  CALL(MPI_Info_dup(info, &twin));
  CALL(MPI_Info_delete(info, "first"));
  FAILS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "first"));
  CALL(MPI_Info_get_nkeys(twin, &n));
  CHECK(n == 2);
  CALL(MPI_Info_free(&info));
  CALL(MPI_Info_free(&twin));
  CHECK(info == MPI_INFO_NULL);
}

static int queried, freed;
static int query(void *extra, MPI_Status *s) {
  queried++;
  MPI_Status_set_elements(s, MPI_INT, *(int *)extra);
  MPI_Status_set_cancelled(s, 0);
  s->MPI_SOURCE = 5;
  s->MPI_TAG = 6;
  return MPI_SUCCESS;
}
static int release(void *extra) {
  (void)extra;
  freed++;
  return MPI_SUCCESS;
}
static int cancel(void *extra, int complete) {
  (void)extra;
  (void)complete;
  return MPI_SUCCESS;
}

static void generalised(void) {
  int seven = 7, n, flag;
  MPI_Request r, copy;
  MPI_Status s;
  CALL(MPI_Grequest_start(query, release, cancel, &seven, &r));
  CALL(MPI_Test(&r, &flag, &s));
  CHECK(!flag);
  copy = r;
  CALL(MPI_Grequest_complete(copy));
  CALL(MPI_Wait(&r, &s));
  CALL(MPI_Get_count(&s, MPI_INT, &n));
  CHECK(n == 7 && s.MPI_SOURCE == 5 && s.MPI_TAG == 6 && queried == 1 && freed == 1);
}

static void surroundings(void) {
  char name[MPI_MAX_PROCESSOR_NAME];
  int n, major, minor;
  double a, b;
  void *p;
  CALL(MPI_Get_processor_name(name, &n));
  CHECK(n > 0 && (int)strlen(name) == n);
  CALL(MPI_Get_version(&major, &minor));
  CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION);
  a = MPI_Wtime();
  b = MPI_Wtime();
  CHECK(b >= a && MPI_Wtick() > 0 && MPI_Wtick() < 1);
  CALL(MPI_Alloc_mem(1000, MPI_INFO_NULL, &p));
  memset(p, 1, 1000);
  CALL(MPI_Free_mem(p));
  CALL(MPI_Pcontrol(1, "anything", 2));
}

#if MPI_VERSION >= 4
static void large(void) {
  MPI_Count n, lb, extent;
  MPI_Datatype t;
  MPI_Status s;
  int x = rank, y = -1, *row = malloc(size * sizeof *row);
  CALL(MPI_Sendrecv_c(&x, 1, MPI_INT, (rank + 1) % size, 1, &y, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &s));
  CHECK(y == (rank + size - 1) % size);
  CALL(MPI_Get_count_c(&s, MPI_INT, &n));
  CHECK(n == 1);
  CALL(MPI_Allreduce_c(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(y == size * (size - 1) / 2);
  /* In place the send count is ignored, also one that no members could have a block of. */
  for (int i = 0; i < size; i++) row[i] = 100 * rank + i;
  CALL(MPI_Alltoall_c(MPI_IN_PLACE, (MPI_Count)1 << 62, MPI_INT, row, 1, MPI_INT, MPI_COMM_WORLD));
  for (int i = 0; i < size; i++) CHECK(row[i] == 100 * i + rank);
  free(row);
  CALL(MPI_Type_contiguous_c((MPI_Count)5 << 30, MPI_INT, &t));
  CALL(MPI_Type_size_c(t, &n));
  CHECK(n == (MPI_Count)20 << 30);
  CALL(MPI_Type_get_extent_c(t, &lb, &extent));
  CHECK(lb == 0 && extent == n);
  CALL(MPI_Type_size(t, &y));
  CHECK(y == MPI_UNDEFINED);
  CALL(MPI_Type_free(&t));
}
#endif

#ifdef MPI_ABI_VERSION
static void abi(void) {
  int major = -9, minor = -9, flag, n;
  char value[20];
  MPI_Info info;
  MPI_Comm twin;
  CALL(MPI_Abi_get_version(&major, &minor));
  CHECK(major == 1 && minor == 0);
  CALL(MPI_Abi_get_info(&info));
  CALL(MPI_Info_get(info, "mpi_aint_size", 19, value, &flag));
  CHECK(flag && (size_t)atoi(value) == sizeof(MPI_Aint));
  CALL(MPI_Info_free(&info));
  CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 257 && MPI_Comm_fromint(257) == MPI_COMM_WORLD);
  CHECK(MPI_Type_toint(MPI_INT) == 521 && MPI_Op_toint(MPI_SUM) == 33);
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
  n = MPI_Comm_toint(twin);
  CHECK((n < 0 || n > 4095) && MPI_Comm_fromint(n) == twin);
  CALL(MPI_Comm_free(&twin));
}
#endif

#if MPI_VERSION >= 4
/* started keeps what MPI_Info_create_env gives before MPI_Init, or compares it with what it gives
 * now. */
static void started(int argc, char **argv, int before) {
  static char values[16][2][1024];
  static int n;
  MPI_Info info;
  int i, keys = -1, flag, length;
  char key[MPI_MAX_INFO_KEY + 1], value[1024];
  CALL(MPI_Info_create_env(argc, argv, &info));
  CALL(MPI_Info_get_nkeys(info, &keys));
  if (before) n = keys;
  CHECK(keys == n && keys >= 5 && keys <= 16);
  for (i = 0; i < keys && i < 16; i++) {
    length = sizeof value;
    CALL(MPI_Info_get_nthkey(info, i, key));
    CALL(MPI_Info_get_string(info, key, &length, value, &flag));
    CHECK(flag);
    if (before) {
      snprintf(values[i][0], sizeof values[i][0], "%.1023s", key);
      snprintf(values[i][1], sizeof values[i][1], "%s", value);
    }
    CHECK(!strcmp(values[i][0], key) && !strcmp(values[i][1], value));
    CHECK(before || strcmp(key, "maxprocs") || atoi(value) == size);
  }
  CALL(MPI_Info_free(&info));
}
#endif

int main(int argc, char **argv) {
#if MPI_VERSION >= 4
  started(argc, argv, 1);
#endif
  begin(&argc, &argv);
#if MPI_VERSION >= 4
  started(argc, argv, 0);
#endif
  infos();
  generalised();
  surroundings();
#if MPI_VERSION >= 4
  large();
#endif
#ifdef MPI_ABI_VERSION
  abi();
#endif
  return end("misc");
}
