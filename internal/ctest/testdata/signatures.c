/* What a message was sent as, and what it is received as. The program runs with IMPI_CHECK=1: a
   receive of something else fails and has the data all the same, with each function there is. */
#include "test.h"

static int left, right, way, ints[1000], in[2000];

/* differs wants the error of a receive that names who sent and what it and the receive are. */
static void differs(int code, const char *sent, const char *wanted, int line) {
  char text[MPI_MAX_ERROR_STRING], who[64];
  int n, class = -1;
  CALL(MPI_Error_class(code, &class));
  CALL(MPI_Error_string(code, text, &n));
  snprintf(who, sizeof who, "rank %d sent %s with tag 5", left, sent);
  if (class != MPI_ERR_TYPE || !strstr(text, who) || !strstr(text, wanted)) {
    fprintf(stderr, "rank %d: way %d, line %d: class %d, without %s or %s: %s\n", rank, way, line, class, who, wanted, text);
    wrong++;
  }
}
#define DIFFERS(call, sent, wanted) differs(call, sent, wanted, __LINE__)

/* round_trip sends count of a type around in some way, and gives the code of its receive as another
 * one. */
static int round_trip(int count, MPI_Datatype t, int room, MPI_Datatype as) {
  MPI_Request q, r;
  MPI_Message m;
  MPI_Status s;
  int code = -1, n = -1, flag = 0;
  memset(in, 0xff, sizeof in);
  if (way == 3) {
    CALL(MPI_Irecv(in, room, as, left, 5, MPI_COMM_WORLD, &r));
    CALL(MPI_Send(ints, count, t, right, 5, MPI_COMM_WORLD));
    do code = MPI_Test(&r, &flag, &s);
    while (code == MPI_SUCCESS && !flag);
    CHECK(flag && r == MPI_REQUEST_NULL);
    return code;
  }
  if (way == 4)
    return MPI_Sendrecv(ints, count, t, right, 5, in, room, as, left, 5, MPI_COMM_WORLD, &s);
  if (way == 5) {
    CALL(MPI_Recv_init(in, room, as, left, 5, MPI_COMM_WORLD, &r));
    CALL(MPI_Start(&r));
  }
  CALL(MPI_Isend(ints, count, t, right, 5, MPI_COMM_WORLD, &q));
  switch (way) {
  case 0: code = MPI_Recv(in, room, as, left, 5, MPI_COMM_WORLD, &s); break;
  case 1: code = MPI_Recv(in, room, as, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s); break;
  case 2:
    CALL(MPI_Mprobe(left, 5, MPI_COMM_WORLD, &m, &s));
    code = MPI_Mrecv(in, room, as, &m, &s);
    break;
  default:
    code = MPI_Wait(&r, &s);
    CALL(MPI_Request_free(&r));
  }
  CALL(MPI_Wait(&q, MPI_STATUS_IGNORE));
  CALL(MPI_Get_count(&s, MPI_INT, &n));
  CHECK(code != MPI_SUCCESS || t != MPI_INT || as != MPI_INT || n == count);
  return code;
}

int main(int argc, char **argv) {
  int i;
  MPI_Datatype pair, turned, strided;
  MPI_Datatype of[2] = {MPI_INT, MPI_FLOAT}, fo[2] = {MPI_FLOAT, MPI_INT};
  int lens[2] = {1, 1};
  MPI_Aint at[2] = {0, 4};
  begin(&argc, &argv);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  for (i = 0; i < 1000; i++) ints[i] = i;
  CALL(MPI_Type_create_struct(2, lens, at, of, &pair));
  CALL(MPI_Type_create_struct(2, lens, at, fo, &turned));
  CALL(MPI_Type_vector(3, 1, 2, MPI_INT, &strided));
  CALL(MPI_Type_commit(&pair));
  CALL(MPI_Type_commit(&turned));
  CALL(MPI_Type_commit(&strided));
  for (way = 0; way < 6; way++) {
    CALL(round_trip(3, MPI_INT, 3, MPI_INT));
    CALL(round_trip(3, MPI_INT, 900, MPI_INT));
    CALL(round_trip(3, MPI_INT, 1, strided));
    CHECK(in[0] == 0 && in[2] == 1 && in[4] == 2 && in[1] == -1);
    CALL(round_trip(1, strided, 3, MPI_INT));
    CALL(round_trip(1, MPI_INT, 2, pair));
    CALL(round_trip(12, MPI_PACKED, 3, MPI_INT));
    CALL(round_trip(3, MPI_INT, 12, MPI_PACKED));
    CALL(round_trip(0, MPI_DOUBLE, 3, MPI_INT));
    CALL(round_trip(1000, MPI_INT, 1000, MPI_INT));
    DIFFERS(round_trip(3, MPI_INT, 3, MPI_FLOAT), "3 x int32", "for 3 x float32");
    CHECK(in[0] == 0 && in[1] == 1 && in[2] == 2 && in[3] == -1);
    DIFFERS(round_trip(3, MPI_INT, 12, MPI_BYTE), "3 x int32", "for 12 x byte");
    DIFFERS(round_trip(4, MPI_INT, 4, MPI_UNSIGNED), "4 x int32", "for 4 x uint32");
    DIFFERS(round_trip(2, pair, 2, turned), "4 elements of several types", "for float32, int32, float32, int32");
    DIFFERS(round_trip(1000, MPI_INT, 1000, MPI_FLOAT), "1000 x int32", "for 1000 x float32");
    CHECK(in[999] == 999);
  }
  CALL(MPI_Type_free(&pair));
  CALL(MPI_Type_free(&turned));
  CALL(MPI_Type_free(&strided));
  return end("signatures");
}
