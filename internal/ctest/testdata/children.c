/* The program makes processes of its own while MPI runs. */
#include "test.h"
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include <signal.h>

static void forks(void) {
  int status, i, count = 0, fd;
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) _exit(rank + 3); /* does nothing with MPI */
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == rank + 3);
  pid = fork();
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
    _exit(99);
  }
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5);
  /* Many at a time, while messages travel. */
  for (i = 0; i < 20; i++) {
    int in;
    pid = fork();
    if (pid == 0) {
      for (fd = 3; fd < 256; fd++) close(fd);
      _exit(0);
    }
    count += pid > 0;
    CALL(MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 1, &in, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == i);
  }
  while (count > 0 && wait(&status) > 0) count--;
  CHECK(count == 0);
}

static void shells(void) {
  char line[100] = "";
  FILE *p;
  CHECK(system("exit 6") >> 8 == 6);
  p = popen("echo hello from a shell", "r");
  CHECK(p && fgets(line, sizeof line, p) && strcmp(line, "hello from a shell\n") == 0);
  if (p) pclose(p);
}

/* How many descriptors a program has that is started from here. */
static int descriptors(void) {
  char line[100] = "";
  FILE *p = popen("ls /proc/self/fd | wc -l", "r");
  CHECK(p && fgets(line, sizeof line, p));
  if (p) pclose(p);
  return atoi(line);
}

/* The program starts a process, and then itself anew, as those do that want another
   environment. MPI knows nothing of either. It gives the process. */
static pid_t anew(char **argv) {
  const char *before = getenv("ANEW");
  char text[20];
  pid_t pid;
  if (before) return atoi(before);
  pid = fork();
  if (pid == 0) {
    for (pid = 0; pid < 3; pid++) close(pid); /* the rest it keeps */
    execlp("sleep", "sleep", "600", (char *)NULL);
    _exit(99);
  }
  snprintf(text, sizeof text, "%d", (int)pid);
  setenv("ANEW", text, 1);
  execv(argv[0], argv);
  perror(argv[0]);
  exit(1);
}

int main(int argc, char **argv) {
  int before, n;
  pid_t other = anew(argv);
  before = descriptors();
  begin(&argc, &argv);
  forks();
  shells();
  /* Those of MPI are closed in it: nothing of a job outlives its procs. */
  n = descriptors();
  CHECK(n > 0);
#ifdef MPI_ABI_VERSION
  CHECK(n <= before);
#endif
  forks();
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  n = end("children");
  CHECK(kill(other, SIGKILL) == 0);
  return n + wrong;
}
