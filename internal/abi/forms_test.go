package abi

import (
	"strings"
	"testing"
)

// TestForms: which forms a function has, and which of its parameters are wide in that for large
// counts.
func TestForms(t *testing.T) {
	const header = `int MPI_Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
int MPI_Barrier(MPI_Comm comm);
int MPI_Waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status);
int MPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[], const int array_of_psizes[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype);
int MPI_Pack_external_size(const char datarep[], int incount, MPI_Datatype datatype, MPI_Aint *size);
int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *baseptr);
int MPI_Op_create(MPI_User_function *user_fn, int commute, MPI_Op *op);
int MPI_Type_get_envelope(MPI_Datatype datatype, int *count);
int MPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count *count, MPI_Count *more);
`
	const want = `MPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
MPI_Iscatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
MPI_Iscatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request)
MPI_Scatterv_init(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
MPI_Scatterv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
MPI_Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[], const int array_of_psizes[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
MPI_Pack_external_size_c(const char datarep[], MPI_Count incount, MPI_Datatype datatype, MPI_Count *size)
MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr)
MPI_Op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op)
MPI_Comm_toint(MPI_Comm comm)
MPI_Comm_fromint(int comm)
MPI_Group_toint(MPI_Group group)
MPI_Group_fromint(int group)
MPI_Type_toint(MPI_Datatype datatype)
MPI_Type_fromint(int datatype)
`
	fns, err := AllFunctions(header)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range fns {
		if f.Derived {
			got.WriteString(f.Name + "(" + f.Params + ")\n")
		}
	}
	if !strings.HasPrefix(got.String(), want) {
		t.Errorf("%s\nwant %s", got.String(), want)
	}
}
