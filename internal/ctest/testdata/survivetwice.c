/* Second losses: a proc is lost, two are spawned in its place, and one of these, or one of the
 * procs that have spawned them, is lost, too. Those that are left, of both worlds, revoke, agree
 * and shrink. The argument says who is lost in the end, by its rank among all: 0 to 2 are of the
 * job, 3 and 4 were spawned. */
#include "test.h"
#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

enum { team = 5 };

/* code is the class of an error, 0 for none. */
static int code(int error) {
  int class;
  CALL(MPI_Error_class(error, &class));
  return class;
}

/* replace has rank 3 of the job die, and returns the intercommunicator with two that are spawned
 * for it. */
static MPI_Comm replace(char **argv) {
  int byte = 0, r;
  MPI_Comm left, inter;
  char *args[] = {argv[1], NULL};
  CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  if (rank == 3) {
    for (r = 0; r < 3; r++) /* all are there */
      CALL(MPI_Recv(&byte, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    kill(getpid(), SIGKILL);
  }
  CALL(MPI_Send(&byte, 1, MPI_INT, 3, 0, MPI_COMM_WORLD));
  FAILS(MPIX_ERR_PROC_FAILED, MPI_Recv(&byte, 1, MPI_INT, 3, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CALL(MPIX_Comm_shrink(MPI_COMM_WORLD, &left));
  CALL(MPI_Comm_spawn(argv[0], args, 2, MPI_INFO_NULL, 0, left, &inter, MPI_ERRCODES_IGNORE));
  CALL(MPI_Comm_free(&left));
  return inter;
}

/* across has both sides of the intercommunicator agree, each on the flags of the other one, and
 * shrink. */
static void across(MPI_Comm inter, int me, int lost) {
  int flag = ~(1 << me), want = -1, far = 0, n, one = 1, sum, r, error;
  MPI_Comm left;
  for (r = 0; r < team; r++)
    if (r != lost && (r < 3) != (me < 3)) want &= ~(1 << r), far++;
  FAILS(MPIX_ERR_PROC_FAILED, MPIX_Comm_agree(inter, &flag)); /* nobody has acknowledged it */
  CHECK(flag == want);
  do {
    CALL(MPIX_Comm_failure_ack(inter));
    flag = ~(1 << me);
    error = MPIX_Comm_agree(inter, &flag);
    CHECK(flag == want);
  } while (code(error) == MPIX_ERR_PROC_FAILED); /* until all have heard of it */
  CALL(error);
  CALL(MPIX_Comm_shrink(inter, &left));
  CALL(MPI_Comm_remote_size(left, &n));
  CHECK(n == far);
  CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left)); /* of the other side */
  CHECK(sum == far);
}

int main(int argc, char **argv) {
  int me, lost, byte = 0, flag, want = -1, members = 0, sum, n, r, error;
  MPI_Comm parent, inter, all, left;
  MPI_Request q;
  begin(&argc, &argv);
  lost = atoi(argv[1]);
  CALL(MPI_Comm_get_parent(&parent));
  inter = parent == MPI_COMM_NULL ? replace(argv) : parent;
  CALL(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
  CALL(MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all));
  CALL(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
  CALL(MPI_Barrier(all));
  CALL(MPI_Comm_rank(all, &me));
  CALL(MPI_Send(&byte, 1, MPI_INT, lost, 2, all)); /* nobody is lost before all are here */
  if (me == lost) {
    for (r = 0; r < team; r++)
      CALL(MPI_Recv(&byte, 1, MPI_INT, r, 2, all, MPI_STATUS_IGNORE));
    kill(getpid(), SIGKILL);
  }
  error = code(MPI_Recv(&byte, 1, MPI_INT, lost, 0, all, MPI_STATUS_IGNORE));
  CHECK(error == MPIX_ERR_PROC_FAILED || error == MPIX_ERR_REVOKED);
  if (me == (lost == 0)) CALL(MPIX_Comm_revoke(all)); /* the others hear of it */
  error = code(MPI_Recv(&byte, 1, MPI_INT, me, 1, all, MPI_STATUS_IGNORE)); /* nobody sends it */
  CHECK(error == MPIX_ERR_REVOKED);
  across(inter, me, lost);
  CALL(MPIX_Comm_shrink(all, &left));
  flag = ~(1 << me);
  CALL(MPIX_Comm_iagree(left, &flag, &q));
  CALL(MPI_Wait(&q, MPI_STATUS_IGNORE));
  for (r = 0; r < team; r++)
    if (r != lost) want &= ~(1 << r), members |= 1 << r;
  CHECK(flag == want);
  CALL(MPI_Comm_size(left, &n));
  CHECK(n == team - 1);
  r = 1 << me;
  CALL(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, left));
  CHECK(sum == members);
  if (!wrong) printf("rank %d goes on with %d\n", me, sum);
  fflush(stdout);
  CALL(MPI_Finalize());
  return wrong != 0;
}
