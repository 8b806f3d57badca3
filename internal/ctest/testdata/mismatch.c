/* Members of a collective operation that do not call the same thing. The program runs
   with IMPI_CHECK=1: each of them hears of it, and nothing hangs. */
#include "test.h"

/* differs wants an error that names the function and what the two members gave. */
static void differs(int code, const char *fn, const char *one, const char *other, int line) {
  char text[MPI_MAX_ERROR_STRING];
  int n, class = -1;
  CALL(MPI_Error_class(code, &class));
  CALL(MPI_Error_string(code, text, &n));
  if (class != MPI_ERR_NOT_SAME || !strstr(text, fn) || !strstr(text, one) || !strstr(text, other)) {
    fprintf(stderr, "rank %d: line %d: class %d, without %s, %s or %s: %s\n", rank, line, class, fn, one, other, text);
    wrong++;
  }
}

#define DIFFERS(call, fn, one, other) differs(call, fn, one, other, __LINE__)

int main(int argc, char **argv) {
  int in[64] = {0}, odd, code, sum = -1;
  char out[64 * sizeof(int)] = {0};
  MPI_Request r;
  MPI_Datatype t, pair;
  begin(&argc, &argv);
  odd = rank == 1;
  t = odd ? MPI_FLOAT : MPI_INT;
  DIFFERS(MPI_Bcast(in, 1, t, 0, MPI_COMM_WORLD), "MPI_Bcast", "int32", "float32");
  DIFFERS(MPI_Bcast(in, 1 + odd, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast", "4 bytes", "8 bytes");
  DIFFERS(MPI_Bcast(in, 1, MPI_INT, odd, MPI_COMM_WORLD), "MPI_Bcast", "root 0", "root 1");
  DIFFERS(MPI_Allreduce(in, out, 1, t, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce", "int32", "float32");
  DIFFERS(MPI_Reduce(in, out, 1, MPI_INT, odd ? MPI_MAX : MPI_SUM, 0, MPI_COMM_WORLD), "MPI_Reduce", "sum", "max");
  DIFFERS(MPI_Alltoall(in, 1, t, out, 1, t, MPI_COMM_WORLD), "MPI_Alltoall", "int32", "float32");
  DIFFERS(MPI_Allgather(in, 1, t, out, 1, t, MPI_COMM_WORLD), "MPI_Allgather", "int32", "float32");
  DIFFERS(MPI_Scan(in, out, 1, t, MPI_SUM, MPI_COMM_WORLD), "MPI_Scan", "int32", "float32");
  code = odd ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_WORLD);
  DIFFERS(code, odd ? "MPI_Barrier" : "MPI_Bcast", "calls Bcast", "calls Barrier");
  CALL(MPI_Iallreduce(in, out, 1, t, MPI_SUM, MPI_COMM_WORLD, &r));
  DIFFERS(MPI_Wait(&r, MPI_STATUS_IGNORE), "Iallreduce", "int32", "float32");
  CALL(MPI_Bcast_init(in, 1, t, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
  CALL(MPI_Start(&r));
  DIFFERS(MPI_Wait(&r, MPI_STATUS_IGNORE), "Ibcast", "int32", "float32");
  CALL(MPI_Request_free(&r));
  /* One member cannot do its part: all hear of it, and that one why. */
  code = MPI_Bcast(odd ? NULL : in, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (odd) FAILS(MPI_ERR_BUFFER, code);
  else FAILS(MPI_ERR_NOT_SAME, code);
  /* What has the same signature is the same: two ints, and one pair of them. */
  CALL(MPI_Type_contiguous(2, MPI_INT, &pair));
  CALL(MPI_Type_commit(&pair));
  CALL(MPI_Bcast(in, odd ? 1 : 2, odd ? pair : MPI_INT, 0, MPI_COMM_WORLD));
  CALL(MPI_Type_free(&pair));
  in[0] = rank;
  CALL(MPI_Allreduce(in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size * (size - 1) / 2);
  return end("mismatch");
}
