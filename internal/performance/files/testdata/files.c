/* How long reading and writing a file together takes, in patterns in which the procs' data
   interleave. Prints a line "pattern operation microseconds" for each, the median of some calls.
   Arguments: the file, how many calls, and hints as pairs key=value. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, calls;
static const char *name;
static double *times;
static MPI_Info hints;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum { WRITE_ALL, READ_ALL, WRITE, READ, OPERATIONS };
static const char *const operations[] = {"write_all", "read_all", "write", "read"};

static void move(int operation, MPI_File f, char *buf, int bytes) {
  MPI_Status s;
  switch (operation) {
  case WRITE_ALL: MPI_File_write_at_all(f, 0, buf, bytes, MPI_BYTE, &s); break;
  case READ_ALL: MPI_File_read_at_all(f, 0, buf, bytes, MPI_BYTE, &s); break;
  case WRITE: MPI_File_write_at(f, 0, buf, bytes, MPI_BYTE, &s); break;
  default: MPI_File_read_at(f, 0, buf, bytes, MPI_BYTE, &s);
  }
}

static void measure(const char *pattern, MPI_Offset disp, MPI_Datatype type) {
  int bytes, i, operation;
  char *buf;
  MPI_File f;
  MPI_Type_commit(&type);
  MPI_Type_size(type, &bytes);
  buf = malloc(bytes);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &f) != MPI_SUCCESS) {
    fprintf(stderr, "%s cannot be opened\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_File_set_size(f, 0);
  MPI_File_set_view(f, disp, MPI_BYTE, type, "native", MPI_INFO_NULL);
  for (operation = 0; operation < OPERATIONS; operation++) {
    for (i = -1; i < calls; i++) { /* the first one does not count: memory and pages are new */
      double t;
      memset(buf, 'a' + rank + i + operation, bytes);
      MPI_Barrier(MPI_COMM_WORLD);
      t = MPI_Wtime();
      move(operation, f, buf, bytes);
      MPI_Barrier(MPI_COMM_WORLD);
      if (i >= 0) times[i] = MPI_Wtime() - t;
      if (operation == READ_ALL || operation == READ) {
        char want = 'a' + rank + calls - 1 + (operation == READ_ALL ? WRITE_ALL : WRITE);
        if (buf[0] != want || buf[bytes / 2] != want || buf[bytes - 1] != want) {
          fprintf(stderr, "%s, %s: rank %d has read something else\n", pattern, operations[operation], rank);
          MPI_Abort(MPI_COMM_WORLD, 1);
        }
      }
    }
    qsort(times, calls, sizeof *times, by_value);
    if (rank == 0) printf("%s %s %.0f\n", pattern, operations[operation], times[calls / 2] * 1e6);
  }
  MPI_File_close(&f);
  MPI_Type_free(&type);
  free(buf);
}

/* Blocks of the procs by turns. */
static void cyclic(const char *pattern, int block, int bytes) {
  MPI_Datatype t;
  MPI_Type_vector(bytes / block, block, size * block, MPI_BYTE, &t);
  measure(pattern, (MPI_Offset)rank * block, t);
}

/* Each proc has a box of an array of doubles. */
static void box(const char *pattern, int dims, int edge) {
  int sizes[3], parts[3], starts[3], grid[3] = {0, 0, 0}, at[3], d, r = rank;
  MPI_Datatype t;
  if (dims == 3) grid[0] = 1;
  if (size == 2) grid[dims - 2] = 1; /* columns, not rows */
  MPI_Dims_create(size, dims, grid);
  for (d = dims - 1; d >= 0; d--) {
    at[d] = r % grid[d];
    r /= grid[d];
    sizes[d] = edge;
    parts[d] = edge / grid[d];
    starts[d] = at[d] * parts[d];
  }
  MPI_Type_create_subarray(dims, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &t);
  measure(pattern, 0, t);
}

/* Groups of small blocks, with holes between blocks and between groups. */
static void nested(const char *pattern, int block, int groups) {
  MPI_Datatype inner, t;
  MPI_Type_vector(8, block, 2 * size * block, MPI_BYTE, &inner);
  MPI_Type_create_hvector(groups, 1, (MPI_Aint)24 * size * block, inner, &t);
  MPI_Type_free(&inner);
  measure(pattern, (MPI_Offset)rank * block, t);
}

int main(int argc, char **argv) {
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  name = argc > 1 ? argv[1] : "files.out";
  calls = argc > 2 ? atoi(argv[2]) : 5;
  MPI_Info_create(&hints);
  for (i = 3; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    *value++ = 0;
    MPI_Info_set(hints, argv[i], value);
  }
  times = malloc(calls * sizeof *times);
  cyclic("cyclic-64", 64, 2 << 20);
  cyclic("cyclic-1K", 1 << 10, 4 << 20);
  cyclic("cyclic-64K", 64 << 10, 8 << 20);
  box("box-2D", 2, 1024);
  box("box-3D", 3, 128);
  nested("nested-64", 64, 2048);
  nested("nested-1K", 1 << 10, 256);
  MPI_Info_free(&hints);
  if (rank == 0) remove(name);
  MPI_Finalize();
  return 0;
}
