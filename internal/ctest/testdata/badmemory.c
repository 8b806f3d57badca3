/* Buffers where there is no memory: the call that is given one fails, and the links go on. */
#include "test.h"
#include <sys/mman.h>
#include <unistd.h>

static char good[1 << 22];

static void between(char *bad, int n) {
  MPI_Request r;
  int to = size - 1;
  if (rank == 0) {
    FAILS(MPI_ERR_BUFFER, MPI_Send(bad, n, MPI_CHAR, to, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Ssend(bad, n, MPI_CHAR, to, 0, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Isend(bad, n, MPI_CHAR, to, 0, MPI_COMM_WORLD, &r));
    FAILS(MPI_ERR_BUFFER, MPI_Send_init(bad, n, MPI_CHAR, to, 0, MPI_COMM_WORLD, &r));
    CALL(MPI_Send(good, n, MPI_CHAR, to, 1, MPI_COMM_WORLD));
    CALL(MPI_Send(bad, n, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD)); /* nobody looks at it */
  } else if (rank == to) {
    FAILS(MPI_ERR_BUFFER, MPI_Recv(bad, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_BUFFER, MPI_Irecv(bad, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &r));
    CALL(MPI_Recv(bad, n, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CALL(MPI_Recv(good, n, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  FAILS(MPI_ERR_BUFFER, MPI_Sendrecv(bad, n, MPI_CHAR, (rank + 1) % size, 0, good, n, MPI_CHAR, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_BUFFER, MPI_Bcast(bad, n, MPI_CHAR, 0, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Allreduce(bad, good, n / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  FAILS(MPI_ERR_BUFFER, MPI_Ialltoall(good, n / size / 2, MPI_CHAR, bad, n / size / 2, MPI_CHAR, MPI_COMM_WORLD, &r));
  CALL(MPI_Bcast(good, n, MPI_CHAR, 0, MPI_COMM_WORLD));
}

/* warm exchanges short messages until calls need not find out anything. */
static void warm(void) {
  int other = size - 1 - rank, i, in;
  MPI_Request r[2];
  if (rank != 0 && rank != size - 1) return;
  for (i = 0; i < 300; i++) {
    in = -1;
    CALL(MPI_Irecv(&in, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &r[0]));
    CALL(MPI_Isend(&i, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &r[1]));
    CALL(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    CHECK(in == i);
    CALL(MPI_Sendrecv(&i, 1, MPI_INT, other, 4, &in, 1, MPI_INT, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == i);
  }
}

/* constant receives into memory that cannot be written, which may be known to be readable. */
static void constant(void) {
  long page = sysconf(_SC_PAGESIZE);
  char *fixed = (char *)mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), zero = 1;
  int other = size - 1 - rank, i;
  MPI_Request r;
  if (rank != 0 && rank != size - 1) return;
  for (i = 0; i < 10; i++) {
    CALL(MPI_Isend(fixed, 1, MPI_CHAR, other, 5, MPI_COMM_WORLD, &r));
    CALL(MPI_Recv(&zero, 1, MPI_CHAR, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(zero == 0);
    FAILS(MPI_ERR_BUFFER, MPI_Irecv(fixed, 1, MPI_CHAR, other, 6, MPI_COMM_WORLD, &r));
  }
}

int main(int argc, char **argv) {
  static const int lengths[] = {64, 5000, 100000, sizeof good};
  long page = sysconf(_SC_PAGESIZE);
  char *last;
  MPI_Request r;
  int i, x = 5, y = 0;
  begin(&argc, &argv);
  for (i = 0; i < 4; i++) between((char *)0x5a5a5a5a000, lengths[i]);
  if (size > 1) {
    warm();
    constant();
    for (i = 0; i < 4; i++) between((char *)0x5a5a5a5a000, lengths[i]);
    warm();
  }
  /* Memory that ends too early, which is enough for what comes. */
  last = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(munmap(last + page, page) == 0);
  FAILS(MPI_ERR_BUFFER, MPI_Send(last, 2 * (int)page, MPI_CHAR, rank, 0, MPI_COMM_WORLD));
  CALL(MPI_Irecv(last + page - sizeof x, 2, MPI_INT, rank, 2, MPI_COMM_WORLD, &r));
  CALL(MPI_Send(&x, 1, MPI_INT, rank, 2, MPI_COMM_WORLD));
  CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  memcpy(&y, last + page - sizeof x, sizeof y);
  CHECK(y == 5);
  return end("badmemory");
}
