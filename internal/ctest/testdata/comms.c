/* Groups, communicators, intercommunicators, topologies. */
#include "test.h"

static int sum_of(MPI_Comm comm) {
  int x = rank, y = -1;
  CALL(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm));
  return y;
}

static void groups(void) {
  MPI_Group world, some, rest, both, back, empty;
  MPI_Comm comm;
  int ranks[256], out[256], i, n = 0, r, result, range[1][3] = {{0, 0, 2}};
  CALL(MPI_Comm_group(MPI_COMM_WORLD, &world));
  CALL(MPI_Group_size(world, &i));
  CHECK(i == size);
  CALL(MPI_Group_rank(world, &i));
  CHECK(i == rank);
  for (r = size - 1; r >= 0; r -= 2) ranks[n++] = r; /* every other one, backwards */
  CALL(MPI_Group_incl(world, n, ranks, &some));
  CALL(MPI_Group_excl(world, n, ranks, &rest));
  CALL(MPI_Group_union(some, rest, &both));
  CALL(MPI_Group_compare(both, world, &result));
  CHECK(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
  CALL(MPI_Group_intersection(some, rest, &empty));
  CALL(MPI_Group_compare(empty, MPI_GROUP_EMPTY, &result));
  CHECK(result == MPI_IDENT);
  CALL(MPI_Group_difference(world, rest, &back));
  CALL(MPI_Group_compare(back, some, &result));
  CHECK(result != MPI_UNEQUAL);
  for (i = 0; i < size; i++) ranks[i] = i;
  CALL(MPI_Group_translate_ranks(world, size, ranks, some, out));
  for (i = 0; i < size; i++) CHECK(out[i] == ((size - 1 - i) % 2 == 0 ? (size - 1 - i) / 2 : MPI_UNDEFINED));
  CALL(MPI_Comm_create(MPI_COMM_WORLD, some, &comm));
  if ((size - 1 - rank) % 2 == 0) {
    CALL(MPI_Comm_rank(comm, &r));
    CHECK(r == (size - 1 - rank) / 2);
    CALL(MPI_Barrier(comm));
    CALL(MPI_Comm_free(&comm));
    CALL(MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &comm));
    CALL(MPI_Comm_free(&comm));
  }
  CHECK(comm == MPI_COMM_NULL);
  range[0][1] = size - 1;
  CALL(MPI_Group_free(&back));
  CALL(MPI_Group_range_incl(world, 1, range, &back));
  CALL(MPI_Group_size(back, &n));
  CHECK(n == (size + 1) / 2);
  CALL(MPI_Group_free(&world));
  CALL(MPI_Group_free(&some));
  CALL(MPI_Group_free(&rest));
  CALL(MPI_Group_free(&both));
  CALL(MPI_Group_free(&back));
  CHECK(world == MPI_GROUP_NULL);
}

static void split(void) {
  MPI_Comm half, twin, none;
  int n, r, result, len;
  MPI_Info info;
  char name[MPI_MAX_OBJECT_NAME];
  CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
  CALL(MPI_Comm_size(half, &n));
  CALL(MPI_Comm_rank(half, &r));
  CHECK(n == (size + 1 - rank % 2) / 2 && r == n - 1 - rank / 2);
  CALL(MPI_Comm_dup(half, &twin));
  CALL(MPI_Comm_compare(half, twin, &result));
  CHECK(result == MPI_CONGRUENT);
  CALL(MPI_Comm_compare(half, half, &result));
  CHECK(result == MPI_IDENT);
  CHECK(sum_of(half) == sum_of(twin));
  CALL(MPI_Comm_set_name(twin, "the twin"));
  CALL(MPI_Comm_get_name(twin, name, &len));
  CHECK(strcmp(name, "the twin") == 0 && len == 8);
  CALL(MPI_Comm_get_name(MPI_COMM_WORLD, name, &len));
  CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
  CALL(MPI_Comm_get_name(MPI_COMM_NULL, name, &len));
  CHECK(strcmp(name, "MPI_COMM_NULL") == 0 && len == 13);
  CALL(MPI_Comm_free(&half)); /* the twin lives on */
  CALL(MPI_Barrier(twin));
  CALL(MPI_Comm_free(&twin));
  CALL(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &none));
  CHECK((none == MPI_COMM_NULL) == (rank == 0));
  if (none != MPI_COMM_NULL) CALL(MPI_Comm_free(&none));
  CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half));
  CALL(MPI_Comm_size(half, &n));
  CHECK(n >= 1 && n <= size);
  CALL(MPI_Info_create(&info));
  CALL(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
  CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &twin));
  CALL(MPI_Comm_compare(half, twin, &result));
  CHECK(result == MPI_CONGRUENT);
  CALL(MPI_Comm_free(&twin));
  CALL(MPI_Info_set(info, "mpi_hw_resource_type", "a kind that nobody knows"));
  CALL(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &twin));
  CHECK(twin == MPI_COMM_NULL);
  CALL(MPI_Info_free(&info));
  CALL(MPI_Barrier(half));
  CALL(MPI_Comm_free(&half));
}

/* Two halves that talk. */
static void between(void) {
  MPI_Comm half, inter, merged, twin;
  int flag, n, r, x = rank, y = -1, root, remote_leader;
  if (size < 2) return;
  CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
  remote_leader = rank % 2 ? 0 : 1;
  CALL(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, remote_leader, 12, &inter));
  CALL(MPI_Comm_test_inter(inter, &flag));
  CHECK(flag);
  CALL(MPI_Comm_test_inter(half, &flag));
  CHECK(!flag);
  CALL(MPI_Comm_remote_size(inter, &n));
  CHECK(n == (size + rank % 2) / 2);
  CALL(MPI_Comm_rank(inter, &r));
  CHECK(r == rank / 2);
  if (r < n) {
    CALL(MPI_Sendrecv(&x, 1, MPI_INT, r, 1, &y, 1, MPI_INT, r, 1, inter, MPI_STATUS_IGNORE));
    CHECK(y == (rank ^ 1));
  }
  CALL(MPI_Comm_dup(inter, &twin));
  root = rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  y = rank == 0 ? 4711 : -1;
  CALL(MPI_Bcast(&y, 1, MPI_INT, rank % 2 ? 0 : root, twin));
  CHECK(y == (rank % 2 || rank == 0 ? 4711 : -1));
  CALL(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, inter));
  for (r = 1 - rank % 2, n = 0; r < size; r += 2) n += r;
  CHECK(y == n);
  CALL(MPI_Intercomm_merge(inter, rank % 2, &merged));
  CALL(MPI_Comm_rank(merged, &r));
  CHECK(r == (rank % 2 ? (size + 1) / 2 + rank / 2 : rank / 2));
  CHECK(sum_of(merged) == size * (size - 1) / 2);
  CALL(MPI_Comm_free(&merged));
  CALL(MPI_Comm_free(&twin));
  CALL(MPI_Comm_free(&inter));
  CALL(MPI_Comm_free(&half));
}

static void topologies(void) {
  MPI_Comm cart, row, graph;
  int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], back, n, kind, from, to, remain[2] = {0, 1};
  int index[256], edges[512], i, neighbours[2], got_dims[2], got_periods[2];
  int in = 0, out = 0, weighted = 1, sources[1], targets[1], x, y = -1;
  CALL(MPI_Dims_create(size, 2, dims));
  CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
  CALL(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart));
  CALL(MPI_Topo_test(cart, &kind));
  CHECK(kind == MPI_CART);
  CALL(MPI_Topo_test(MPI_COMM_WORLD, &kind));
  CHECK(kind == MPI_UNDEFINED);
  CALL(MPI_Cartdim_get(cart, &n));
  CHECK(n == 2);
  CALL(MPI_Cart_get(cart, 2, got_dims, got_periods, coords));
  CHECK(got_dims[0] == dims[0] && got_periods[0] && !got_periods[1]);
  CHECK(coords[0] * dims[1] + coords[1] == rank);
  CALL(MPI_Cart_rank(cart, coords, &back));
  CHECK(back == rank);
  CALL(MPI_Cart_coords(cart, size - 1, 2, coords));
  CHECK(coords[0] == dims[0] - 1 && coords[1] == dims[1] - 1);
  CALL(MPI_Cart_shift(cart, 0, 1, &from, &to));
  CHECK(to == (rank + dims[1]) % size && from == (rank + size - dims[1]) % size);
  CALL(MPI_Cart_shift(cart, 1, 1, &from, &to));
  CHECK(rank % dims[1] == 0 ? from == MPI_PROC_NULL : from == rank - 1);
  CALL(MPI_Cart_sub(cart, remain, &row));
  CALL(MPI_Comm_size(row, &n));
  CHECK(n == dims[1]);
  CALL(MPI_Comm_free(&row));
  CALL(MPI_Comm_free(&cart));
  for (i = 0; i < size; i++) { /* a ring */
    index[i] = 2 * (i + 1);
    edges[2 * i] = (i + size - 1) % size;
    edges[2 * i + 1] = (i + 1) % size;
  }
  CALL(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
  CALL(MPI_Graph_neighbors_count(graph, rank, &n));
  CHECK(n == 2);
  CALL(MPI_Graph_neighbors(graph, rank, 2, neighbours));
  CHECK(neighbours[1] == (rank + 1) % size);
  CALL(MPI_Comm_free(&graph));
  sources[0] = (rank + size - 1) % size;
  targets[0] = (rank + 1) % size;
  CALL(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, MPI_UNWEIGHTED, 1, targets, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
  CALL(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 1 && out == 1 && !weighted);
  x = rank;
  CALL(MPI_Neighbor_allgather(&x, 1, MPI_INT, &y, 1, MPI_INT, graph));
  CHECK(y == sources[0]);
  CALL(MPI_Comm_free(&graph));
}

/* Many communicators at a time, and many one after the other. */
static void lots(void) {
  MPI_Comm comms[50];
  int i;
  for (i = 0; i < 50; i++) CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
  for (i = 49; i >= 0; i--) {
    CALL(MPI_Barrier(comms[i]));
    CALL(MPI_Comm_free(&comms[i]));
  }
  for (i = 0; i < 300; i++) {
    CALL(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comms[0]));
    CALL(MPI_Comm_free(&comms[0]));
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  groups();
  split();
  between();
  topologies();
  lots();
  return end("comms");
}
