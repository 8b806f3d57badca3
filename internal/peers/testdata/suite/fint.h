/* What the parts in C of MPICH's Fortran programs use of Fortran's, which the ABI leaves out. */
#include <mpi.h>
typedef int MPI_Fint;
#define MPI_Comm_f2c MPI_Comm_fromint
#define MPI_Comm_c2f MPI_Comm_toint
#define MPI_Group_f2c MPI_Group_fromint
#define MPI_Group_c2f MPI_Group_toint
#define MPI_Type_f2c MPI_Type_fromint
#define MPI_Type_c2f MPI_Type_toint
#define MPI_Info_f2c MPI_Info_fromint
#define MPI_Info_c2f MPI_Info_toint
#define MPI_Request_f2c MPI_Request_fromint
#define MPI_Request_c2f MPI_Request_toint
#define MPI_Errhandler_f2c MPI_Errhandler_fromint
#define MPI_Errhandler_c2f MPI_Errhandler_toint
#define MPI_Op_f2c MPI_Op_fromint
#define MPI_Op_c2f MPI_Op_toint
#define MPI_Win_f2c MPI_Win_fromint
#define MPI_Win_c2f MPI_Win_toint
#define MPI_File_f2c MPI_File_fromint
#define MPI_File_c2f MPI_File_toint
static inline int MPI_Status_f2c(const MPI_Fint *f, MPI_Status *c) { *c = *(const MPI_Status *)f; return MPI_SUCCESS; }
static inline int MPI_Status_c2f(const MPI_Status *c, MPI_Fint *f) { *(MPI_Status *)f = *c; return MPI_SUCCESS; }
