// Constructors and destructors of static objects run before main and after it:
// MPI may be started and ended there, and asked.
#include "test.h"
#include <complex>
#include <string>
#include <vector>

namespace {

struct Life {
  int before;
  Life() : before(-1) {
    int started = -1;
    MPI_Initialized(&started);
    before = started;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  ~Life() {
    int ended = -1;
    MPI_Finalized(&ended);
    if (ended == 0) {
      int all = -1;
      MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      MPI_Finalize();
      if (rank == 0 && all == 0) {
        printf("OK ctors\n");
        fflush(stdout);
      }
    }
  }
} life;

template <typename T> T sum(T x, MPI_Datatype type) {
  T y = T();
  CALL(MPI_Allreduce(&x, &y, 1, type, MPI_SUM, MPI_COMM_WORLD));
  return y;
}

void twice(void *in, void *inout, int *n, MPI_Datatype *) {
  for (int i = 0; i < *n; i++) static_cast<int *>(inout)[i] += 2 * static_cast<int *>(in)[i];
}

}  // namespace

int main(int argc, char **argv) {
  (void)argc;
  (void)argv;
  CHECK(life.before == 0);
  CHECK(sum(1.5, MPI_DOUBLE) == 1.5 * size);
  std::complex<double> z = sum(std::complex<double>(1, rank), MPI_C_DOUBLE_COMPLEX);
  CHECK(z == std::complex<double>(size, size * (size - 1) / 2));
  std::string text = rank == 0 ? "from rank 0" : std::string(11, ' ');
  CALL(MPI_Bcast(&text[0], 11, MPI_CHAR, 0, MPI_COMM_WORLD));
  CHECK(text == "from rank 0");
  std::vector<int> v(1000, 1), w(1000, 0);
  MPI_Op op;
  CALL(MPI_Op_create(twice, 1, &op));
  CALL(MPI_Reduce_local(v.data(), w.data(), 1000, MPI_INT, op));
  CHECK(w[999] == 2);
  CALL(MPI_Op_free(&op));
  try {
    throw std::string("an exception through nothing");
  } catch (const std::string &) {
  }
  return wrong ? 1 : 0;  // the destructor ends MPI
}
