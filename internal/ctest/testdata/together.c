/* Files that aggregators read and write for all. The argument is the file's name; "killed" behind
   it has rank 0, which is the aggregator, die while all write. */
#include "test.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

enum { BLOCK = 8, BLOCKS = 20000 };

static char out[BLOCK * BLOCKS], in[BLOCK * BLOCKS];

static MPI_File opened(const char *name, const char *way, const char *buffer) {
  MPI_File f;
  MPI_Info info;
  CALL(MPI_Info_create(&info));
  CALL(MPI_Info_set(info, "romio_cb_write", way));
  CALL(MPI_Info_set(info, "romio_cb_read", way));
  CALL(MPI_Info_set(info, "cb_buffer_size", buffer));
  CALL(MPI_Info_set(info, "cb_config_list", "*:1"));
  CALL(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
  CALL(MPI_Info_free(&info));
  return f;
}

static void striped(MPI_File f) {
  MPI_Datatype t;
  CALL(MPI_Type_vector(BLOCKS, BLOCK, size * BLOCK, MPI_BYTE, &t));
  CALL(MPI_Type_commit(&t));
  CALL(MPI_File_set_view(f, rank * BLOCK, MPI_BYTE, t, "native", MPI_INFO_NULL));
  CALL(MPI_Type_free(&t));
}

/* The files of this process may have so many bytes. */
static void limit(rlim_t bytes) {
  struct rlimit l;
  getrlimit(RLIMIT_FSIZE, &l);
  l.rlim_cur = bytes < l.rlim_max ? bytes : l.rlim_max;
  CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

static void check(MPI_File f) {
  MPI_Status s;
  int n = 0;
  memset(in, 0, sizeof in);
  CALL(MPI_File_read_at_all(f, 0, in, sizeof in, MPI_BYTE, &s));
  CALL(MPI_Get_count(&s, MPI_BYTE, &n));
  CHECK(n == sizeof in && memcmp(in, out, sizeof in) == 0);
}

/* Pieces that overlap computation, by nonblocking and split calls. */
static void later(MPI_File f) {
  MPI_Request q[2];
  MPI_Status s[2];
  int n = 0, i, sum = 0, all = 0;
  for (i = 0; i < (int)sizeof out; i++) out[i] ^= 1;
  CALL(MPI_File_iwrite_at_all(f, 0, out, sizeof out / 2, MPI_BYTE, &q[0]));
  CALL(MPI_File_iwrite_at_all(f, sizeof out / 2, out + sizeof out / 2, sizeof out / 2, MPI_BYTE, &q[1]));
  CALL(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(all == size * (size - 1) / 2);
  CALL(MPI_Waitall(2, q, s));
  CALL(MPI_Get_count(&s[1], MPI_BYTE, &n));
  CHECK(n == sizeof out / 2);
  check(f);
  for (i = 0; i < (int)sizeof out; i++) out[i] ^= 2;
  CALL(MPI_File_write_at_all_begin(f, 0, out, sizeof out, MPI_BYTE));
  for (i = 0; i < 1000000; i++) sum += i & rank;
  CALL(MPI_File_write_at_all_end(f, out, &s[0]));
  CALL(MPI_Get_count(&s[0], MPI_BYTE, &n));
  CHECK(n == sizeof out && sum >= 0);
  CALL(MPI_File_read_at_all_begin(f, 0, in, sizeof in, MPI_BYTE));
  CALL(MPI_File_read_at_all_end(f, in, &s[0]));
  CHECK(memcmp(in, out, sizeof in) == 0);
}

static void die(int sig) { kill(getpid(), sig == SIGALRM ? SIGKILL : SIGABRT); }

int main(int argc, char **argv) {
  MPI_File f;
  MPI_Status s;
  int i;
  begin(&argc, &argv);
  for (i = 0; i < (int)sizeof out; i++) out[i] = (char)(i * 7 + rank);
  signal(SIGXFSZ, SIG_IGN);
  if (argc > 2) {
    struct itimerval soon = {{0, 0}, {0, 30000}};
    f = opened(argv[1], "enable", "4096");
    striped(f);
    if (rank == 0) {
      signal(SIGALRM, die);
      setitimer(ITIMER_REAL, &soon, NULL);
    }
    for (;;) MPI_File_write_at_all(f, 0, out, sizeof out, MPI_BYTE, &s); /* the job ends it */
  }

  /* The other procs need not be able to write. */
  f = opened(argv[1], "enable", "65536");
  striped(f);
  if (rank > 0) limit(0);
  CALL(MPI_File_write_at_all(f, 0, out, sizeof out, MPI_BYTE, &s));
  limit(RLIM_INFINITY);
  check(f);
  later(f);
  CALL(MPI_File_close(&f));

  /* If each writes by itself, the error of one is one of all. */
  f = opened(argv[1], "disable", "65536");
  striped(f);
  if (rank == size - 1) limit(0);
  FAILS(MPI_ERR_IO, MPI_File_write_at_all(f, 0, out, sizeof out, MPI_BYTE, &s));
  limit(RLIM_INFINITY);
  CALL(MPI_File_write_at_all(f, 0, out, sizeof out, MPI_BYTE, &s));
  check(f);
  CALL(MPI_File_close(&f));
  return end("together");
}
