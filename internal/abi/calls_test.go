package abi

import (
	"os"
	"strings"
	"testing"
)

// TestCalls: what becomes of arguments and results follows from their types in mpi.h.
func TestCalls(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{"int MPI_Comm_rank(MPI_Comm comm, int *rank);", `
//export abiCommRank
func abiCommRank(comm uintptr, rank uintptr) int32 {
	return onComm("Comm_rank", 0, comm, func(o *commObject) error {
		return putInt("rank", rank, o.Rank())
	})
}
`}, {"int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request);", `
	return onComm("Comm_idup_with_info", 0, comm, func(o *commObject) error {
		to1, err := result[uintptr]("newcomm", newcomm)
		if err != nil {
			return err
		}
		*to1 = commNull // unless it can be made
		if _, err := result[uintptr]("request", request); err != nil {
			return err
		}
		in1, err := infoOf(info)
		if err != nil {
			return err
		}
		out1, out2, err := o.IdupWithInfo(in1)
		if err != nil {
			return err
		}
		*to1 = newComm(out1, o)
		return newRequest(&o.object, out2, request)
	})
`}, {"int MPI_Type_create_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);\n" +
			"int MPI_Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype);", `
		in1, err := lengths("array_of_blocklengths", array_of_blocklengths, int(count), which)
		if err != nil {
			return err
		}
		in2, err := counts("array_of_displacements", array_of_displacements, int(count), 1)
		if err != nil {
			return err
		}
		in3, err := takeType("oldtype", oldtype)
		if err != nil {
			return err
		}
		out1, err := mpi.TypeHindexed(in1, in2, in3)
		if err != nil {
			return err
		}
		return storeType(to1, which, out1)
`}, {"int MPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result);", `
		in1, err := takeComm("comm2", comm2)
		if err != nil {
			return err
		}
		out1, err := o.Compare(in1.Comm)
		if err != nil {
			return err
		}
		return putComparison("result", result, out1)
`}, {"int MPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup);", `
		*to1 = newGroup(out1, sessionOf(in1, in2))
		return nil
`}, {"int MPI_Info_set(MPI_Info info, const char *key, const char *value);", `
	return anytime("Info_set", func() error {
		in1, err := takeInfo(info)
`}, {"int MPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request);", `
	return onRequest("Pready_list", 0, request, func(o *requestObject) error {
		in1, err := ints("array_of_partitions", array_of_partitions, int(length), 0)
		if err != nil {
			return err
		}
		return o.q.PreadyList(in1)
`}, {"int MPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count);\n" +
			"int MPI_Get_count_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count);", `
		return putWide("count", count, which, int64(out1))
`}, {"int MPI_Type_size_x(MPI_Datatype datatype, MPI_Count *size);", `
	return abiTypeSize(datatype, size, oldWide)
`}, {"int MPI_Status_get_error(const MPI_Status *status, int *error);", `
func abiStatusGetError(status uintptr, errorcode uintptr) int32 {
`}} {
		fns, err := ParseHeader(c.header)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Calls(fns)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("lacks%s\nIt is:\n%s", c.want, text)
		}
	}
}

// TestCallsOfTheHeader: each line of the table is about a function of mpi.h, and no two are about
// the same one.
func TestCallsOfTheHeader(t *testing.T) {
	text, err := os.ReadFile("../../" + headerFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(callTable) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "==" {
			continue
		}
		if seen[name] {
			t.Errorf("MPI_%s has two lines", name)
		}
		seen[name] = true
		if !strings.Contains(string(text), "int MPI_"+name+"(") {
			t.Errorf("no MPI_%s", name)
		}
	}
}

// TestCallsRefuse: a line that is no statement is an error that says of what.
func TestCallsRefuse(t *testing.T) {
	fns, err := ParseHeader("int MPI_Comm_rank(MPI_Comm comm, int *rank);")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"rank =", "go comm.Rank()"} {
		if text, err := exported(Pairs(fns)[0], "Comm_rank", line, false); err == nil {
			t.Errorf("%q becomes %s", line, text)
		}
	}
}
