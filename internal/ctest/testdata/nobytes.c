/* Collective operations in which nobody has a byte to send: on one host they return at once, without
   waiting for the other members, which here come when rank 0 has done them all. Members may say so by
   a count of 0 or by a datatype of no bytes, and do other operations before and after. */
#include "test.h"

static MPI_Datatype none; /* of no bytes */

#define TYPED(derived) (derived) ? 3 : 0, (derived) ? none : MPI_INT

/* blocking does all operations without bytes; root may be anybody. */
static void blocking(MPI_Comm c, int root, int derived, int place) {
  int a = 7, b = 9;
  const void *own = place ? MPI_IN_PLACE : &a;
  int me;
  MPI_Comm_rank(c, &me);
  CALL(MPI_Bcast(&b, TYPED(derived), root, c));
  CALL(MPI_Gather(me == root ? own : &a, TYPED(derived), &b, TYPED(derived), root, c));
  CALL(MPI_Scatter(&a, TYPED(derived), me == root && place ? MPI_IN_PLACE : &b, TYPED(derived), root, c));
  CALL(MPI_Allgather(own, TYPED(derived), &b, TYPED(derived), c));
  CALL(MPI_Alltoall(own, TYPED(derived), &b, TYPED(derived), c));
  CALL(MPI_Reduce(me == root ? own : &a, &b, 0, MPI_INT, MPI_SUM, root, c));
  CALL(MPI_Allreduce(own, &b, 0, MPI_INT, MPI_SUM, c));
  CALL(MPI_Reduce_scatter_block(own, &b, 0, MPI_INT, MPI_SUM, c));
  CHECK(a == 7 && b == 9);
}

static void nonblocking(MPI_Comm c, int root, int derived, int place) {
  int a = 7, b = 9, me, i, all;
  const void *own = place ? MPI_IN_PLACE : &a;
  MPI_Request q[7];
  MPI_Status s[7];
  MPI_Comm_rank(c, &me);
  CALL(MPI_Ibcast(&b, TYPED(derived), root, c, q));
  CALL(MPI_Igather(me == root ? own : &a, TYPED(derived), &b, TYPED(derived), root, c, q + 1));
  CALL(MPI_Iscatter(&a, TYPED(derived), me == root && place ? MPI_IN_PLACE : &b, TYPED(derived), root, c, q + 2));
  CALL(MPI_Iallgather(own, TYPED(derived), &b, TYPED(derived), c, q + 3));
  CALL(MPI_Ialltoall(own, TYPED(derived), &b, TYPED(derived), c, q + 4));
  CALL(MPI_Ireduce(me == root ? own : &a, &b, 0, MPI_INT, MPI_SUM, root, c, q + 5));
  CALL(MPI_Iallreduce(own, &b, 0, MPI_INT, MPI_SUM, c, q + 6));
  CALL(MPI_Wait(q, s));
  CALL(MPI_Testall(6, q + 1, &all, s + 1));
  CHECK(all);
  for (i = 0; i < 7; i++) CHECK(q[i] == MPI_REQUEST_NULL);
  CHECK(a == 7 && b == 9);
}

static void sum(MPI_Comm c) {
  int me, n, all;
  MPI_Comm_rank(c, &me);
  MPI_Comm_size(c, &n);
  CALL(MPI_Allreduce(&me, &all, 1, MPI_INT, MPI_SUM, c));
  CHECK(all == n * (n - 1) / 2);
}

/* early has rank 0 do all before the others begin. */
static void early(MPI_Comm c, int root) {
  int me, n, i, k;
  MPI_Comm_rank(c, &me);
  MPI_Comm_size(c, &n);
  if (me > 0) CALL(MPI_Recv(NULL, 0, MPI_INT, 0, 5, c, MPI_STATUS_IGNORE));
  for (k = 0; k < 50; k++) {
    blocking(c, root, (k + me) % 2, k % 3 == 0);
    nonblocking(c, root, (k + me) % 2, k % 3 == 0);
  }
  for (i = 1; me == 0 && i < n; i++) CALL(MPI_Send(NULL, 0, MPI_INT, i, 5, c));
  sum(c);
}

int main(int argc, char **argv) {
  MPI_Comm dup;
  int i;
  begin(&argc, &argv);
  CALL(MPI_Type_contiguous(0, MPI_INT, &none));
  CALL(MPI_Type_commit(&none));
  CALL(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  for (i = 0; i < 3; i++) { /* the first operation of a communicator finds its place on the board */
    sum(MPI_COMM_WORLD);
    sum(dup);
    early(MPI_COMM_WORLD, i % size);
    early(dup, (i + 1) % size);
  }
  CALL(MPI_Comm_free(&dup));
  CALL(MPI_Type_free(&none));
  return end("nobytes");
}
