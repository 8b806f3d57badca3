/* A proc is lost, and the others go on: in mpi-ext.h's terms, with the fast paths of one machine
 * and without. The argument says what rank 1 is lost before. */
#include "test.h"
#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

static MPI_Win win; /* made before the loss */
static MPI_File file;
static double *shared;

/* prepare makes what op uses. */
static void prepare(const char *what) {
  if (!strcmp(what, "writeall") || !strcmp(what, "write") || !strcmp(what, "close")) {
    CALL(MPI_File_open(MPI_COMM_WORLD, "survive.out", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  } else if (!strncmp(what, "w-", 2)) {
    if (!strcmp(what, "w-shared"))
      CALL(MPI_Win_allocate_shared(80, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win));
    else
      CALL(MPI_Win_allocate(80, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win));
    CALL(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    CALL(MPI_Win_fence(0, win));
    CALL(MPI_Put(shared + 5, 1, MPI_DOUBLE, (rank + 1) % size, 1, 1, MPI_DOUBLE, win));
    CALL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  }
}

/* windowed is op for windows. */
static int windowed(const char *what) {
  double x = rank, y = 0;
  int code = MPI_SUCCESS, i;
  MPI_Group all, one;
  if (!strcmp(what, "w-fence") || !strcmp(what, "w-shared"))
    return MPI_Win_fence(0, win);
  if (!strcmp(what, "w-free"))
    return MPI_Win_free(&win);
  if (!strcmp(what, "w-lock")) { /* of the lost one, until its loss is known */
    for (i = 0; code == MPI_SUCCESS; i++) {
      code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
      if (code == MPI_SUCCESS) code = MPI_Put(&x, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win);
      if (code == MPI_SUCCESS) code = MPI_Win_unlock(1, win);
    }
    return code;
  }
  if (!strcmp(what, "w-others")) { /* those that are left still have theirs */
    MPI_Recv(&x, 1, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(MPI_Win_lock(MPI_LOCK_SHARED, rank == 0 ? 2 : 0, 0, win));
    CALL(MPI_Get(&y, 1, MPI_DOUBLE, rank == 0 ? 2 : 0, 0, 1, MPI_DOUBLE, win));
    CALL(MPI_Win_unlock(rank == 0 ? 2 : 0, win));
    return MPIX_ERR_PROC_FAILED;
  }
  if (!strcmp(what, "w-held")) { /* it has held the lock of rank 0 */
    MPI_Recv(&x, 1, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CALL(MPI_Put(&x, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win));
    CALL(MPI_Win_unlock(0, win));
    return MPIX_ERR_PROC_FAILED;
  }
  if (!strcmp(what, "w-lockall")) {
    code = MPI_Win_lock_all(0, win);
    for (i = 0; code == MPI_SUCCESS; i++) {
      code = MPI_Put(&x, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win);
      if (code == MPI_SUCCESS) code = MPI_Win_flush(1, win);
    }
    return code;
  }
  if (!strcmp(what, "w-start")) {
    i = 1;
    CALL(MPI_Comm_group(MPI_COMM_WORLD, &all));
    CALL(MPI_Group_incl(all, 1, &i, &one));
    code = MPI_Win_start(one, 0, win);
    if (code == MPI_SUCCESS) code = MPI_Put(&x, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win);
    if (code == MPI_SUCCESS) code = MPI_Win_complete(win);
    return code;
  }
  if (!strcmp(what, "w-post")) {
    i = 1;
    CALL(MPI_Comm_group(MPI_COMM_WORLD, &all));
    CALL(MPI_Group_incl(all, 1, &i, &one));
    code = MPI_Win_post(one, 0, win);
    return code == MPI_SUCCESS ? MPI_Win_wait(win) : code;
  }
  fprintf(stderr, "no operation %s\n", what);
  exit(3);
}

static int op(const char *what) {
  static double many[200000];
  int in[4] = {0}, one = 1, flag;
  MPI_Request r;
  MPI_Status st;
  if (!strncmp(what, "w-", 2)) return windowed(what);
  if (!strcmp(what, "close")) return MPI_File_close(&file);
  if (!strcmp(what, "write")) { /* of each alone */
    MPI_Recv(in, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(MPI_File_write_at(file, 8 * rank, many, 1, MPI_DOUBLE, &st));
    return MPIX_ERR_PROC_FAILED;
  }
  if (!strcmp(what, "writeall"))
    return MPI_File_write_at_all(file, 8 * rank, many, 1, MPI_DOUBLE, &st);
  if (!strcmp(what, "barrier")) return MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(what, "allreduce"))
    return MPI_Allreduce(&one, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(what, "bcast"))
    return MPI_Bcast(many, 200000, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  if (!strcmp(what, "recv"))
    return MPI_Recv(in, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!strcmp(what, "any"))
    return MPI_Recv(in, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &st);
  if (!strcmp(what, "probe"))
    return MPI_Probe(1, 5, MPI_COMM_WORLD, &st);
  if (!strcmp(what, "wait")) {
    CALL(MPI_Irecv(in, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &r));
    return MPI_Wait(&r, &st);
  }
  if (!strcmp(what, "ibarrier")) {
    CALL(MPI_Ibarrier(MPI_COMM_WORLD, &r));
    return MPI_Wait(&r, &st);
  }
  if (!strcmp(what, "send")) {
    int code;
    while ((code = MPI_Send(&one, 1, MPI_INT, 1, 5, MPI_COMM_WORLD)) == MPI_SUCCESS)
      ;
    return code;
  }
  if (!strcmp(what, "win")) {
    MPI_Win w;
    return MPI_Win_create(many, 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
  }
  if (!strcmp(what, "file")) {
    MPI_File f;
    CALL(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    return MPI_File_open(MPI_COMM_WORLD, "survive.out", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
  }
  if (!strcmp(what, "pending")) {
    CALL(MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &r));
    FAILS(MPIX_ERR_PROC_FAILED_PENDING, MPI_Wait(&r, &st));
    CHECK(r != MPI_REQUEST_NULL);
    FAILS(MPIX_ERR_PROC_FAILED_PENDING, MPI_Test(&r, &flag, &st));
    CALL(MPIX_Comm_failure_ack(MPI_COMM_WORLD));
    CALL(MPI_Test(&r, &flag, &st));
    CHECK(!flag);
    CALL(MPI_Send(&one, 1, MPI_INT, rank, 5, MPI_COMM_WORLD));
    CALL(MPI_Wait(&r, &st));
    CHECK(r == MPI_REQUEST_NULL && st.MPI_SOURCE == rank && in[0] == 1);
    return MPIX_ERR_PROC_FAILED;
  }
  fprintf(stderr, "no operation %s\n", what);
  exit(3);
}

int main(int argc, char **argv) {
  MPI_Comm c, d;
  MPI_Group g;
  MPI_Request r;
  int code, class, flag, n, sum = 0, want = 0, i;
  begin(&argc, &argv);
  for (i = 0; i < 100; i++) { /* the fast paths are used */
    int in = -1;
    CALL(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &in, 1, MPI_INT,
                      (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == (rank + size - 1) % size);
  }
  CALL(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
  CHECK(!flag);
  prepare(argv[1]);
  for (i = 0; i < size && rank == 1; i++) /* it is lost when all have prepared */
    if (i != 1) CALL(MPI_Recv(&n, 1, MPI_INT, i, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  if (rank != 1) CALL(MPI_Send(&rank, 1, MPI_INT, 1, 6, MPI_COMM_WORLD));
  if (rank == 1 && !strcmp(argv[1], "w-held")) CALL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  if (rank == 1) {
    kill(getpid(), SIGKILL);
    pause();
  }
  if (!strcmp(argv[1], "fatal")) { /* the job ends here */
    CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    argv[1] = "recv";
  }
  code = op(argv[1]);
  CALL(MPI_Error_class(code, &class));
  if (class != MPIX_ERR_PROC_FAILED) explain(code, argv[1], __LINE__);
  for (i = 0; i < size; i++) /* those that are left can talk, and have all tried it */
    if (i != 1 && i != rank)
      CALL(MPI_Sendrecv(&rank, 1, MPI_INT, i, 7, &n, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CALL(MPIX_Comm_revoke(MPI_COMM_WORLD));
  CALL(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
  CHECK(flag);
  FAILS(MPIX_ERR_REVOKED, MPI_Send(&rank, 1, MPI_INT, rank == 0 ? 2 : 0, 9, MPI_COMM_WORLD));
  FAILS(MPIX_ERR_REVOKED, MPI_Recv(&n, 1, MPI_INT, rank == 0 ? 2 : 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  FAILS(MPIX_ERR_REVOKED, MPI_Barrier(MPI_COMM_WORLD));
  FAILS(MPIX_ERR_REVOKED, MPI_Comm_dup(MPI_COMM_WORLD, &d));
  CALL(MPIX_Comm_shrink(MPI_COMM_WORLD, &c));
  CALL(MPI_Comm_size(c, &n));
  CHECK(n == size - 1);
  CALL(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c));
  for (i = 0; i < size; i++)
    if (i != 1) want += i;
  CHECK(sum == want);
  for (i = 0; i < 100; i++) CALL(MPI_Barrier(c));
  CALL(MPIX_Comm_get_failed(MPI_COMM_WORLD, &g));
  CALL(MPI_Group_size(g, &n));
  CHECK(n == 1);
  CALL(MPI_Group_free(&g));
  CALL(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 1, &n));
  CHECK(n == 1);
  CALL(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &g));
  CALL(MPI_Group_size(g, &n));
  CHECK(n == 1);
  CALL(MPI_Group_free(&g));
  flag = ~(1 << rank);
  CALL(MPIX_Comm_agree(c, &flag));
  CHECK(flag == ~((1 << size) - 1) + 2);
  flag = rank == 0 ? 6 : 3;
  CALL(MPIX_Comm_iagree(MPI_COMM_WORLD, &flag, &r));
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CHECK(flag == 2);
  CALL(MPIX_Comm_ishrink(c, &d, &r));
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  CALL(MPI_Comm_size(d, &n));
  CHECK(n == size - 1);
  CALL(MPI_Barrier(d));
  CALL(MPI_Comm_free(&d));
  CALL(MPI_Comm_free(&c));
  CALL(MPI_Finalize());
  if (rank == 0 && !wrong) printf("OK survive\n");
  return wrong != 0;
}
