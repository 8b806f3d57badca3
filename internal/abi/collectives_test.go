package abi

import (
	"os"
	"strings"
	"testing"
)

const gathers = `
int MPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm);
int MPI_Gatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm);
int MPI_Igatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
int MPI_Igatherv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
`

const gathervInit = `int MPI_Gatherv_init(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Gatherv_init_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
`

// The three forms of an operation differ in what they give and in what the persistent one keeps.
func TestCollectiveForms(t *testing.T) {
	fns, err := ParseHeader(gathers + gathervInit)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Collectives(fns)
	if err != nil {
		t.Fatal(err)
	}
	const params = "sendbuf uintptr, sendcount int64, sendtype uintptr, recvbuf uintptr, recvcounts uintptr, displs uintptr, recvtype uintptr, root int32, comm uintptr, "
	const taken = "exchange(side{buf: sendbuf, count: sendcount, t: sendtype}.others(root), " +
		"side{buf: recvbuf, counts: recvcounts, wideCounts: which, displs: displs, wideDispls: which, t: recvtype, form: varied}.atRoot(root))"
	for _, want := range []string{
		"//export abiGatherv\nfunc abiGatherv(" + params + "which int32) int32 {\n" +
			"\treturn collect(\"Gatherv\", which, comm, " + taken + ", func(c *commObject, a arguments) error {\n" +
			"\t\treturn c.Gatherv(a.send.buf, a.recv.buf, a.recv.counts, a.recv.displs, int(root))\n\t})\n}\n",
		"func abiIgatherv(" + params + "request uintptr, which int32) int32 {\n" +
			"\treturn start(\"Igatherv\", which, comm, request, " + taken + ", func(c *commObject, a arguments) (mpi.Request, error) {\n" +
			"\t\treturn c.Igatherv(",
		"func abiGathervInit(" + params + "info uintptr, request uintptr, which int32) int32 {\n" +
			"\treturn prepare(\"Gatherv_init\", which, comm, info, request, func(k *retained) argumentReader {\n" +
			"\t\treturn k." + taken + "\n\t}, func(c *commObject, a arguments) (mpi.Request, error) {\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks\n%s\nIt is:\n%s", want, text)
		}
	}
}

func TestCollectiveLacksAForm(t *testing.T) {
	fns, err := ParseHeader(gathers)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Collectives(fns); err == nil || !strings.Contains(err.Error(), "MPI_Gatherv_init") {
		t.Errorf("%v", err)
	}
}

// TestAllCollectives: the header has each operation of the table, so that none is left out.
func TestAllCollectives(t *testing.T) {
	text, err := os.ReadFile("../../" + headerFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range collectives {
		if !strings.Contains(string(text), "int MPI_"+c.name+"(") {
			t.Errorf("no MPI_%s", c.name)
		}
	}
}
