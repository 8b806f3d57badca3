/*
 * Signals and their handlers belong to the program. Handlers run while MPI
 * waits and while it computes, and use as much stack as handlers do.
 */
#include "test.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#include <pthread.h>

static volatile sig_atomic_t alarms, users, profs;

static void deep(int n) {
  volatile char space[4096];
  space[0] = (char)n;
  if (n > 0) deep(n - 1);
  space[1] = space[0];
}

static void on_alarm(int s) {
  (void)s;
  alarms++;
  deep(4); /* 16 KiB: more than the stack of a goroutine */
}

static void on_user(int s, siginfo_t *info, void *context) {
  (void)s;
  (void)context;
  if (info->si_pid == getpid()) users++;
  deep(4);
}

static void on_prof(int s) {
  (void)s;
  profs++;
}

static void traffic(int rounds) {
  int i, in, left = (rank + size - 1) % size, right = (rank + 1) % size;
  char *big = malloc(300000), *got = malloc(300000);
  for (i = 0; i < rounds; i++) {
    in = -1;
    CALL(MPI_Sendrecv(&i, 1, MPI_INT, right, 1, &in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == i);
    if (i % 100 == 0) {
      fill(big, 300000, rank);
      CALL(MPI_Sendrecv(big, 300000, MPI_CHAR, right, 2, got, 300000, MPI_CHAR, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(filled(got, 300000, left));
    }
    if (i % 10 == 0) raise(SIGUSR2);
  }
  free(big);
  free(got);
}

int main(int argc, char **argv) {
  struct sigaction a, old, now;
  struct itimerval every = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
  sigset_t set, pending;
  int i;
  /* One handler stands before MPI starts, the others come later. */
  memset(&a, 0, sizeof a);
  a.sa_sigaction = on_user;
  a.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR2, &a, NULL);
  begin(&argc, &argv);
  sigaction(SIGUSR2, NULL, &now);
  CHECK(now.sa_sigaction == on_user);
  memset(&a, 0, sizeof a);
  a.sa_handler = on_alarm;
  a.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGALRM, &a, &old) == 0);
  a.sa_handler = on_prof;
  CHECK(sigaction(SIGPROF, &a, &old) == 0);
  CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
  CHECK(setitimer(ITIMER_PROF, &every, NULL) == 0);
  traffic(2000);
  while (alarms < 20) { /* a wait in MPI is interrupted and goes on */
    MPI_Request r;
    int flag;
    CALL(MPI_Irecv(&i, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &r));
    CALL(MPI_Send(&rank, 1, MPI_INT, rank, 3, MPI_COMM_WORLD));
    CALL(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
    if (!flag) CALL(MPI_Wait(&r, MPI_STATUS_IGNORE));
  }
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  setitimer(ITIMER_REAL, &off, NULL);
  setitimer(ITIMER_PROF, &off, NULL);
  CHECK(users == 200);
  CHECK(alarms >= 20);
  sigaction(SIGALRM, NULL, &now);
  CHECK(now.sa_handler == on_alarm);

  /* A blocked signal stays pending for this thread. */
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  pthread_kill(pthread_self(), SIGUSR2);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGUSR2) && users == 200);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
  CHECK(users == 201);

  /* An ignored signal is ignored, and SIGPIPE has its default. */
  signal(SIGUSR1, SIG_IGN);
  raise(SIGUSR1);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  return end("signals");
}
