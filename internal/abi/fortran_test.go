package abi

import (
	"os"
	"slices"
	"strings"
	"testing"
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

// TestFortranAll wants every function of mpi.h in the library and in both modules, by both names,
// but for those that Fortran does not have.
func TestFortranAll(t *testing.T) {
	text := map[string]string{}
	for _, name := range []string{fortranCalls, fortranDescriptors, fortranExtensions, fortranModule, fortranModule08} {
		b, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(b)
	}
	header, err := os.ReadFile("../../" + headerFile)
	if err != nil {
		t.Fatal(err)
	}
	fns, err := AllFunctions(string(header))
	if err != nil {
		t.Fatal(err)
	}
	all, err := fortranProcedures(fns)
	if err != nil || len(all) < 400 {
		t.Fatalf("%d procedures, %v", len(all), err)
	}
	_, beside, err := readExtensions(os.DirFS("../.."))
	if err != nil || len(beside) != 10 {
		t.Fatalf("%d procedures of mpi-ext.h, %v", len(beside), err)
	}
	for _, p := range slices.Concat(all, beside) {
		// What is special has names that macros make: internal/ctest links all.
		if !p.special && !strings.Contains(text[fortranCalls]+text[fortranExtensions], "void p"+strings.ToLower(p.Name)+"_(") {
			t.Errorf("the library has no %s", p.Name)
		}
		for _, prefix := range []string{"", "P"} {
			if want := "subroutine " + prefix + p.Name + "( &"; !strings.Contains(text[fortranModule], want) {
				t.Errorf("the module mpi has no %s%s", prefix, p.Name)
			}
			if want := "  interface " + prefix + p.Name + "\n"; !p.older && !strings.Contains(text[fortranModule08], want) {
				t.Errorf("the module mpi_f08 has no %s%s", prefix, p.Name)
			}
		}
	}
}

// procedureOf is the procedure that follows from a prototype.
func procedureOf(t *testing.T, prototype string) *procedure {
	t.Helper()
	fns, err := ParseHeader(prototype)
	if err != nil || len(fns) != 1 {
		t.Fatalf("%s: %v", prototype, err)
	}
	p, err := newProcedure(fns[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFortranFunctions holds one call of each sort against what it has to be.
func TestFortranFunctions(t *testing.T) {
	for prototype, want := range map[string]string{
		"int MPI_Send(const void *buf, int count, MPI_Datatype datatype, MPI_Comm comm);": "void pmpi_send_(void *buf, integer *count, integer *datatype, integer *comm, integer *ierror)\n{\n" +
			"\tint code = MPI_SUCCESS;\n\tcode = MPI_Send(impi_buffer(buf), *count, MPI_Type_fromint(*datatype), MPI_Comm_fromint(*comm));\n\tif (ierror != NULL)\n\t\t*ierror = code;\n}\nNAMES(send)\n",
		"int MPI_Wait(MPI_Request *request, MPI_Status *status);": "MPI_Request c_request = MPI_Request_fromint(*request);\n" +
			"\tif (code == MPI_SUCCESS)\n\t\tcode = MPI_Wait(&c_request, impi_status(status));\n\t*request = MPI_Request_toint(c_request);\n",
		"int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);": "\tif (code == MPI_SUCCESS && c_request != 0) *request = MPI_Request_toint(c_request);\n",
		"int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[]);": "\t*outcount = MPI_UNDEFINED;\n" +
			"\tstruct impi_list l_array_of_requests;\n\tMPI_Request *c_array_of_requests = impi_list(&l_array_of_requests, *incount, sizeof(MPI_Request), &code);\n",
		"int MPI_Testany(int count, MPI_Request array_of_requests[], int *index);":               "\timpi_unlist(&l_array_of_requests);\n\timpi_places(1, index);\n",
		"int MPI_Unpack(int *outcount, const int index[]);":                                      "\tcode = MPI_Unpack(outcount, index);\n",
		"int MPI_Comm_set_name(MPI_Comm comm, const char *name);":                                "(integer *comm, char *name, integer *ierror, size_t name_length)\n{\n\tint code = MPI_SUCCESS;\n\tchar *c_name = impi_take(name, name_length, 0, &code);\n",
		"int MPI_Info_delete(MPI_Info info, const char *key);":                                   "impi_take(key, key_length, 1, &code);",
		"int MPI_Error_string(int errorcode, char *string, int *resultlen);":                     "\tif (code == MPI_SUCCESS) impi_give(c_string, string, string_length, resultlen);\n",
		"int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3]);":                     "MPI_Group_range_incl(MPI_Group_fromint(*group), *n, (void *)ranges);",
		"int MPI_Get_address(const void *location, MPI_Aint *address);":                          "void pmpi_get_address_(void *location, MPI_Aint *address, integer *ierror)",
		"int MPI_Dist_graph_create(MPI_Comm comm, int n, const int weights[]);":                  "impi_weights(weights, weights)",
		"int MPI_Alltoallw(const void *sendbuf, const MPI_Datatype sendtypes[], MPI_Comm comm);": "impi_list(&l_sendtypes, impi_partners(*comm, sendbuf, 0, 0), sizeof(MPI_Datatype), &code);",
		"int MPI_Type_get_contents(int max_datatypes, MPI_Datatype array_of_datatypes[]);":       "if (c_array_of_datatypes[i] != 0) array_of_datatypes[i] = MPI_Type_toint(c_array_of_datatypes[i]);",
	} {
		p := procedureOf(t, prototype)
		if text := fortranFunction(p, p, false); !strings.Contains(text, want) {
			t.Errorf("%s became\n%s\nwithout\n%s", prototype, text, want)
		}
	}
	for prototype, want := range map[string]string{
		"int MPI_Comm_rank(MPI_Comm comm, int *rank);":              "\tfor (int i = 0; i < l_rank.n; i++) rank[i] = c_rank[i];\n\timpi_unlist(&l_rank);\n",
		"int MPI_Group_incl(MPI_Group group, int n, int ranks[]);":  "impi_list(&l_ranks, *n, sizeof(int), &code);",
		"int MPI_Probe(int source, MPI_Status *status);":            "MPI_Probe(impi_int(*source), impi_ignored(status) ? MPI_STATUS_IGNORE : c_status);",
		"int MPI_Group_range_incl(int n, int ranges[][3]);":         "MPI_Group_range_incl(impi_int(*n), (void *)c_ranges);",
		"int MPI_Dist_graph_neighbors(int n, int sourceweights[]);": "impi_weights(sourceweights, NULL) != NULL ? 0 : ",
	} {
		p := procedureOf(t, prototype)
		if text := fortranFunction(p, p, true); !strings.Contains(text, want) {
			t.Errorf("with INTEGERs of 8 bytes %s became\n%s\nwithout\n%s", prototype, text, want)
		}
	}
	for _, prototype := range []string{"int MPI_X(MPI_Enum e);", "int MPI_X(double d);"} {
		fns, err := ParseHeader(prototype)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newProcedure(fns[0]); err == nil {
			t.Errorf("%s: Fortran is said to have it", prototype)
		}
	}
}

// TestDescriptors has procedures with buffers that need not lie in one piece.
func TestDescriptors(t *testing.T) {
	for prototype, want := range map[string]string{
		"int MPI_Send(const void *buf, int count, MPI_Datatype datatype);":                                                     "\timpi_packed(&s_buf, buf, &code);\n\tif (code == MPI_SUCCESS)\n\t\tpmpi_send_(s_buf.at, count, datatype, ierror);\n",
		"int MPI_Recv(void *buf, int count, MPI_Datatype datatype);":                                                           "impi_unpacked(&s_buf, 1);",
		"int MPI_Isend(const void *buf, int count, MPI_Datatype datatype);":                                                    "pmpi_isend_(s_buf.at, &s_buf.count, &s_buf.type, ierror);",
		"int MPI_Isend_c(const void *buf, MPI_Count count, MPI_Datatype datatype);":                                            "pmpi_isend_c_(s_buf.at, &s_buf.wide, &s_buf.type, ierror);",
		"int MPI_Ireduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op);":                    "\timpi_whole(&s_recvbuf, recvbuf, &code);\n",
		"int MPI_Igatherv(void *recvbuf, const int recvcounts[], const int displs[]);":                                         "impi_whole(&s_recvbuf, recvbuf, &code);",
		"int MPI_Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, MPI_Op op, MPI_Win win);": "impi_typed(&s_origin_addr, origin_addr, *origin_count, *origin_datatype, &code);",
		"int MPI_File_read_all_end(MPI_File fh, void *buf);":                                                                   "{\n\tpmpi_file_read_all_end_(fh, buf->base, ierror);\n}",
		"int MPI_Pack_external(const char datarep[], const void *inbuf, int n);":                                               "pmpi_pack_external_(datarep->base, s_inbuf.at, n, ierror, datarep->elem_len);",
	} {
		if text := described(procedureOf(t, prototype)); !strings.Contains(text, want) {
			t.Errorf("%s became\n%s\nwithout\n%s", prototype, text, want)
		}
	}
}

// TestInterfaces has interfaces of both modules.
func TestInterfaces(t *testing.T) {
	p := procedureOf(t, "int MPI_Irecv(void *buf, int count, MPI_Datatype datatype, MPI_Comm comm, MPI_Request *request);")
	for text, wants := range map[string][]string{
		fortranInterface(p, "MPI_Irecv", "_f08ts", true): {
			`bind(C, name="mpi_irecv_f08ts_")`, "type(*), dimension(..), asynchronous :: buf", "integer, intent(in) :: count",
			"type(MPI_Datatype), intent(in) :: datatype", "type(MPI_Request), intent(out) :: request", "integer, optional, intent(out) :: ierror",
		},
		fortranInterface(p, "MPI_Irecv", "", false): {
			"!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf", "real, dimension(*) :: buf", "integer, intent(in) :: datatype", "integer, intent(out) :: ierror",
		},
		fortranInterface(procedureOf(t, "int MPI_Testsome(int incount, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]);"), "MPI_Testsome", "", false): {
			"integer, intent(inout) :: array_of_requests(*)", "logical, intent(out) :: flag", "integer :: array_of_statuses(MPI_STATUS_SIZE,*)",
		},
		fortranInterface(procedureOf(t, "int MPI_Op_create(MPI_User_function *user_fn, int commute, MPI_Op *op);"), "MPI_Op_create", "_f08", true): {
			"procedure(MPI_User_function) :: user_fn", "logical, intent(in) :: commute",
		},
		fortranInterface(procedureOf(t, "int MPI_Win_allocate(MPI_Aint size, void *baseptr);"), "MPI_Win_allocate", "_f08", true): {
			"integer(kind=MPI_ADDRESS_KIND), intent(in) :: size", "type(c_ptr), intent(out) :: baseptr",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %q in\n%s", want, text)
			}
		}
	}
}
