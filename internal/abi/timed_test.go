package abi

import "testing"

// TestTimedArgs: what a timeline says of a call, by its parameters.
func TestTimedArgs(t *testing.T) {
	for prototype, want := range map[string]string{
		"int MPI_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Op op, MPI_Win win);": "target_rank, NO_TAG, impi_size(1, datatype), 0",
		"int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);":                                                      "dest, tag, impi_size(count, datatype), W(comm)",
		"int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);":                    "NOBODY, NO_TAG, -1, W(comm)",
	} {
		fns, err := parseHeader(prototype, "mpi.h", "MPI_")
		if err != nil || len(fns) != 1 {
			t.Fatal(fns, err)
		}
		if got := timedArgs(fns[0]); got != want {
			t.Errorf("%s: %s, want %s", fns[0].Name, got, want)
		}
	}
}
