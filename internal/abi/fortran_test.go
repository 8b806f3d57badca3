package abi

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFortranUpToDate(t *testing.T) {
	files, err := GenerateFortran(os.DirFS("../.."))
	wantUpToDate(t, files, err)
	// Fixed form ends a line at column 72, and begins statements at column 7.
	for line := range strings.Lines(files[fortranHeader]) {
		statement := strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(statement, "!") && (len(statement) > 72 || !strings.HasPrefix(statement, "      ") || strings.Contains(statement, "&")) {
			t.Errorf("%q is not good for both forms", statement)
		}
	}
}

// TestFortranListed wants docs/fortran.md to list the calls that are there, no more
// and no less.
func TestFortranListed(t *testing.T) {
	there := map[string]bool{}
	for _, name := range []string{fortranCalls, "cmd/impifort/library/special.c"} {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^[a-zA-Z]\w+ (mpi_\w+)_\(`).FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
	}
	text, err := os.ReadFile("../../docs/fortran.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "## What there is\n\n```\n")
	list, _, _ = strings.Cut(list, "```")
	for _, word := range strings.Fields(list) {
		if name := "mpi_" + strings.ToLower(word); !there[name] {
			t.Errorf("docs/fortran.md lists %s, which is not there or is listed twice", word)
		} else {
			delete(there, name)
		}
	}
	for name := range there {
		t.Errorf("docs/fortran.md does not list %s", name)
	}
}

// TestFortranFunctions holds one call of each sort against what it has to be.
func TestFortranFunctions(t *testing.T) {
	for prototype, want := range map[string]string{
		"int MPI_Send(const void *buf, int count, MPI_Datatype datatype, MPI_Comm comm);": "void mpi_send_(void *buf, int *count, int *datatype, int *comm, int *ierror)\n{\n" +
			"\t*ierror = MPI_Send(impi_buffer(buf), *count, MPI_Type_fromint(*datatype), MPI_Comm_fromint(*comm));\n}",
		"int MPI_Wait(MPI_Request *request, MPI_Status *status);": "MPI_Request c_request = MPI_Request_fromint(*request);\n" +
			"\t*ierror = MPI_Wait(&c_request, impi_status(status));\n\t*request = MPI_Request_toint(c_request);\n",
		"int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);": "MPI_Request c_request = 0;\n" +
			"\t*ierror = MPI_Ibarrier(MPI_Comm_fromint(*comm), &c_request);\n\tif (*ierror == MPI_SUCCESS) *request = MPI_Request_toint(c_request);\n",
		"int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[]);": "\tstruct impi_requests c_requests;\n" +
			"\tif ((*ierror = impi_come(&c_requests, *incount, array_of_requests)) != MPI_SUCCESS) return;\n\t*outcount = MPI_UNDEFINED;\n" +
			"\t*ierror = MPI_Waitsome(*incount, c_requests.all, outcount, array_of_indices);\n" +
			"\timpi_gone(&c_requests, array_of_requests);\n\timpi_places(*outcount, array_of_indices);\n",
		"int MPI_Testany(int count, MPI_Request array_of_requests[], int *index);": "\t*index = MPI_UNDEFINED;\n" +
			"\t*ierror = MPI_Testany(*count, c_requests.all, index);\n\timpi_gone(&c_requests, array_of_requests);\n\timpi_place(index);\n",
		"int MPI_Unpack(int *outcount, const int index[]);": "{\n\t*ierror = MPI_Unpack(outcount, index);\n}",
		"int MPI_Comm_set_name(MPI_Comm comm, const char *name);": "(int *comm, char *name, int *ierror, size_t length)\n{\n\tchar *c_name = impi_take(name, length);\n" +
			"\t*ierror = c_name == NULL ? impi_nomemory(MPI_Comm_fromint(*comm)) : MPI_Comm_set_name(MPI_Comm_fromint(*comm), c_name);\n\tfree(c_name);\n",
		"int MPI_Error_string(int errorcode, char *string, int *resultlen);": "\tif (*ierror == MPI_SUCCESS) impi_give(c_string, string, length, resultlen);\n",
		"int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3]);": "*ierror = MPI_Group_range_incl(MPI_Group_fromint(*group), *n, (void *)ranges);",
		"int MPI_Get_address(const void *location, MPI_Aint *address);":      "void mpi_get_address_(void *location, MPI_Aint *address, int *ierror)",
	} {
		fns, err := ParseHeader(prototype)
		if err != nil {
			t.Fatal(err)
		}
		text, err := fortranFunction(fns[0])
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%s became, %v\n%s\nwithout\n%s", prototype, err, text, want)
		}
	}
	for _, prototype := range []string{
		"int MPI_Startall(int count, MPI_Info array_of_infos[]);",
		"int MPI_Info_set(const MPI_Info infos[]);",
		"int MPI_Op_create(MPI_User_function *user_fn, int commute, MPI_Op *op);",
	} {
		fns, err := ParseHeader(prototype)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := fortranFunction(fns[0]); err == nil {
			t.Errorf("%s was taken for a regular function:\n%s", prototype, text)
		}
	}
	if _, err := GenerateFortran(fstest.MapFS{headerFile: {Data: []byte(small)}}); err == nil || !strings.Contains(err.Error(), "mpi.h has no MPI_Initialized") {
		t.Errorf("of a header that lacks functions: %v", err)
	}
}
