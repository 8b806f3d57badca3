/* Every blocking collective operation, with results that are computed here. */
#include "test.h"

enum { MAXN = 70000 };
static int a[MAXN], b[MAXN], c[MAXN];
static int counts[256], displs[256], total;

static void rooted(int root, int n) {
  int i, r;
  for (i = 0; i < n; i++) a[i] = rank == root ? i * 3 + root : -1;
  CALL(MPI_Bcast(a, n, MPI_INT, root, MPI_COMM_WORLD));
  for (i = 0; i < n; i++) if (a[i] != i * 3 + root) { CHECK(!"Bcast"); break; }

  for (i = 0; i < n; i++) a[i] = rank * 1000 + i;
  CALL(MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, root, MPI_COMM_WORLD));
  if (rank == root)
    for (r = 0; r < size; r++) for (i = 0; i < n; i++) if (b[r * n + i] != r * 1000 + i) { CHECK(!"Gather"); r = size; break; }
  if (rank == root) memcpy(b + rank * n, a, n * sizeof *a);
  if (rank == root) CALL(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, n, MPI_INT, root, MPI_COMM_WORLD));
  else CALL(MPI_Gather(a, n, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
  if (rank == root) CHECK(n == 0 || b[(size - 1) * n] == (size - 1) * 1000);

  if (rank == root) for (i = 0; i < n * size; i++) b[i] = i + root;
  CALL(MPI_Scatter(b, n, MPI_INT, c, n, MPI_INT, root, MPI_COMM_WORLD));
  for (i = 0; i < n; i++) if (c[i] != rank * n + i + root) { CHECK(!"Scatter"); break; }

  for (i = 0; i < n; i++) a[i] = rank + i;
  CALL(MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
  if (rank == root) for (i = 0; i < n; i++) if (b[i] != size * i + size * (size - 1) / 2) { CHECK(!"Reduce"); break; }
  if (rank == root) CALL(MPI_Reduce(MPI_IN_PLACE, a, n, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD));
  else CALL(MPI_Reduce(a, NULL, n, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD));
  if (rank == root) for (i = 0; i < n; i++) if (a[i] != size - 1 + i) { CHECK(!"Reduce in place"); break; }
}

/* Rank r has r + 1 elements. */
static void varying(void) {
  int i, r, ones[256], zeros[256];
  MPI_Datatype types[256];
  for (r = total = 0; r < size; r++) {
    counts[r] = r + 1;
    displs[r] = total + r; /* with holes */
    total += r + 1;
  }
  for (i = 0; i <= rank; i++) a[i] = rank * 100 + i;
  memset(b, -1, sizeof b);
  CALL(MPI_Gatherv(a, rank + 1, MPI_INT, b, counts, displs, MPI_INT, size - 1, MPI_COMM_WORLD));
  if (rank == size - 1)
    for (r = 0; r < size; r++) for (i = 0; i <= r; i++) CHECK(b[displs[r] + i] == r * 100 + i);
  memset(b, -1, sizeof b);
  CALL(MPI_Allgatherv(a, rank + 1, MPI_INT, b, counts, displs, MPI_INT, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) {
    for (i = 0; i <= r; i++) CHECK(b[displs[r] + i] == r * 100 + i);
    CHECK(b[displs[r] + r + 1] == -1);
  }
  memset(c, -1, sizeof c);
  CALL(MPI_Scatterv(b, counts, displs, MPI_INT, c, rank + 1, MPI_INT, 0, MPI_COMM_WORLD));
  for (i = 0; i <= rank; i++) CHECK(c[i] == rank * 100 + i);
  CHECK(c[rank + 1] == -1);

  for (r = 0; r < size; r++) { /* to r goes rank + r + 1 times the number rank * 10 + r */
    counts[r] = rank + r + 1;
    displs[r] = r * 3 * size;
    for (i = 0; i < counts[r]; i++) a[displs[r] + i] = rank * 10 + r;
  }
  memset(b, -1, sizeof b);
  CALL(MPI_Alltoallv(a, counts, displs, MPI_INT, b, counts, displs, MPI_INT, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) for (i = 0; i < counts[r]; i++) CHECK(b[displs[r] + i] == r * 10 + rank);
  for (r = 0; r < size; r++) {
    displs[r] *= sizeof(int);
    types[r] = r % 2 ? MPI_INT : MPI_UNSIGNED;
    ones[r] = 1;
    zeros[r] = 0;
  }
  memset(b, -1, sizeof b);
  for (r = 0; r < size; r++) types[r] = MPI_INT;
  CALL(MPI_Alltoallw(a, counts, displs, types, b, counts, displs, types, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) for (i = 0; i < counts[r]; i++) CHECK(b[displs[r] / sizeof(int) + i] == r * 10 + rank);
  (void)ones; (void)zeros;
}

static void everybody(int n) {
  int i, r;
  for (i = 0; i < n; i++) a[i] = rank * 1000 + i;
  CALL(MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) for (i = 0; i < n; i++) if (b[r * n + i] != r * 1000 + i) { CHECK(!"Allgather"); r = size; break; }
  memset(c, 0, sizeof c);
  memcpy(c + rank * n, a, n * sizeof *a);
  CALL(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, c, n, MPI_INT, MPI_COMM_WORLD));
  CHECK(memcmp(b, c, size * n * sizeof *a) == 0);

  for (i = 0; i < n * size; i++) a[i] = rank * 100000 + i;
  CALL(MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) for (i = 0; i < n; i++) if (b[r * n + i] != r * 100000 + rank * n + i) { CHECK(!"Alltoall"); r = size; break; }
  CALL(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, n, MPI_INT, MPI_COMM_WORLD));
  CHECK(memcmp(a, b, size * n * sizeof *a) == 0);

  for (i = 0; i < n; i++) a[i] = rank + i;
  CALL(MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (i = 0; i < n; i++) if (b[i] != size * i + size * (size - 1) / 2) { CHECK(!"Allreduce"); break; }
  memcpy(c, a, n * sizeof *a);
  CALL(MPI_Allreduce(MPI_IN_PLACE, c, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(memcmp(b, c, n * sizeof *a) == 0);
  CALL(MPI_Scan(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (i = 0; i < n; i++) if (b[i] != (rank + 1) * i + rank * (rank + 1) / 2) { CHECK(!"Scan"); break; }
  CALL(MPI_Exscan(a, c, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  if (rank > 0) for (i = 0; i < n; i++) if (c[i] != b[i] - a[i]) { CHECK(!"Exscan"); break; }

  for (i = 0; i < n * size; i++) a[i] = rank + i;
  CALL(MPI_Reduce_scatter_block(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (i = 0; i < n; i++) if (b[i] != size * (rank * n + i) + size * (size - 1) / 2) { CHECK(!"Reduce_scatter_block"); break; }
  for (r = 0; r < size; r++) counts[r] = r % 2 ? n : 0;
  CALL(MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (i = 0; i < counts[rank]; i++) if (b[i] != size * (rank / 2 * n + i) + size * (size - 1) / 2) { CHECK(!"Reduce_scatter"); break; }
}

/* 2x2 matrices: an operation that does not commute. */
static void multiply(void *in, void *inout, int *len, MPI_Datatype *type) {
  double *x = in, *y = inout;
  int i;
  MPI_Aint lb, extent;
  MPI_Type_get_extent(*type, &lb, &extent);
  if (extent != 4 * sizeof(double)) abort();
  for (i = 0; i < *len; i++, x += 4, y += 4) {
    double z[4] = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3], x[2] * y[0] + x[3] * y[2], x[2] * y[1] + x[3] * y[3]};
    memcpy(y, z, sizeof z);
  }
}

static void operations(void) {
  struct { double value; int place; } in = {rank % 3, rank}, out;
  struct { int value, place; } in2 = {-(rank % 3), rank}, out2;
  double m[8], product[8], want[8] = {1, 0, 0, 1, 1, 0, 0, 1};
  MPI_Datatype matrix;
  MPI_Op op;
  int i, r, flag, x = 1 << rank % 30, y, all = 0;
  unsigned char byte = (unsigned char)(rank + 1), most;
  float f = rank + .5f, least;
  long long big = 1LL << (40 + rank % 8), sum;

  CALL(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
  CHECK(out.value == (size > 2 ? 2 : size - 1) && out.place == (size > 2 ? 2 : size - 1));
  CALL(MPI_Allreduce(&in2, &out2, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD));
  CHECK(out2.value == -(size > 2 ? 2 : size - 1) && out2.place == (size > 2 ? 2 : size - 1));
  CALL(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) all |= 1 << r % 30;
  CHECK(y == all);
  CALL(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
  CHECK(y != 0);
  CALL(MPI_Allreduce(&byte, &most, 1, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD));
  CHECK(most == size);
  CALL(MPI_Allreduce(&f, &least, 1, MPI_FLOAT, MPI_MIN, MPI_COMM_WORLD));
  CHECK(least == .5f);
  CALL(MPI_Allreduce(&big, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) sum -= 1LL << (40 + r % 8);
  CHECK(sum == 0);

  CALL(MPI_Type_contiguous(4, MPI_DOUBLE, &matrix));
  CALL(MPI_Type_commit(&matrix));
  CALL(MPI_Op_create(multiply, 0, &op));
  CALL(MPI_Op_commutative(op, &flag));
  CHECK(!flag);
  for (i = 0; i < 2; i++) {
    double one[4] = {1, rank + i + 1, i, 1};
    memcpy(m + 4 * i, one, sizeof one);
  }
  for (r = 0; r < size; r++)
    for (i = 0; i < 2; i++) {
      double one[4] = {1, r + i + 1, i, 1}, *w = want + 4 * i;
      double z[4] = {w[0] * one[0] + w[1] * one[2], w[0] * one[1] + w[1] * one[3], w[2] * one[0] + w[3] * one[2], w[2] * one[1] + w[3] * one[3]};
      memcpy(w, z, sizeof z);
    }
  CALL(MPI_Allreduce(m, product, 2, matrix, op, MPI_COMM_WORLD));
  for (i = 0; i < 8; i++) CHECK(product[i] == want[i]);
  memset(product, 0, sizeof product);
  CALL(MPI_Reduce(m, product, 2, matrix, op, size - 1, MPI_COMM_WORLD));
  if (rank == size - 1) for (i = 0; i < 8; i++) CHECK(product[i] == want[i]);
  CALL(MPI_Reduce_local(m, want, 1, matrix, op));
  FAILS(MPI_ERR_BUFFER, MPI_Reduce_local(m, m, 1, matrix, op));
  CALL(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
  CALL(MPI_Type_free(&matrix));
  CHECK(matrix == MPI_DATATYPE_NULL);
}

int main(int argc, char **argv) {
  static const int lengths[] = {0, 1, 5, 257, 5000};
  size_t i;
  int root;
  begin(&argc, &argv);
  for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    for (root = 0; root < size; root++) rooted(root, lengths[i]);
    everybody(lengths[i]);
  }
  varying();
  operations();
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  return end("collectives");
}
