/* The library is loaded while the program runs, as languages and tools do that
   are not linked with it. The argument is its file. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#define LOAD(name) __typeof__(name) *p_##name = (__typeof__(name) *)dlsym(lib, #name); if (!p_##name) return 11

int main(int argc, char **argv) {
  void *lib, *again;
  int rank, size, sum = -1, flag = -1;
  if (argc < 2 || !(lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) {
    fprintf(stderr, "%s\n", argc < 2 ? "no file" : dlerror());
    return 10;
  }
  LOAD(MPI_Initialized);
  LOAD(MPI_Init);
  LOAD(MPI_Comm_rank);
  LOAD(MPI_Comm_size);
  LOAD(PMPI_Allreduce);
  LOAD(MPI_Finalize);
  again = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL);
  if (again != lib || dlclose(again)) return 12;
  if (p_MPI_Initialized(&flag) || flag) return 13;
  if (p_MPI_Init(&argc, &argv) || p_MPI_Comm_rank(MPI_COMM_WORLD, &rank) || p_MPI_Comm_size(MPI_COMM_WORLD, &size)) return 14;
  if (p_PMPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) || sum != size * (size - 1) / 2) return 15;
  if (p_MPI_Finalize()) return 16;
  if (rank == 0) printf("OK dlopen\n");
  return dlclose(lib) ? 17 : 0;
}
