/* Sessions that end before others begin, and before MPI_Init if the argument is
   init; with another one the program does not end by exit. */
#include "test.h"
#include <sys/wait.h>
#include <unistd.h>

static void session(void) {
  MPI_Session s;
  MPI_Group g;
  MPI_Comm c;
  MPI_Info info;
  int sum = -1, one = 1, n = 0, flag = 0, len = MPI_MAX_INFO_VAL;
  char level[MPI_MAX_INFO_VAL] = "";
  CALL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s));
  CALL(MPI_Session_get_info(s, &info));
  CALL(MPI_Info_get_string(info, "thread_level", &len, level, &flag));
  CHECK(flag && strcmp(level, "MPI_THREAD_MULTIPLE") == 0);
  CALL(MPI_Info_free(&info));
  CALL(MPI_Group_from_session_pset(s, "mpi://WORLD", &g));
  CALL(MPI_Comm_create_from_group(g, "sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
  CALL(MPI_Comm_size(c, &n));
  CALL(MPI_Comm_rank(c, &rank));
  CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
  CHECK(sum == n);
  CALL(MPI_Comm_free(&c));
  CALL(MPI_Group_free(&g));
  CALL(MPI_Session_finalize(&s));
  CHECK(s == MPI_SESSION_NULL);
}

int main(int argc, char **argv) {
  int flag = 1;
  session();
  session();
  CALL(MPI_Initialized(&flag));
  CHECK(!flag);
  if (argc == 1 || strcmp(argv[1], "init")) {
    pid_t pid;
    int status = -1;
    if (rank == 0 && wrong == 0) printf("OK sessions\n");
    fflush(stdout);
    if ((pid = fork()) == 0) exit(3); /* its end is not that of the proc */
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3) return 1;
    if (argc > 1) quick_exit(wrong);
    return wrong;
  }
  begin(&argc, &argv);
  session();
  return end("sessions");
}
