/* A proc is lost, and the others go on: in mpi-ext.h's terms, with the fast paths of one machine and
 * without. The argument says what rank 1 is lost before. */
#include "test.h"
#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

static int op(const char *what) {
  static double many[200000];
  int in[4] = {0}, one = 1, flag;
  MPI_Request r;
  MPI_Status st;
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
  if (rank == 1) {
    kill(getpid(), SIGKILL);
    pause();
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
