/* Memory that lies a few bytes behind its source within a page, where some processors copy slowly,
   so that the library copies by itself or by way of other memory: each distance, with lengths
   around all that it tells apart, by one-sided operations and by blocks that are posted or lent. */
#include "test.h"

enum { PAGE = 4096, LONGEST = 300000, FARTHEST = 34, MARK = 0x55 };

static const int lengths[] = {2047, 2048, 2049, 2080, 2175, 2176, 4096, 5001, 8192, 20000, 65535, 131072, 150001, 262144};

static char *sent, *got; /* each begins at a page */
static MPI_Win win;
static char *mine;

static char *pages(size_t n) {
  char *p = (char *)malloc(n + 2 * PAGE);
  memset(p, 0, n + 2 * PAGE);
  return p + PAGE - (size_t)p % PAGE;
}

/* came reports whether n bytes are at p and nothing else has changed next to them. */
static int came(const char *p, int n, unsigned seed) { return filled(p, n, seed) && p[-1] == MARK && p[n] == MARK; }

static char *clean(int behind, int n) {
  memset(got, MARK, behind + n + PAGE);
  return got + PAGE / 2 + behind;
}

/* accessed puts n bytes into the next rank's memory, and gets them. */
static void accessed(int n, int behind, unsigned seed) {
  int next = (rank + 1) % size;
  char *from = sent + PAGE / 2 - behind, *to = clean(behind, n);
  fill(from, n, seed);
  CALL(MPI_Put(from, n, MPI_BYTE, next, PAGE / 2, n, MPI_BYTE, win));
  CALL(MPI_Win_flush(next, win));
  CALL(MPI_Get(to, n, MPI_BYTE, next, PAGE / 2, n, MPI_BYTE, win));
  CALL(MPI_Win_flush(next, win));
  CHECK(came(to, n, seed));
}

/* together has all ranks get what the root or each has. */
static void together(int n, int behind, int root) {
  char *from = sent + PAGE / 2, *to;
  int r;
  fill(from, n, (unsigned)(n + rank));
  to = clean(behind, n * size);
  CALL(MPI_Allgather(from, n, MPI_BYTE, to, n, MPI_BYTE, MPI_COMM_WORLD));
  for (r = 0; r < size; r++) CHECK(filled(to + r * n, n, (unsigned)(n + r)));
  CHECK(to[-1] == MARK && to[n * size] == MARK);
  to = clean(behind, n * size);
  CALL(MPI_Gather(from, n, MPI_BYTE, to, n, MPI_BYTE, root, MPI_COMM_WORLD));
  for (r = 0; r < size && rank == root; r++) CHECK(filled(to + r * n, n, (unsigned)(n + r)));
  to = rank == root ? from : clean(behind, n);
  CALL(MPI_Bcast(to, n, MPI_BYTE, root, MPI_COMM_WORLD));
  CHECK(rank == root || came(to, n, (unsigned)(n + root)));
}

int main(int argc, char **argv) {
  unsigned i;
  int behind;
  begin(&argc, &argv);
  sent = pages(LONGEST);
  got = pages((size_t)size * LONGEST);
  CALL(MPI_Win_allocate(LONGEST + PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
  CALL(MPI_Win_lock_all(0, win));
  for (i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (behind = 0; behind <= FARTHEST; behind += lengths[i] > 5001 ? 3 : 1) {
      accessed(lengths[i], behind, i + (unsigned)behind + (unsigned)rank);
      together(lengths[i], behind, behind % size);
    }
  CALL(MPI_Win_unlock_all(win));
  CALL(MPI_Win_free(&win));
  return end("copies");
}
