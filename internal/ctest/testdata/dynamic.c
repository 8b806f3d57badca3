/* Worlds that meet: ports, and procs that are started by procs. Without an
   argument it starts two of itself. */
#include "test.h"

static void child(MPI_Comm parent) {
  int n, x = -1, from = 100 + rank, all;
  CALL(MPI_Comm_remote_size(parent, &n));
  CALL(MPI_Bcast(&x, 1, MPI_INT, 0, parent));
  CHECK(x == 4711);
  CALL(MPI_Reduce(&from, &all, 1, MPI_INT, MPI_SUM, 0, parent));
  CALL(MPI_Comm_disconnect(&parent));
}

static void spawns(const char *self) {
  MPI_Comm inter;
  int codes[2], x = 4711, sum = -1, n;
  char *args[] = {(char *)"child", NULL};
  MPI_Info info;
  CALL(MPI_Info_create(&info));
  CALL(MPI_Comm_spawn(self, args, 2, info, 0, MPI_COMM_WORLD, &inter, codes));
  if (rank == 0) CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
  CALL(MPI_Info_free(&info));
  if (wrong) return;
  CALL(MPI_Comm_remote_size(inter, &n));
  CHECK(n == 2);
  CALL(MPI_Bcast(&x, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
  CALL(MPI_Reduce(NULL, &sum, 1, MPI_INT, MPI_SUM, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
  if (rank == 0) CHECK(sum == 201);
  CALL(MPI_Comm_disconnect(&inter));
}

/* Two halves of the world meet through a port. */
static void ports(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm half, inter;
  int x = rank, y = -1, n, r;
  if (size < 2) return;
  CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
  if (rank == 0) CALL(MPI_Open_port(MPI_INFO_NULL, port));
  CALL(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
  if (rank % 2 == 0) CALL(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
  else CALL(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
  CALL(MPI_Comm_remote_size(inter, &n));
  CALL(MPI_Comm_rank(inter, &r));
  if (r < n) {
    CALL(MPI_Sendrecv(&x, 1, MPI_INT, r, 1, &y, 1, MPI_INT, r, 1, inter, MPI_STATUS_IGNORE));
    CHECK(y == (rank ^ 1));
  }
  CALL(MPI_Comm_disconnect(&inter));
  if (rank == 0) CALL(MPI_Close_port(port));
  CALL(MPI_Comm_free(&half));
}

int main(int argc, char **argv) {
  MPI_Comm parent;
  begin(&argc, &argv);
  CALL(MPI_Comm_get_parent(&parent));
  if (parent != MPI_COMM_NULL) {
    child(parent);
    CALL(MPI_Finalize());
    return wrong ? 1 : 0;
  }
  ports();
  if (argc > 1 && strcmp(argv[1], "spawn") == 0) spawns(argv[0]);
  return end("dynamic");
}
