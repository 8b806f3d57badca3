package include

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

var prototype = regexp.MustCompile(`(?m)^(\w+) (P?MPI_\w+)\((.*)\);$`)

// functions returns the prototypes whose names begin with prefix, the names
// without it, in the order of the header.
func functions(t *testing.T, prefix string) (names []string, rest map[string]string) {
	t.Helper()
	rest = map[string]string{}
	for _, m := range prototype.FindAllStringSubmatch(Header+Generated, -1) {
		name, found := strings.CutPrefix(m[2], prefix)
		if !found || strings.HasPrefix(m[0], "typedef") {
			continue
		}
		if _, twice := rest[name]; twice {
			t.Errorf("%s%s is declared twice", prefix, name)
		}
		names = append(names, name)
		rest[name] = m[1] + " (" + m[3] + ")"
	}
	return names, rest
}

// TestTwins wants every function under both of its names, with one type.
func TestTwins(t *testing.T) {
	names, mpi := functions(t, "MPI_")
	twins, pmpi := functions(t, "PMPI_")
	if len(names) != 664 || len(twins) != 664 {
		t.Errorf("%d functions and %d twins, want 664 of each", len(names), len(twins))
	}
	for _, n := range names {
		if mpi[n] != pmpi[n] {
			t.Errorf("MPI_%s is %s, PMPI_%s is %s", n, mpi[n], n, pmpi[n])
		}
	}
}

var (
	mpi1 = strings.Fields(`Init Initialized Finalize Abort Get_version Get_processor_name Pcontrol Wtime Wtick
		Error_class Error_string Errhandler_free Send Bsend Ssend Rsend Recv Isend Ibsend Issend Irsend Irecv
		Send_init Bsend_init Ssend_init Rsend_init Recv_init Sendrecv Sendrecv_replace Probe Iprobe Get_count
		Get_elements Test_cancelled Buffer_attach Buffer_detach Wait Waitany Waitall Waitsome Test Testany Testall
		Testsome Request_free Cancel Start Startall Type_contiguous Type_vector Type_indexed Type_commit Type_free
		Type_size Pack Unpack Pack_size Keyval_create Keyval_free Attr_put Attr_get Attr_delete Op_create Op_free
		Group_size Group_rank Group_translate_ranks Group_compare Group_union Group_intersection Group_difference
		Group_incl Group_excl Group_range_incl Group_range_excl Group_free Comm_size Comm_rank Comm_compare
		Comm_group Comm_remote_size Comm_remote_group Comm_test_inter Comm_dup Comm_create Comm_split Comm_free
		Intercomm_create Intercomm_merge Topo_test Dims_create Cart_create Cartdim_get Cart_get Cart_rank
		Cart_coords Cart_shift Cart_sub Cart_map Graph_create Graphdims_get Graph_get Graph_neighbors_count
		Graph_neighbors Graph_map Barrier Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall
		Alltoallv Reduce Allreduce Reduce_scatter Scan`)
	mpi3 = strings.Fields(`Get_library_version Aint_add Aint_diff Mprobe Improbe Mrecv Imrecv Get_elements_x
		Status_set_elements_x Type_create_hindexed_block Type_size_x Type_get_extent_x Type_get_true_extent_x
		Comm_dup_with_info Comm_idup Comm_create_group Comm_split_type Comm_set_info Comm_get_info Ibarrier Ibcast
		Igather Igatherv Iscatter Iscatterv Iallgather Iallgatherv Ialltoall Ialltoallv Ialltoallw Ireduce
		Iallreduce Ireduce_scatter Ireduce_scatter_block Iscan Iexscan Neighbor_allgather Neighbor_allgatherv
		Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw Ineighbor_allgather Ineighbor_allgatherv
		Ineighbor_alltoall Ineighbor_alltoallv Ineighbor_alltoallw`)
	mpi4 = strings.Fields(`Isendrecv Isendrecv_replace Info_get_string Info_create_env Remove_error_class
		Remove_error_code Remove_error_string Comm_idup_with_info Get_hw_resource_info Status_get_source
		Status_get_tag Status_get_error Status_set_source Status_set_tag Status_set_error Buffer_flush
		Buffer_iflush Comm_attach_buffer Comm_detach_buffer Comm_flush_buffer Comm_iflush_buffer
		Request_get_status_any Request_get_status_all Request_get_status_some Type_get_value_index
		Group_from_session_pset Comm_create_from_group Intercomm_create_from_groups`)
	partitioned = strings.Fields(`Psend_init Precv_init Pready Pready_list Pready_range Parrived`)
	oneSided    = strings.Fields(`Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rput Rget
		Raccumulate Rget_accumulate`)
)

// chapterOf says to which group of the standard's functions a name belongs.
// What is left over came with MPI-2.
func chapterOf(name string) string {
	for chapter, names := range map[string][]string{
		"MPI-1.2": mpi1, "MPI-3": mpi3, "MPI-4 and 5": mpi4, "partitioned": partitioned, "one-sided": oneSided,
	} {
		for _, n := range names {
			if n == name {
				return chapter
			}
		}
	}
	ends := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case begins("T_"):
		return "tool interface"
	case begins("Abi_"):
		return "ABI"
	case ends("_c"):
		return "large counts"
	case begins("File_") || name == "Register_datarep":
		return "files"
	case begins("Win_"):
		return "one-sided"
	case ends("_toint") || ends("_fromint"):
		return "conversion"
	case begins("Session_"):
		return "sessions"
	case ends("_init"):
		return "persistent collectives"
	}
	return "MPI-2"
}

// TestInventory counts the functions of each group of the standard.
func TestInventory(t *testing.T) {
	names, _ := functions(t, "MPI_")
	got := map[string]int{}
	for _, n := range names {
		got[chapterOf(n)]++
	}
	want := map[string]int{
		"MPI-1.2": 119, "MPI-2": 82, "MPI-3": 46, "MPI-4 and 5": 28, "persistent collectives": 22, "sessions": 14,
		"partitioned": 6, "large counts": 161, "one-sided": 49, "files": 62, "tool interface": 51, "ABI": 6, "conversion": 18,
	}
	for chapter := range got {
		if want[chapter] == 0 {
			t.Errorf("unexpected group %q", chapter)
		}
	}
	for chapter, n := range want {
		if got[chapter] != n {
			t.Errorf("%s: %d functions, want %d", chapter, got[chapter], n)
		}
	}
}

// TestParametersHaveNames wants of each parameter its type and its name, which
// the makers of the library's functions rely on.
func TestParametersHaveNames(t *testing.T) {
	parameter := regexp.MustCompile(`^(const )?\w+ (const )?\**\w+(\[\])?(\[3\])?$`)
	for _, m := range prototype.FindAllStringSubmatch(Header, -1) {
		if m[3] == "void" {
			continue
		}
		for _, p := range strings.Split(m[3], ", ") {
			if !parameter.MatchString(p) && p != "..." {
				t.Errorf("%s: parameter %q", m[2], p)
			}
		}
	}
}

// constants reads testdata/values.txt: names in order, and their values.
func constants(t *testing.T) (names []string, values map[string]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && strings.HasPrefix(f[0], "MPI_") {
			names, values[f[0]] = append(names, f[0]), f[1]
		}
	}
	return names, values
}

// compiler returns the command for C or, by the file's name, C++.
func compiler(t *testing.T, file string) string {
	t.Helper()
	cc, variable := "cc", "CC"
	if strings.HasSuffix(file, ".cc") {
		cc, variable = "c++", "CXX"
	}
	if set := os.Getenv(variable); set != "" {
		cc = set
	}
	return skips.Program(t, cc)
}

// compile writes the program to a file of the given name and compiles it.
func compile(t *testing.T, file, program string, args ...string) (binary string) {
	t.Helper()
	cc, dir := compiler(t, file), t.TempDir()
	source, binary := filepath.Join(dir, file), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, "-Wall", "-Wextra", "-Werror", "-I.", "-o", binary, source)
	if out, err := exec.CommandContext(t.Context(), cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, strings.Join(args, " "), err, out)
	}
	return binary
}

// TestValues compiles a program that knows the value of every constant.
func TestValues(t *testing.T) {
	names, values := constants(t)
	if len(names) < 360 {
		t.Fatalf("%d constants in testdata/values.txt", len(names))
	}
	var c strings.Builder
	c.WriteString("#include <mpi.h>\n#include <stdio.h>\n\nint main(void) {\n  int wrong = 0;\n")
	for _, n := range names {
		fmt.Fprintf(&c, "  if ((intptr_t)(%s) != %s) { printf(\"%s is %%ld\\n\", (long)(intptr_t)(%s)); wrong = 1; }\n",
			n, values[n], n, n)
	}
	c.WriteString("  return wrong;\n}\n")
	out, err := exec.CommandContext(t.Context(), compile(t, "values.c", c.String())).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNoWarnings: compilers warn of a pointer that is no array's where a parameter is declared as
// an array.
func TestNoWarnings(t *testing.T) {
	compile(t, "weights.c", `#include <mpi.h>
int main(void) {
  MPI_Comm comm;
  int ranks[1] = {0}, error = 0;
  error |= MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, ranks, MPI_UNWEIGHTED, 1, ranks, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  error |= MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, ranks, MPI_WEIGHTS_EMPTY, 0, ranks, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm);
  error |= MPI_Dist_graph_create(MPI_COMM_WORLD, 0, ranks, ranks, ranks, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm);
  error |= MPI_Dist_graph_neighbors(comm, 1, ranks, MPI_UNWEIGHTED, 1, ranks, MPI_UNWEIGHTED);
  error |= MPI_Waitall(0, 0, MPI_STATUSES_IGNORE) | MPI_Comm_spawn("", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm, &comm, MPI_ERRCODES_IGNORE);
  return error;
}
`, "-O2", "-c")
}

// TestEveryConstantIsKnown wants no constant in the header that the table of
// values does not have.
func TestEveryConstantIsKnown(t *testing.T) {
	_, values := constants(t)
	for _, m := range regexp.MustCompile(`(?m)^(?:#define|  )\s*(MPI_\w+) +=?`).FindAllStringSubmatch(Header, -1) {
		if _, known := values[m[1]]; !known && m[1] != "MPI_H_ABI" {
			t.Errorf("testdata/values.txt lacks %s", m[1])
		}
	}
}

// layout holds what the compiler itself can judge: sizes, and where MPI_Status
// has its members.
const layout = `#include <stddef.h>
#include <mpi.h>

_Static_assert(sizeof(MPI_Status) == 32, "");
_Static_assert(_Alignof(MPI_Status) == _Alignof(int), "");
_Static_assert(offsetof(MPI_Status, MPI_SOURCE) == 0, "");
_Static_assert(offsetof(MPI_Status, MPI_TAG) == 4, "");
_Static_assert(offsetof(MPI_Status, MPI_ERROR) == 8, "");
_Static_assert(offsetof(MPI_Status, MPI_internal) == 12, "");
_Static_assert(sizeof(MPI_Aint) == sizeof(void *), "");
_Static_assert(sizeof(MPI_Offset) == 8 && sizeof(MPI_Count) == 8, "");
_Static_assert((MPI_Aint)-1 < 0 && (MPI_Offset)-1 < 0 && (MPI_Count)-1 < 0, "");
_Static_assert(sizeof(MPI_Comm) == sizeof(void *) && sizeof(MPI_T_enum) == sizeof(void *), "");
_Static_assert(MPI_UNDEFINED == -32766 && MPI_ERR_LASTCODE == 16383, "");
#if MPI_VERSION < 5 || MPI_ABI_VERSION != 1 || !defined(MPI_ERR_ABI)
#error the preprocessor does not see the constants
#endif

int main(void) { return 0; }
`

// program uses handles where a constant must stand, and callbacks of each kind.
const program = `#include <mpi.h>

static MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_C_COMPLEX};
static MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_NULL};
static void op(void *in, void *inout, int *len, MPI_Datatype *type) { (void)in; (void)inout; (void)len; (void)type; }
static void handler(MPI_Comm *comm, int *code, ...) { (void)comm; (void)code; }
static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm; (void)keyval; (void)extra; (void)in; (void)out; *flag = 0; return MPI_SUCCESS;
}
static int remove_type(MPI_Datatype type, int keyval, void *value, void *extra) {
  (void)type; (void)keyval; (void)value; (void)extra; return MPI_SUCCESS;
}
static MPI_User_function *ops[] = {op};
static MPI_Comm_errhandler_fn *handlers[] = {handler};
static MPI_Comm_copy_attr_function *copies[] = {copy, MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN};
static MPI_Type_delete_attr_function *removes[] = {remove_type, MPI_TYPE_NULL_DELETE_FN};

int main(void) {
  MPI_Status status;
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  return ops[0] && handlers[0] && copies[0] && removes[0] && types[0] != types[1] && comms[0] != comms[1] &&
    status.MPI_SOURCE != status.MPI_TAG ? 0 : 1;
}
`

// TestLanguages compiles the header as every C and C++ that programs are
// written in, and with each compiler that is there.
func TestLanguages(t *testing.T) {
	t.Run("layout", func(t *testing.T) { compile(t, "layout.c", layout, "-std=c11", "-pedantic") })
	for _, std := range []string{"c99", "c11", "c17", "gnu89"} {
		t.Run(std, func(t *testing.T) {
			compile(t, "program.c", program, "-std="+std, "-pedantic", "-Wstrict-prototypes", "-Wshadow")
		})
	}
	for _, std := range []string{"c++98", "c++11", "c++17", "c++20"} {
		t.Run(std, func(t *testing.T) { compile(t, "program.cc", program, "-std="+std, "-pedantic") })
	}
	t.Run("clang", func(t *testing.T) {
		skips.Program(t, "clang")
		t.Setenv("CC", "clang")
		compile(t, "program.c", program, "-std=c99", "-pedantic")
	})
}
