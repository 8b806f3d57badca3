/* A token goes round in every way there is to send and to receive. */
#include "test.h"

static int left, right;

static void modes(void) {
  int out = rank, in = -1, i;
  MPI_Request r;
  MPI_Status s;
  int (*sends[])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Bsend};
  int (*isends[])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {MPI_Isend, MPI_Issend, MPI_Ibsend};
  int space = 10 * (MPI_BSEND_OVERHEAD + 64), detached;
  char *buffer = malloc(space), *back;
  CALL(MPI_Buffer_attach(buffer, space));
  for (i = 0; i < 3; i++) {
    CALL(MPI_Irecv(&in, 1, MPI_INT, left, i, MPI_COMM_WORLD, &r));
    CALL(sends[i](&out, 1, MPI_INT, right, i, MPI_COMM_WORLD));
    CALL(MPI_Wait(&r, &s));
    CHECK(in == left && s.MPI_SOURCE == left && r == MPI_REQUEST_NULL);
    in = -1;
    CALL(isends[i](&out, 1, MPI_INT, right, i, MPI_COMM_WORLD, &r));
    CALL(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s));
    CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(in == left && s.MPI_SOURCE == left && s.MPI_TAG == i);
    CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
  CALL(MPI_Irecv(&in, 1, MPI_INT, left, 9, MPI_COMM_WORLD, &r));
  CALL(MPI_Barrier(MPI_COMM_WORLD)); /* all receives are posted */
  CALL(MPI_Rsend(&out, 1, MPI_INT, right, 9, MPI_COMM_WORLD));
  CALL(MPI_Wait(&r, &s));
  CHECK(in == left);
  CALL(MPI_Buffer_detach(&back, &detached));
  CHECK(back == buffer && detached == space);
  free(buffer);
}

static void probes(void) {
  double out[5] = {1, 2, 3, 4, rank}, *in;
  MPI_Request r;
  MPI_Status s;
  int flag = 0, n;
  CALL(MPI_Isend(out, 5, MPI_DOUBLE, right, 77, MPI_COMM_WORLD, &r));
  CALL(MPI_Probe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &s));
  CALL(MPI_Get_count(&s, MPI_DOUBLE, &n));
  CHECK(n == 5 && s.MPI_TAG == 77 && s.MPI_SOURCE == left);
  CALL(MPI_Get_count(&s, MPI_CHAR, &n));
  CHECK(n == 40);
  while (!flag) CALL(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &s));
  in = malloc(5 * sizeof *in);
  CALL(MPI_Recv(in, 5, MPI_DOUBLE, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, &s));
  CHECK(in[4] == left && in[0] == 1);
  free(in);
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static void persistent(void) {
  int out = 0, in = 0, i;
  MPI_Request r[2];
  MPI_Status s[2];
  CALL(MPI_Send_init(&out, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &r[0]));
  CALL(MPI_Recv_init(&in, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &r[1]));
  for (i = 0; i < 10; i++) {
    out = rank * 100 + i;
    CALL(MPI_Startall(2, r));
    CALL(MPI_Waitall(2, r, s));
    CHECK(in == left * 100 + i && r[0] != MPI_REQUEST_NULL && r[1] != MPI_REQUEST_NULL);
  }
  CALL(MPI_Wait(&r[0], &s[0])); /* an inactive one is done at once */
  CALL(MPI_Request_free(&r[0]));
  CALL(MPI_Request_free(&r[1]));
  CHECK(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
}

/* Completion of some of many, in all four ways. */
static void many(void) {
  enum { N = 8 };
  int out[N], in[N], i, index, flag, count, done, indices[2 * N];
  MPI_Request r[2 * N];
  MPI_Status s[2 * N];
  int way;
  for (way = 0; way < 6; way++) {
    for (i = 0; i < N; i++) {
      out[i] = rank * N + i;
      in[i] = -1;
      CALL(MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &r[i]));
    }
    for (i = N - 1; i >= 0; i--) CALL(MPI_Isend(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &r[N + i]));
    for (done = 0; done < 2 * N;) switch (way) {
      case 0:
        CALL(MPI_Waitany(2 * N, r, &index, s));
        CHECK(index >= 0 && index < 2 * N && r[index] == MPI_REQUEST_NULL);
        done++;
        break;
      case 1:
        CALL(MPI_Testany(2 * N, r, &index, &flag, s));
        done += flag;
        break;
      case 2:
        CALL(MPI_Waitsome(2 * N, r, &count, indices, s));
        CHECK(count > 0);
        done += count;
        break;
      case 3:
        CALL(MPI_Testsome(2 * N, r, &count, indices, s));
        done += count;
        break;
      case 4:
        CALL(MPI_Testall(2 * N, r, &flag, s));
        if (flag) done = 2 * N;
        break;
      default:
        CALL(MPI_Waitall(2 * N, r, MPI_STATUSES_IGNORE));
        done = 2 * N;
      }
    for (i = 0; i < N; i++) CHECK(in[i] == left * N + i);
    for (i = 0; i < 2 * N; i++) CHECK(r[i] == MPI_REQUEST_NULL);
    CALL(MPI_Waitany(2 * N, r, &index, s));
    CHECK(index == MPI_UNDEFINED);
    CALL(MPI_Testsome(2 * N, r, &count, indices, s));
    CHECK(count == MPI_UNDEFINED);
  }
}

static void nobody(void) {
  int x = 5, n, flag;
  MPI_Status s;
  MPI_Request r = MPI_REQUEST_NULL;
  CALL(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  CALL(MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &s));
  CALL(MPI_Get_count(&s, MPI_INT, &n));
  CHECK(x == 5 && n == 0 && s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG);
  CALL(MPI_Wait(&r, &s));
  CHECK(s.MPI_SOURCE == MPI_ANY_SOURCE && s.MPI_TAG == MPI_ANY_TAG);
  CALL(MPI_Irecv(&x, 1, MPI_INT, left, 12345, MPI_COMM_WORLD, &r));
  CALL(MPI_Request_get_status(r, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  CALL(MPI_Cancel(&r));
  CALL(MPI_Wait(&r, &s));
  CALL(MPI_Test_cancelled(&s, &flag));
  CHECK(flag);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  modes();
  probes();
  persistent();
  many();
  nobody();
  return end("ring");
}
