package abi

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestUpToDate(t *testing.T) {
	files, err := Generate(os.DirFS("../.."))
	wantUpToDate(t, files, err)
}

const small = `
typedef int (MPI_Copy_function)(MPI_Comm comm);
int MPI_Mrecv(const void *buf, int count, MPI_Comm comm);
int MPI_Mrecv_c(const void *buf, MPI_Count count, MPI_Comm comm);
int MPI_Group_range_find(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup);
double MPI_Wtime(void);
int PMPI_Mrecv(const void *buf, int count, MPI_Comm comm);
`

func source(goCode string) fstest.MapFS {
	return fstest.MapFS{
		headerFile:            {Data: []byte(small)},
		library + "/p2p.go":   {Data: []byte(goCode)},
		library + "/direct.c": {Data: []byte("double PMPI_Wtime(void)\n{\n}\n")},
	}
}

const send = "package main\n\n//export abiMrecv\nfunc abiMrecv(buf uintptr, count int64, c uintptr, which int32) int32 { return 0 }\n"

func TestGenerate(t *testing.T) {
	files, err := Generate(source(send))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"TIMED static int timed_MPI_Mrecv(const void *buf, int count, MPI_Comm comm)\n{\n\tuint64_t begun = impi_clock();\n\tint error = abiMrecv(W(buf), count, W(comm), 0);\n" +
			"\timpi_called(0, begun, NOBODY, NO_TAG, -1, W(comm));\n\treturn error;\n}\n",
		"int PMPI_Mrecv(const void *buf, int count, MPI_Comm comm) { return MEASURED ? timed_MPI_Mrecv(buf, count, comm) : abiMrecv(W(buf), count, W(comm), 0); }\n" +
			"int MPI_Mrecv(const void *buf, int count, MPI_Comm comm) __attribute__((weak, alias(\"PMPI_Mrecv\")));",
		"int PMPI_Mrecv_c(const void *buf, MPI_Count count, MPI_Comm comm) { return MEASURED ? timed_MPI_Mrecv_c(buf, count, comm) : abiMrecv(W(buf), count, W(comm), 1); }",
		"{ return abiUnsupported(2, 0, 0); }\nint MPI_Group_range_find(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)",
	} {
		if !strings.Contains(files[stubsFile], want) {
			t.Errorf("the C code lacks\n%s\nIt is:\n%s", want, files[stubsFile])
		}
	}
	if strings.Contains(files[stubsFile], "Wtime") {
		t.Error("there is code for a function that is written in C")
	}
	want := "\t{\"MPI_Mrecv\", true},\n\t{\"MPI_Mrecv_c\", true},\n\t{\"MPI_Group_range_find\", false},\n\t{\"MPI_Wtime\", true},\n"
	if !strings.Contains(files[tableFile], want) {
		t.Errorf("the table is\n%s", files[tableFile])
	}
}

func TestGenerateRefuses(t *testing.T) {
	for code, want := range map[string]string{
		strings.Replace(send, "int64", "int32", 1):       "abiMrecv has parameters (uintptr, int32, uintptr, int32), want (uintptr, int64, uintptr, int32)",
		strings.ReplaceAll(send, "abiMrecv", "abiMrecw"): "abiMrecw is for no function of mpi.h",
	} {
		if _, err := Generate(source(code)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestHeader(t *testing.T) {
	text, err := os.ReadFile("../../" + headerFile)
	if err != nil {
		t.Fatal(err)
	}
	fns, err := AllFunctions(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(fns) != 664 || len(Functions()) != 664 {
		t.Errorf("%d functions and a table of %d, want 664", len(fns), len(Functions()))
	}
}

// wantUpToDate compares what a generator makes with the files in the repository.
func wantUpToDate(t *testing.T, files map[string]string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		old, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(old) != text {
			t.Errorf("%s is out of date: go generate ./internal/abi", name)
		}
	}
}
