package abi

import (
	"strings"
	"testing"
)

func TestTransfers(t *testing.T) {
	fns, err := ParseHeader(`
int MPI_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request);
int MPI_File_iwrite_at_c(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request);
int MPI_File_read_ordered_begin(MPI_File fh, void *buf, int count, MPI_Datatype datatype);
int MPI_File_read_ordered_begin_c(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype);
int MPI_File_read_ordered_end(MPI_File fh, void *buf, MPI_Status *status);
int MPI_File_write_shared(MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status);
int MPI_File_write_shared_c(MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status);
int MPI_File_read_all(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);
int MPI_File_read_all_c(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status);
int MPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence);
`)
	if err != nil {
		t.Fatal(err)
	}
	text := Transfers(fns)
	for _, want := range []string{
		"//export abiFileIwriteAt\nfunc abiFileIwriteAt(fh uintptr, offset int64, buf uintptr, count int64, datatype uintptr, request uintptr, which int32) int32 {\n" +
			"\treturn moveAt(\"File_iwrite_at\", which, fh, offset, transfer{buf, count, datatype}, true, requesting(request))\n}\n",
		"\treturn moveOrdered(\"File_read_ordered_begin\", which, fh, transfer{buf, count, datatype}, false, splitting)\n",
		"func abiFileReadOrderedEnd(fh uintptr, buf uintptr, status uintptr) int32 {\n\treturn endSplit(\"File_read_ordered_end\", fh, status)\n}\n",
		"\treturn moveTogether(\"File_write_shared\", which, fh, transfer{buf, count, datatype}, true, storing(status))\n",
		"\treturn moveOn(\"File_read_all\", which, fh, transfer{buf, count, datatype}, false, storing(status))\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks\n%s\nIt is:\n%s", want, text)
		}
	}
	if strings.Contains(text, "seek") || strings.Count(text, "//export") != 5 {
		t.Errorf("%s", text)
	}
}
