/* Messages that nobody has asked for: a proc keeps a limited number of bytes of them, and
 * gets the message that it waits for all the same. */
#include "test.h"
#include <sys/resource.h>

enum { LARGE = 200 << 10, MESSAGES = 4000, NOTES = 300000 };

static char out[LARGE], in[LARGE];

static long peak(void) { /* in KiB */
  struct rusage u;
  CHECK(getrusage(RUSAGE_SELF, &u) == 0);
  return u.ru_maxrss;
}

/* large has the last rank send 800 MB that rank 0 asks for only later. */
static void large(void) {
  static MPI_Request r[MESSAGES];
  int i;
  if (rank == size - 1) {
    for (i = 0; i < MESSAGES; i++) CALL(MPI_Isend(out, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r[i]));
    CALL(MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD));
    CALL(MPI_Waitall(MESSAGES, r, MPI_STATUSES_IGNORE));
  } else if (rank == 0) {
    long before = peak(), grown;
    CALL(MPI_Recv(NULL, 0, MPI_CHAR, size - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (i = 0; i < MESSAGES; i++) {
      memset(in, 0, 8);
      CALL(MPI_Recv(in, LARGE, MPI_CHAR, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(memcmp(in, out, LARGE) == 0);
    }
    grown = (peak() - before) / 1024;
    if (grown > 128) {
      fprintf(stderr, "memory has grown by %ld MiB\n", grown);
      wrong++;
    }
  }
}

/* small has the last rank send 300,000 numbers, one at a time, and rank 0 look for another
 * message until no more of them come. The limit is that of the job: 64 MiB. */
static void small(void) {
  int i, x, flag, index, count, still = 0;
  if (rank == size - 1) {
    for (i = 0; i < NOTES; i++) CALL(MPI_Send(&i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
  } else if (rank == 0) {
    MPI_T_pvar_session s;
    MPI_T_pvar_handle h;
    unsigned long long kept = 0, before, most = (64ull << 20) / 320;
    CALL(MPI_T_init_thread(MPI_THREAD_SINGLE, &i));
    CALL(MPI_T_pvar_session_create(&s));
    CALL(MPI_T_pvar_get_index("impi_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &index));
    CALL(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count));
    while (still < 5 && kept <= most) {
      for (i = 0; i < 20000; i++) {
        CALL(MPI_Iprobe(size - 1, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
      }
      before = kept;
      CALL(MPI_T_pvar_read(s, h, &kept));
      still = kept > 0 && kept == before ? still + 1 : 0;
    }
    if (kept > most) {
      fprintf(stderr, "%llu messages are kept, at most %llu are right\n", kept, most);
      wrong++;
    }
    for (i = 0; i < NOTES && wrong < 10; i++) {
      x = -1;
      CALL(MPI_Recv(&x, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(x == i);
    }
    CALL(MPI_T_pvar_session_free(&s));
    CALL(MPI_T_finalize());
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  fill(out, sizeof out, 3);
  if (size > 1) {
    large();
    CALL(MPI_Barrier(MPI_COMM_WORLD));
    small();
  }
  return end("unexpected");
}
