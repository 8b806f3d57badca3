/* The tool interface: all variables are read by what they say of themselves. */
#include "test.h"

static int has(const char *name) {
  int i = -1;
  CALL(MPI_T_cvar_get_index(name, &i));
  return i;
}

/* number reads a control variable. */
static int number(const char *name, int *code) {
  MPI_T_cvar_handle h;
  int count = 0, value = -1;
  CALL(MPI_T_cvar_handle_alloc(has(name), NULL, &h, &count));
  CHECK(count == 1);
  *code = MPI_T_cvar_read(h, &value);
  CALL(MPI_T_cvar_handle_free(&h));
  CHECK(h == MPI_T_CVAR_HANDLE_NULL);
  return value;
}

static int set(const char *name, int value) {
  MPI_T_cvar_handle h;
  int count, code;
  CALL(MPI_T_cvar_handle_alloc(has(name), NULL, &h, &count));
  code = MPI_T_cvar_write(h, &value);
  CALL(MPI_T_cvar_handle_free(&h));
  return code;
}

static void controls(void) {
  int n = 0, i, j, items, value;
  CALL(MPI_T_cvar_get_num(&n));
  CHECK(n >= 5);
  for (i = 0; i < n; i++) {
    char name[64], desc[256], item[16];
    int name_len = sizeof name, desc_len = sizeof desc, needed = 0, verbosity, bind, scope;
    MPI_Datatype t;
    MPI_T_enum e;
    CALL(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &t, &e, desc, &desc_len, &bind, &scope));
    CHECK(name_len == (int)strlen(name) + 1 && desc_len == (int)strlen(desc) + 1);
    CHECK(t == MPI_INT && bind == MPI_T_BIND_NO_OBJECT && has(name) == i);
    CALL(MPI_T_cvar_get_info(i, NULL, &needed, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(needed == name_len);
    needed = 4; /* three characters and the end */
    CALL(MPI_T_cvar_get_info(i, item, &needed, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(strncmp(item, name, 3) == 0 && item[3] == 0 && needed == name_len);
    if (e == MPI_T_ENUM_NULL) continue;
    CALL(MPI_T_enum_get_info(e, &items, NULL, NULL));
    for (j = 0; j < items; j++) {
      int len = sizeof item;
      CALL(MPI_T_enum_get_item(e, j, &value, item, &len));
      CHECK(value == j && len > 1);
    }
    CHECK(MPI_T_enum_get_item(e, items, &value, item, &needed) == MPI_T_ERR_INVALID_ITEM);
  }
  CHECK(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
  CHECK(MPI_T_cvar_get_index("no such thing", &i) == MPI_T_ERR_INVALID_NAME);
  CHECK(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &i) == MPI_T_ERR_INVALID_HANDLE);
}

static unsigned long long read_one(MPI_T_pvar_session s, const char *name, int class) {
  MPI_T_pvar_handle h;
  int i = -1, count;
  unsigned long long value = 77;
  CALL(MPI_T_pvar_get_index(name, class, &i));
  CALL(MPI_T_pvar_handle_alloc(s, i, NULL, &h, &count));
  CHECK(count == 1);
  CALL(MPI_T_pvar_read(s, h, &value));
  CHECK(MPI_T_pvar_start(s, h) == MPI_T_ERR_PVAR_NO_STARTSTOP);
  CHECK(MPI_T_pvar_reset(s, h) == MPI_T_ERR_PVAR_NO_WRITE);
  CHECK(MPI_T_pvar_write(s, h, &value) == MPI_T_ERR_PVAR_NO_WRITE);
  CALL(MPI_T_pvar_handle_free(s, &h));
  CHECK(h == MPI_T_PVAR_HANDLE_NULL);
  return value;
}

static void measures(void) {
  MPI_T_pvar_session s, other;
  MPI_T_pvar_handle h, old;
  MPI_Request r;
  int n, i, count, class, readonly, continuous, x = 0;
  unsigned long long before, bytes, value;
  CALL(MPI_T_pvar_session_create(&s));
  CALL(MPI_T_pvar_session_create(&other));
  CALL(MPI_T_pvar_get_num(&n));
  for (i = 0; i < n; i++) {
    char name[64];
    int len = sizeof name, index = -1;
    MPI_Datatype t;
    CALL(MPI_T_pvar_get_info(i, name, &len, NULL, &class, &t, NULL, NULL, NULL, NULL, &readonly, &continuous, NULL));
    CHECK(t == MPI_UNSIGNED_LONG_LONG && readonly == 1 && continuous == 1);
    CALL(MPI_T_pvar_get_index(name, class, &index));
    CHECK(index == i);
    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &index) == MPI_T_ERR_INVALID_NAME);
  }
  read_one(s, "impi_sleep_time", MPI_T_PVAR_CLASS_TIMER);
  /* 0, as nobody has asked that these calls are counted */
  CHECK(read_one(s, "impi_calls_sendrecv", MPI_T_PVAR_CLASS_COUNTER) == 0);
  bytes = read_one(s, "impi_data_bytes_sent", MPI_T_PVAR_CLASS_COUNTER);
  before = read_one(s, "impi_messages_sent", MPI_T_PVAR_CLASS_COUNTER);
  for (i = 0; i < 5; i++) CALL(MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 0, &x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(read_one(s, "impi_messages_sent", MPI_T_PVAR_CLASS_COUNTER) >= before + 5);
  CHECK(read_one(s, "impi_data_bytes_sent", MPI_T_PVAR_CLASS_COUNTER) >= bytes + 5 * sizeof(int));
  before = read_one(s, "impi_unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL);
  CALL(MPI_Send(&x, 1, MPI_INT, rank, 8, MPI_COMM_WORLD));
  CHECK(read_one(s, "impi_unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL) >= before + sizeof x);
  CALL(MPI_Recv(&x, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(size == 1 || read_one(s, "impi_bytes_sent", MPI_T_PVAR_CLASS_COUNTER) > 0);
  before = read_one(s, "impi_posted_receives", MPI_T_PVAR_CLASS_LEVEL);
  CALL(MPI_Irecv(&x, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &r));
  CHECK(read_one(s, "impi_posted_receives", MPI_T_PVAR_CLASS_LEVEL) == before + 1);
  CALL(MPI_Cancel(&r));
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CHECK(read_one(s, "impi_posted_receives", MPI_T_PVAR_CLASS_LEVEL) == before);
  CALL(MPI_T_pvar_handle_alloc(s, 0, NULL, &h, &count));
  old = h;
  CHECK(MPI_T_pvar_read(other, h, &value) == MPI_T_ERR_INVALID_HANDLE);
  CALL(MPI_T_pvar_start(s, MPI_T_PVAR_ALL_HANDLES));
  CALL(MPI_T_pvar_stop(s, MPI_T_PVAR_ALL_HANDLES));
  CALL(MPI_T_pvar_session_free(&s));
  CHECK(s == MPI_T_PVAR_SESSION_NULL);
  CHECK(MPI_T_pvar_read(other, old, &value) == MPI_T_ERR_INVALID_HANDLE);
  CHECK(MPI_T_pvar_session_free(&s) == MPI_T_ERR_INVALID_SESSION);
  CALL(MPI_T_pvar_session_free(&other));
}

static void categories(void) {
  int n, index = -1, cvars, pvars, cats, *all, i, events = -1;
  char name[64];
  int len = sizeof name;
  CALL(MPI_T_category_get_num(&n));
  CHECK(n == 1);
  CALL(MPI_T_category_get_info(0, name, &len, NULL, NULL, &cvars, &pvars, &cats));
  CALL(MPI_T_category_get_index(name, &index));
  CHECK(index == 0 && cats == 0);
  all = malloc(cvars * sizeof *all);
  CALL(MPI_T_category_get_cvars(0, cvars, all));
  for (i = 0; i < cvars; i++) CHECK(all[i] == i);
  free(all);
  CALL(MPI_T_category_get_num_events(0, &events));
  CHECK(events == 0);
  CHECK(MPI_T_category_get_pvars(1, 0, NULL) == MPI_T_ERR_INVALID_INDEX);
  CALL(MPI_T_event_get_num(&events));
  CHECK(events == 0);
  CHECK(MPI_T_event_get_index("anything", &events) == MPI_T_ERR_INVALID_NAME);
}

int main(int argc, char **argv) {
  int provided, code, n;
  CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
  CALL(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  controls();
  number("impi_hiwater", &code);
  CHECK(code == MPI_T_ERR_NOT_ACCESSIBLE); /* the job is not known */
  CHECK(number("impi_check", &code) == 0);
  CALL(set("impi_check", 1));
  CHECK(set("impi_check", 2) == MPI_T_ERR_INVALID);
  begin(&argc, &argv);
  CHECK(number("impi_check", &code) == 1 && code == MPI_SUCCESS);
  CHECK(set("impi_check", 0) == MPI_T_ERR_CVAR_SET_NOT_NOW);
  CHECK(number("impi_hiwater", &code) >= 1 && code == MPI_SUCCESS);
  CHECK(number("impi_packet_data", &code) >= 1024 && code == MPI_SUCCESS);
  CHECK(set("impi_hiwater", 3) == MPI_T_ERR_CVAR_SET_NEVER);
  n = rank; /* IMPI_CHECK is at work: roots differ */
  if (size > 1) FAILS(MPI_ERR_NOT_SAME, MPI_Bcast(&n, 1, MPI_INT, rank == 0 ? 0 : 1, MPI_COMM_WORLD));
  controls();
  measures();
  categories();
  CALL(MPI_T_finalize());
  CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
  return end("tool");
}
