/* Memory for buffered sends: of the process, of a communicator, of a session. */
#include "test.h"

enum { N = 2000 };

static char memory[3][N + MPI_BSEND_OVERHEAD], data[N], got[N];

static int left, right;

/* take receives n messages of N bytes on a communicator. */
static void take(MPI_Comm c, int n) {
  while (n-- > 0) {
    memset(got, 0, N);
    CALL(MPI_Recv(got, N, MPI_BYTE, left, 1, c, MPI_STATUS_IGNORE));
    CHECK(filled(got, N, left));
  }
}

static int bsend(MPI_Comm c) { return MPI_Bsend(data, N, MPI_BYTE, right, 1, c); }

/* The memory of the process, which is for one message. */
static void process(void) {
  void *p;
  int n = -1;
  MPI_Request r;
  FAILS(MPI_ERR_BUFFER, bsend(MPI_COMM_WORLD));
  CALL(MPI_Buffer_attach(memory[0], sizeof memory[0]));
  FAILS(MPI_ERR_BUFFER, MPI_Buffer_attach(memory[1], sizeof memory[1]));
  CALL(bsend(MPI_COMM_WORLD));
  take(MPI_COMM_WORLD, 1);
  CALL(MPI_Buffer_flush());
  CALL(bsend(MPI_COMM_WORLD));
  CALL(MPI_Buffer_iflush(&r));
  take(MPI_COMM_WORLD, 1);
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CALL(MPI_Buffer_detach(&p, &n));
  CHECK(p == memory[0] && n == (int)sizeof memory[0]);
#ifdef MPI_ABI_VERSION
  CALL(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
  for (n = 0; n < 20; n++) CALL(bsend(MPI_COMM_WORLD));
  take(MPI_COMM_WORLD, 20);
  CALL(MPI_Buffer_detach(&p, &n));
  CHECK(p == MPI_BUFFER_AUTOMATIC && n == 0);
#endif
}

#ifdef MPI_ABI_VERSION
static void communicator(void) {
  MPI_Comm c, d;
  MPI_Request r;
  void *p;
  MPI_Count wide;
  int n;
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &c));
  CALL(MPI_Comm_attach_buffer(c, memory[1], sizeof memory[1]));
  CALL(MPI_Comm_dup(c, &d));
  CALL(bsend(c));
  FAILS(MPI_ERR_BUFFER, bsend(d)); /* it is not inherited */
  FAILS(MPI_ERR_BUFFER, bsend(MPI_COMM_WORLD));
  CALL(MPI_Comm_iflush_buffer(c, &r));
  take(c, 1);
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CALL(MPI_Comm_flush_buffer(c));
  CALL(MPI_Comm_detach_buffer_c(c, &p, &wide));
  CHECK(p == memory[1] && wide == sizeof memory[1]);
  CALL(MPI_Buffer_attach(memory[0], sizeof memory[0]));
  CALL(bsend(c));
  take(c, 1);
  CALL(MPI_Buffer_detach(&p, &n));
  CALL(MPI_Comm_free(&c));
  CALL(MPI_Comm_free(&d));
  FAILS(MPI_ERR_COMM, MPI_Comm_attach_buffer(MPI_COMM_NULL, memory[1], N));
  FAILS(MPI_ERR_BUFFER, MPI_Comm_attach_buffer(MPI_COMM_SELF, NULL, N));
}

static void session(void) {
  MPI_Session s;
  MPI_Group all, some;
  MPI_Comm c, d;
  void *p;
  int n;
  CALL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
  CALL(MPI_Group_from_session_pset(s, "mpi://WORLD", &all));
  CALL(MPI_Group_excl(all, 0, NULL, &some));
  CALL(MPI_Comm_create_from_group(some, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
  CALL(MPI_Comm_dup(c, &d));
  FAILS(MPI_ERR_BUFFER, bsend(d));
  CALL(MPI_Session_attach_buffer(s, memory[2], sizeof memory[2]));
  CALL(bsend(d));
  FAILS(MPI_ERR_BUFFER, bsend(MPI_COMM_WORLD)); /* it is of no session */
  take(d, 1);
  CALL(MPI_Session_flush_buffer(s));
  CALL(MPI_Comm_attach_buffer(c, memory[1], sizeof memory[1]));
  CALL(bsend(d));
  CALL(bsend(c)); /* both have room */
  take(c, 1);
  take(d, 1);
  CALL(MPI_Comm_detach_buffer(c, &p, &n));
  CHECK(p == memory[1]);
  CALL(MPI_Session_detach_buffer(s, &p, &n));
  CHECK(p == memory[2] && n == (int)sizeof memory[2]);
  CALL(MPI_Comm_free(&c));
  CALL(MPI_Comm_free(&d));
  CALL(MPI_Group_free(&all));
  CALL(MPI_Group_free(&some));
  CALL(MPI_Session_finalize(&s));
}
#endif

int main(int argc, char **argv) {
  begin(&argc, &argv);
  right = (rank + 1) % size, left = (rank + size - 1) % size;
  fill(data, N, rank);
  process();
#ifdef MPI_ABI_VERSION
  communicator();
  session();
#endif
  return end("buffers");
}
