/* Messages whose memory is there where it begins, and not further on: the call fails, and what
 * comes after goes on. */
#include "test.h"
#include <sys/mman.h>
#include <unistd.h>

enum { LARGEST = 1 << 20 };

static char good[LARGEST], in[LARGEST];
static char *hole; /* memory of which only the first page is there */
static long page;

/* after has messages go both ways. */
static void after(int n) {
  int other = size - 1 - rank;
  MPI_Status st;
  memset(in, 0, sizeof in);
  CALL(MPI_Sendrecv(good, n, MPI_CHAR, other, 9, in, LARGEST, MPI_CHAR, other, 9, MPI_COMM_WORLD, &st));
  CHECK(memcmp(in, good, n) == 0);
}

/* tail gives memory of which some bytes are there. */
static char *tail(int there) { return hole + page - there; }

enum { LATE = 1, NONBLOCKING = 2, SYNCHRONOUS = 4, WAYS = 8 };

/* receives receives n bytes where fewer are. */
static void receives(int n, int way, MPI_Datatype t, int count) {
  int other = size - 1 - rank, there = n / 2 < page ? n / 2 : page;
  if (rank == 0) {
    if (way & LATE) CALL(MPI_Recv(NULL, 0, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (way & SYNCHRONOUS)
      CALL(MPI_Ssend(good, n, MPI_CHAR, other, 1, MPI_COMM_WORLD));
    else
      CALL(MPI_Send(good, n, MPI_CHAR, other, 1, MPI_COMM_WORLD));
  } else {
    char *buf = tail(there);
    MPI_Request r;
    if (way & NONBLOCKING) {
      CALL(MPI_Irecv(buf, count, t, other, 1, MPI_COMM_WORLD, &r));
      if (way & LATE) CALL(MPI_Send(NULL, 0, MPI_CHAR, other, 2, MPI_COMM_WORLD));
      FAILS(MPI_ERR_BUFFER, MPI_Wait(&r, MPI_STATUS_IGNORE));
    } else {
      if (way & LATE) CALL(MPI_Send(NULL, 0, MPI_CHAR, other, 2, MPI_COMM_WORLD));
      FAILS(MPI_ERR_BUFFER, MPI_Recv(buf, count, t, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
}

/* sends sends n bytes of which some are not there. Nothing of them comes. */
static void sends(int n, int way) {
  int other = size - 1 - rank;
  MPI_Request r;
  char *buf = tail(n / 2 < page ? n / 2 : page);
  if (rank != 0) return;
  if (way & NONBLOCKING)
    FAILS(MPI_ERR_BUFFER, MPI_Isend(buf, n, MPI_CHAR, other, 9, MPI_COMM_WORLD, &r));
  else if (way & SYNCHRONOUS)
    FAILS(MPI_ERR_BUFFER, MPI_Ssend(buf, n, MPI_CHAR, other, 9, MPI_COMM_WORLD));
  else
    FAILS(MPI_ERR_BUFFER, MPI_Send(buf, n, MPI_CHAR, other, 9, MPI_COMM_WORLD));
}

/* middle sends memory that is not there in its middle. */
static void middle(void) {
  char *m = (char *)mmap(NULL, LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(munmap(m + LARGEST / 2, page) == 0);
  if (rank == 0) FAILS(MPI_ERR_BUFFER, MPI_Send(m, LARGEST, MPI_CHAR, size - 1, 9, MPI_COMM_WORLD));
  after(LARGEST);
  CHECK(munmap(m, LARGEST / 2) == 0 && munmap(m + LARGEST / 2 + page, LARGEST / 2 - page) == 0);
}

/* spread sends and receives every other int, so that the library packs and unpacks. */
static void spread(int n) {
  int other = size - 1 - rank, count = n / 4;
  MPI_Datatype t;
  CALL(MPI_Type_create_resized(MPI_INT, 0, 8, &t));
  CALL(MPI_Type_commit(&t));
  receives(n, 0, t, count);
  after(n);
  if (rank == 0) {
    /* Its last item is there, so that the call cannot know. */
    char *m = (char *)mmap(NULL, 4 * page + 2 * LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(m + page, page, PROT_NONE) == 0);
    if (8 * count > 2 * page)
      FAILS(MPI_ERR_BUFFER, MPI_Send(m, count, t, other, 7, MPI_COMM_WORLD));
    else
      CALL(MPI_Send(m, 0, t, other, 7, MPI_COMM_WORLD));
    CHECK(munmap(m, 4 * page + 2 * LARGEST) == 0);
  } else {
    CALL(MPI_Recv(in, LARGEST, MPI_CHAR, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  after(n);
  CALL(MPI_Type_free(&t));
}

/* again does it all, at first or once calls need not find out anything. */
static void again(void) {
  static const int lengths[] = {8, 64, 96, 2000, 60000, 200000, LARGEST};
  int i, way;
  for (i = 0; i < 7; i++) {
    int n = lengths[i];
    for (way = 0; way < WAYS; way++) {
      receives(n, way, MPI_CHAR, n);
      after(n);
      receives(n, way, MPI_CHAR, n);
      receives(n, way, MPI_CHAR, n);
      after(64);
      sends(n, way);
      after(n);
    }
    spread(n);
  }
  middle();
}

int main(int argc, char **argv) {
  int i;
  begin(&argc, &argv);
  page = sysconf(_SC_PAGESIZE);
  hole = (char *)mmap(NULL, 2 * LARGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mprotect(hole + page, 2 * LARGEST - page, PROT_NONE) == 0);
  fill(good, sizeof good, 5);
  if (size > 1 && (rank == 0 || rank == size - 1)) {
    again();
    for (i = 0; i < 300; i++) after(8);
    again();
  }
  return end("badtail");
}
