/* Long collective operations of members of one host, which lend each other memory, where that does
   not work: some members may not read the memory of others any more, have memory for what comes
   that cannot be written, or call another length. The argument says which members stop reading:
   "odd" or "all". */
#include "test.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef ROUNDS
#define ROUNDS 40
#endif
enum { LONGEST = 400000 };

static char *sent, *got, *hole;
static MPI_Datatype pair;

static char byte(int k, int r, int i) { return (char)(k * 13 + r * 59 + i * 7 + i / 251); }

static void give(char *p, int n, int k, int r) {
  int i;
  for (i = 0; i < n; i++) p[i] = byte(k, r, i);
}

static void check(const char *p, int n, int k, int r, int from) {
  int i;
  for (i = 0; i < n && p[i] == byte(k, r, from + i); i++) continue;
  CHECK(i == n);
}

/* stop_reading has the kernel refuse process_vm_readv from now on. */
static int stop_reading(void) {
  struct sock_filter f[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog all = {sizeof f / sizeof *f, f};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) == 0;
}

#define TYPED(n) (go ? (n) / 8 : (n)), (go ? pair : MPI_BYTE)

/* all_reduced has all members get the sums of long vectors. */
static void all_reduced(int k) {
  int i, n = LONGEST / 8;
  long *from = (long *)sent, *to = (long *)got;
  for (i = 0; i < n; i++) from[i] = (long)rank * k + i;
  CALL(MPI_Allreduce(from, to, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
  for (i = 0; i < n && to[i] == (long)size * i + (long)k * size * (size - 1) / 2; i++) continue;
  CHECK(i == n);
  CALL(MPI_Allreduce(MPI_IN_PLACE, from, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
  CHECK(memcmp(from, to, LONGEST) == 0);
}

/* round_of does each operation once, of blocks of n bytes, in Go with a derived type. */
static void round_of(int k, int n, int go) {
  int r, i, root = k % size;
  give(sent, n * size, k, rank);
  memset(got, 0, n * size);
  CALL(MPI_Allgather(sent, TYPED(n), got, TYPED(n), MPI_COMM_WORLD));
  for (r = 0; r < size; r++) check(got + r * n, n, k, r, 0);
  memset(got, 0, n * size);
  CALL(MPI_Alltoall(sent, TYPED(n), got, TYPED(n), MPI_COMM_WORLD));
  for (r = 0; r < size; r++) check(got + r * n, n, k, r, rank * n);
  memset(got, 0, n * size);
  CALL(MPI_Gather(sent, TYPED(n), got, TYPED(n), root, MPI_COMM_WORLD));
  for (r = 0; r < size && rank == root; r++) check(got + r * n, n, k, r, 0);
  CALL(MPI_Scatter(sent, TYPED(n), got, TYPED(n), root, MPI_COMM_WORLD));
  check(got, n, k, root, rank * n);
  if (rank == root) give(got, n * size, k, root);
  CALL(MPI_Bcast(got, TYPED(n * size), root, MPI_COMM_WORLD));
  check(got, n * size, k, root, 0);
  for (i = 0; i < n / 8; i++) ((long *)sent)[i] = (long)rank + i;
  CALL(MPI_Reduce(sent, got, n / 8, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD));
  for (i = 0; i < n / 8 && rank == root && ((long *)got)[i] == (long)size * i + size * (size - 1) / 2; i++) continue;
  CHECK(rank != root || i == n / 8);
  if (rank == root) CALL(MPI_Reduce(MPI_IN_PLACE, sent, n / 8, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD));
  else CALL(MPI_Reduce(sent, NULL, n / 8, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD));
  CHECK(rank != root || memcmp(sent, got, n) == 0);
}

static void rounds(void) {
  static const int lengths[] = {40000, 9000 * 8, 131072, 133000};
  int k;
  for (k = 0; k < ROUNDS; k++) {
    int n = lengths[k % 4] / 8 * 8;
    if (n * size > LONGEST) n = LONGEST / size / 8 * 8;
    round_of(k, n, k / 4 % 3 == 2);
    all_reduced(k);
  }
}

/* no_memory has the last rank receive where only the first page can be written, short blocks and
 * long ones. */
static void no_memory(int n) {
  int last = rank == size - 1, r, i;
  char *to = last ? hole : got;
  for (i = 0; i < 3; i++) {
    give(sent, n * size, i, rank);
    if (last) FAILS(MPI_ERR_BUFFER, MPI_Allgather(sent, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD));
    else CALL(MPI_Allgather(sent, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD));
    memset(sent, 0, n);
    for (r = 0; r < size && !last; r++) check(got + r * n, n, i, r, 0);
    give(sent, n * size, i, rank);
    if (last) FAILS(MPI_ERR_BUFFER, MPI_Alltoall(sent, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD));
    else CALL(MPI_Alltoall(sent, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD));
    memset(sent, 0, n * size);
    for (r = 0; r < size && !last; r++) check(got + r * n, n, i, r, rank * n);
    give(sent, n * size, i, rank);
    if (last) FAILS(MPI_ERR_BUFFER, MPI_Gather(sent, n, MPI_BYTE, to, n, MPI_BYTE, size - 1, MPI_COMM_WORLD));
    else CALL(MPI_Gather(sent, n, MPI_BYTE, to, n, MPI_BYTE, size - 1, MPI_COMM_WORLD));
    give(got, n * size, i, 0);
    if (last) FAILS(MPI_ERR_BUFFER, MPI_Bcast(to, n * size, MPI_BYTE, 0, MPI_COMM_WORLD));
    else CALL(MPI_Bcast(got, n * size, MPI_BYTE, 0, MPI_COMM_WORLD));
    give(sent, n, i, rank);
    if (last) FAILS(MPI_ERR_BUFFER, MPI_Allreduce(sent, to, LONGEST / 4, MPI_INT, MPI_BXOR, MPI_COMM_WORLD));
    else CALL(MPI_Allreduce(sent, to, LONGEST / 4, MPI_INT, MPI_BXOR, MPI_COMM_WORLD));
    CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
}

/* other_lengths has the last rank want less than rank 0 lends. */
static void other_lengths(void) {
  int n = 300000, last = rank == size - 1, i;
  for (i = 0; i < 5; i++) {
    if (last) FAILS(MPI_ERR_COUNT, MPI_Bcast(got, n / 2, MPI_BYTE, 0, MPI_COMM_WORLD));
    else CALL(MPI_Bcast(got, n, MPI_BYTE, 0, MPI_COMM_WORLD));
    CALL(MPI_Barrier(MPI_COMM_WORLD));
  }
}

int main(int argc, char **argv) {
  long page = sysconf(_SC_PAGESIZE);
  int all = argc > 1 && strcmp(argv[1], "all") == 0;
  begin(&argc, &argv);
  sent = malloc(LONGEST), got = malloc(LONGEST);
  hole = (char *)mmap(NULL, page + LONGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mprotect(hole + page, LONGEST, PROT_READ) == 0);
  CALL(MPI_Type_contiguous(2, MPI_INT, &pair));
  CALL(MPI_Type_commit(&pair));
  rounds();
  no_memory(3000);
  no_memory(60000);
  other_lengths();
  rounds();
  if ((all || rank % 2 == 1) && !stop_reading()) {
    printf("seccomp is not there\n");
    CALL(MPI_Abort(MPI_COMM_WORLD, 77));
  }
  rounds();
  no_memory(60000);
  rounds();
  return end("lending");
}
