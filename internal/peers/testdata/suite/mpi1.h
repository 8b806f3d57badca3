/* What MPI-3.0 removed and MPICH's test programs still call, by its successors. */
#include <mpi.h>
#define MPI_Type_hvector MPI_Type_create_hvector
#define MPI_Type_hindexed MPI_Type_create_hindexed
#define MPI_Type_struct MPI_Type_create_struct
#define MPI_Address MPI_Get_address
#define MPI_Errhandler_create MPI_Comm_create_errhandler
#define MPI_Errhandler_set MPI_Comm_set_errhandler
#define MPI_Errhandler_get MPI_Comm_get_errhandler
#define MPI_Handler_function MPI_Comm_errhandler_function
static inline int MPI_Type_extent(MPI_Datatype t, MPI_Aint *extent) {
  MPI_Aint lb;
  return MPI_Type_get_extent(t, &lb, extent);
}
static inline int MPI_Type_lb(MPI_Datatype t, MPI_Aint *lb) {
  MPI_Aint extent;
  return MPI_Type_get_extent(t, lb, &extent);
}
static inline int MPI_Type_ub(MPI_Datatype t, MPI_Aint *ub) {
  MPI_Aint lb, extent;
  int code = MPI_Type_get_extent(t, &lb, &extent);
  *ub = lb + extent;
  return code;
}
