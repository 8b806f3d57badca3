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
			"\treturn beginFile(\"File_iwrite_at\", which, fh, file.Access{Positioning: file.AtOffset, Offset: offset, Write: true}, transfer{buf, count, datatype}, request)\n}\n",
		"\treturn splitFile(\"File_read_ordered_begin\", which, fh, file.Access{Positioning: file.AtSharedPointerOrdered}, transfer{buf, count, datatype})\n",
		"func abiFileReadOrderedEnd(fh uintptr, buf uintptr, status uintptr) int32 {\n\treturn endSplit(\"File_read_ordered_end\", fh, status)\n}\n",
		"\treturn moveFile(\"File_write_shared\", which, fh, file.Access{Positioning: file.AtSharedPointer, Write: true}, transfer{buf, count, datatype}, status)\n",
		"\treturn moveFile(\"File_read_all\", which, fh, file.Access{Positioning: file.AtIndividualPointer, All: true}, transfer{buf, count, datatype}, status)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks\n%s\nIt is:\n%s", want, text)
		}
	}
	if strings.Contains(text, "seek") || strings.Count(text, "//export") != 5 {
		t.Errorf("%s", text)
	}
}

func TestTransfersFace(t *testing.T) {
	fns, err := ParseHeader(`
int MPI_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request);
int MPI_File_iwrite_at_c(MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request);
int MPI_File_read_ordered_begin(MPI_File fh, void *buf, int count, MPI_Datatype datatype);
int MPI_File_read_ordered_begin_c(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype);
int MPI_File_read_ordered_end(MPI_File fh, void *buf, MPI_Status *status);
int MPI_File_read_all(MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status);
int MPI_File_read_all_c(MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status);
int MPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence);
`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := TransfersFace(fns)
	if err != nil {
		t.Fatal(err)
	}
	text = unmeasured(text)
	for _, want := range []string{
		"// IwriteAt begins WriteAt (MPI_File_iwrite_at).\nfunc (f *File) IwriteAt(offset int64, b Buffer) (Request, error) {\n" +
			"\tr1, err := file.Call(\"IwriteAt\", f.in(), func(f *file.File) (proc.Request, error) {\n\t\treturn f.Begin(file.Access{Positioning: file.AtOffset, Offset: offset, Write: true}, proc.Buffer(b), nil)\n\t})\n\treturn Request(r1), err\n}\n",
		"func (f *File) ReadOrderedBegin(b Buffer) error {\n" +
			"\terr := file.Do(\"ReadOrderedBegin\", f.in(), func(f *file.File) error {\n\t\treturn f.Split(file.Access{Positioning: file.AtSharedPointerOrdered}, proc.Buffer(b), nil)\n\t})\n\treturn err\n}\n",
		"which moves on. All members call it (MPI_File_read_all).\nfunc (f *File) ReadAll(b Buffer) (Status, error) {\n" +
			"\tr1, err := file.Call(\"ReadAll\", f.in(), func(f *file.File) (proc.Status, error) {\n\t\treturn f.Move(file.Access{Positioning: file.AtIndividualPointer, All: true}, proc.Buffer(b), nil)\n\t})\n\treturn Status(r1), err\n}\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks\n%s\nIt is:\n%s", want, text)
		}
	}
	if strings.Contains(text, "End(") || strings.Count(text, "\nfunc ") != 3 {
		t.Errorf("%s", text)
	}
}
