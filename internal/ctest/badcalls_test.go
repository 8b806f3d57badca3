package ctest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/abi"
	"github.com/openimpi/impi/internal/soak"
)

// A program is made of the header that calls every function with arguments that are
// wrong in several ways at a time. What a call says is a code that MPI has; where a
// handle of an object is wrong that code is no success; its text names the function; and
// MPI works at the end. All of it is done once more when the library knows communicators,
// requests and memory by heart, and behind MPI_Finalize. testdata/wild.c has one wrong handle
// at a time.

// notCalled are the functions that the program does not call, and why.
var notCalled = map[string]string{
	"MPI_Abort": "ends the job", "MPI_Init": "begins", "MPI_Init_thread": "begins", "MPI_Finalize": "ends", "MPI_T_finalize": "ends the tool interface",
	"MPI_Free_mem": "free of what was never allocated is undefined", "MPI_Pcontrol": "has no arguments that are wrong",
}

// unharmed are functions that take what they are given for a handle without an
// object, or make no use of it, by the name of the function.
var unharmed = map[string]bool{
	"MPI_Grequest_start": true, // the state of callbacks
}

// way is a way to be wrong: an expression for each sort of argument.
type way struct {
	name                        string
	handle, pointer, small, big string
	bad                         bool // no handle is one
}

var ways = []way{
	{name: "zero", handle: "(%s)0", pointer: "at(0)", small: "0", big: "0", bad: true},
	{name: "null", handle: "NULL_OF(%s)", pointer: "at(0)", small: "-1", big: "-1", bad: true},
	{name: "never made", handle: "(%s)0xdeadbeef", pointer: "zeros()", small: "-5", big: "-5", bad: true},
	{name: "another kind", handle: "OTHER_OF(%s)", pointer: "at(8)", small: "1 << 30", big: "1LL << 40", bad: true},
	{name: "freed", handle: "(%s)freed", pointer: "ones()", small: "0x7fffffff", big: "0x7fffffffffffffffLL", bad: true},
	{name: "no memory", handle: "GOOD(%s)", pointer: "at(0)", small: "-7", big: "-7"},
	{name: "no such memory", handle: "GOOD(%s)", pointer: "at(0x5a5a5a5a000)", small: "-7", big: "-7"},
	{name: "negative", handle: "GOOD(%s)", pointer: "zeros()", small: "-7", big: "-7"},
}

// objects are the types of handles that C has a value of a kind for.
var objects = []string{"Comm", "Group", "Datatype", "Op", "Request", "Info", "Errhandler", "Win", "File", "Session", "Message"}

// call is a call of a function, or "" if it cannot be made so.
func (w way) call(f abi.Function) string {
	if notCalled[f.Name] != "" || f.Result != "int" || strings.HasSuffix(f.Name, "_toint") {
		return ""
	}
	args, handle := []string{}, false
	for _, a := range f.Args {
		base := strings.TrimPrefix(a.Type, "MPI_")
		switch {
		case strings.Contains(a.Type, "*"):
			args = append(args, w.pointer)
		case known(base):
			handle = handle || base != "Info" && base != "Request" && base != "Errhandler"
			args = append(args, fmt.Sprintf(w.handle, a.Type))
		case a.Shape() == abi.Word: // of the tool interface
			args = append(args, w.pointer)
		case a.Shape() == abi.Int:
			args = append(args, w.small)
		default:
			args = append(args, w.big)
		}
	}
	must := 0
	if w.bad && handle && !unharmed[f.Name] {
		must = 1
	}
	line := fmt.Sprintf("  told(%q, %q, %d, %s(%s));\n", f.Name, w.name, must, f.Name, strings.Join(args, ", "))
	if f.Name == "MPI_Session_init" && w.pointer == "zeros()" { // nobody else would end it
		line += "  if (*(MPI_Session *)memory != MPI_SESSION_NULL) CALL(MPI_Session_finalize((MPI_Session *)memory));\n"
	}
	return line
}

func known(base string) bool {
	for _, o := range objects {
		if o == base {
			return true
		}
	}
	return false
}

const badCallsStart = `#include "test.h"
#include <sys/mman.h>
static void *freed;
static MPI_Comm good;
static char memory[1 << 16];
static void *zeros(void) { return memset(memory, 0, sizeof memory); }
static void *ones(void) { return memset(memory, 0xff, sizeof memory); }
#define NULL_OF(t) ((t)NULL_##t)
static void *at(uintptr_t p) { return (void *)p; }
#define NULL_MPI_Comm (uintptr_t)MPI_COMM_NULL
#define NULL_MPI_Group (uintptr_t)MPI_GROUP_NULL
#define NULL_MPI_Datatype (uintptr_t)MPI_DATATYPE_NULL
#define NULL_MPI_Op (uintptr_t)MPI_OP_NULL
#define NULL_MPI_Request (uintptr_t)MPI_REQUEST_NULL
#define NULL_MPI_Info (uintptr_t)MPI_INFO_NULL
#define NULL_MPI_Errhandler (uintptr_t)MPI_ERRHANDLER_NULL
#define NULL_MPI_Win (uintptr_t)MPI_WIN_NULL
#define NULL_MPI_File (uintptr_t)MPI_FILE_NULL
#define NULL_MPI_Session (uintptr_t)MPI_SESSION_NULL
#define NULL_MPI_Message (uintptr_t)MPI_MESSAGE_NULL
#define OTHER_OF(t) ((t)(sizeof #t == sizeof "MPI_Comm" && #t[4] == 'C' ? (uintptr_t)MPI_INT : (uintptr_t)MPI_COMM_WORLD))
#define GOOD(t) ((t)GOOD_##t)
#define GOOD_MPI_Comm good
#define GOOD_MPI_Group MPI_GROUP_EMPTY
#define GOOD_MPI_Datatype MPI_INT
#define GOOD_MPI_Op MPI_SUM
#define GOOD_MPI_Request MPI_REQUEST_NULL
#define GOOD_MPI_Info MPI_INFO_NULL
#define GOOD_MPI_Errhandler MPI_ERRORS_RETURN
#define GOOD_MPI_Win MPI_WIN_NULL
#define GOOD_MPI_File MPI_FILE_NULL
#define GOOD_MPI_Session MPI_SESSION_NULL
#define GOOD_MPI_Message MPI_MESSAGE_NULL
static int calls;
static void told(const char *fn, const char *way, int must, int code) {
  int class = -1, n, tool = strncmp(fn, "MPI_T_", 6) == 0;
  char text[MPI_MAX_ERROR_STRING] = "", name[80];
  calls++;
  if (getenv("VERBOSE")) fprintf(stderr, "%s, %s: %d\n", fn, way, code);
  if (must ? code == MPI_SUCCESS : 0) {
    fprintf(stderr, "%s succeeds with handles that are %s\n", fn, way);
    wrong++;
  }
  if (tool ? code != 0 && (code < 1001 || code > 1018) : PMPI_Error_class(code, &class) != 0 || class < 0) {
    fprintf(stderr, "%s, %s: code %d, which is none\n", fn, way, code);
    wrong++;
  }
  if (tool || code == MPI_SUCCESS) return;
  snprintf(name, sizeof name, "%s: ", fn);
  if (PMPI_Error_string(code, text, &n) || !strstr(text, name)) {
    fprintf(stderr, "%s, %s: the text is %s\n", fn, way, text);
    wrong++;
  }
}
`

const badCallsEnd = `static void warm(void) {
  int i, in = 0, flag;
  MPI_Comm c = MPI_COMM_NULL;
  MPI_Request q[2];
  for (i = 0; i < 3000; i++) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    if (i % 500 == 0) {
      if (i > 0) CALL(MPI_Comm_free(&c));
      CALL(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    }
    CALL(MPI_Sendrecv(&rank, 1, MPI_INT, to, 0, &in, 1, MPI_INT, from, 0, i % 2 ? c : MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CALL(MPI_Send(&rank, 1, MPI_INT, to, 0, c));
    CALL(MPI_Recv(&in, 1, MPI_INT, from, 0, c, MPI_STATUS_IGNORE));
    CALL(MPI_Irecv(&in, 1, MPI_INT, from, 0, c, &q[0]));
    CALL(MPI_Isend(&rank, 1, MPI_INT, to, 0, c, &q[1]));
    if (i % 3 == 0) {
      CALL(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
    } else {
      for (flag = 0; i % 3 == 1 && !flag;) CALL(MPI_Test(&q[0], &flag, MPI_STATUS_IGNORE));
      CALL(MPI_Wait(&q[0], MPI_STATUS_IGNORE));
      CALL(MPI_Wait(&q[1], MPI_STATUS_IGNORE));
    }
  }
  freed = c;
  CALL(MPI_Comm_free(&c));
}
int main(int argc, char **argv) {
  MPI_Comm c;
  int provided, sum = 0, one = 1, failed;
  if (argc > 2) return early(atoi(argv[2]));
  begin(&argc, &argv);
  good = argc > 1 ? MPI_COMM_WORLD : MPI_COMM_SELF;
  CALL(MPI_T_init_thread(0, &provided));
  CALL(MPI_Comm_dup(MPI_COMM_SELF, &c));
  freed = c;
  CALL(MPI_Comm_free(&c));
  all();
  CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  CALL(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  warm();
  all();
  CALL(MPI_Comm_set_errhandler(good, MPI_ERRORS_RETURN));
  CALL(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == size);
  CALL(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &sum, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(sum == (rank + size - 1) % size);
  CHECK(calls > 8000);
  failed = end("badcalls");
  all(); /* what MPI_COMM_SELF's handler was is in force */
  return failed || wrong;
}
`

// before calls one function in each process, that does nothing else. It ends with a text
// that names the function, or the call has succeeded.
func before(t *testing.T, program string) {
	t.Helper()
	for i := range 1000 {
		out, err := Run(t.Context(), "", nil, program, "before", strconv.Itoa(i))
		name, text, _ := strings.Cut(out, "\n")
		switch {
		case name == "no more":
			if i < 500 {
				t.Errorf("%d functions", i)
			}
			return
		case strings.Contains(text, "goroutine ") || strings.Contains(text, "fatal error:"), err != nil && !strings.Contains(text, name+": "):
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	t.Error("there is no end of functions")
}

// badCalls makes the program.
func badCalls(t *testing.T) string {
	t.Helper()
	header, err := os.ReadFile("../../include/mpi.h")
	if err != nil {
		t.Fatal(err)
	}
	fns, err := abi.AllFunctions(string(header))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(badCallsStart)
	for i, w := range ways {
		fmt.Fprintf(&b, "static void way%d(void) {\n", i)
		for _, f := range fns {
			b.WriteString(w.call(f))
		}
		b.WriteString("}\n")
	}
	b.WriteString("static int early(int n) {\n  switch (n) {\n")
	n := 0
	for _, f := range fns {
		if line := ways[0].call(f); line != "" {
			fmt.Fprintf(&b, "  case %d: puts(%q); fflush(stdout); %s  break;\n", n, f.Name, line)
			n++
		}
	}
	b.WriteString("  default: puts(\"no more\");\n  }\n  return wrong;\n}\n")
	b.WriteString("static void all(void) {\n")
	for i := range ways {
		fmt.Fprintf(&b, "  way%d();\n", i)
	}
	b.WriteString("}\n")
	b.WriteString(badCallsEnd)
	return b.String()
}

// TestBadCalls runs the program, where the communicator that is right is that of one proc
// and that of several, and where members compare what they call.
func TestBadCalls(t *testing.T) {
	k := kit(t)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "badcalls.c"), filepath.Join(dir, "badcalls")
	if err := os.WriteFile(source, []byte(badCalls(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Compile(context.Background(), program, source, "-I"+here, "-O0", "-Wno-deprecated-declarations"); err != nil {
		t.Fatal(err)
	}
	words := []string{k.Command("impiexec"), "-n", "2", program}
	succeed(t, words, "badcalls")
	if soak.Enabled() { // make test has it with IMPI_CHECK
		succeed(t, append(words, "world"), "badcalls")
	}
	succeed(t, append(words, "world"), "badcalls", "IMPI_CHECK=1")
	// Before MPI_Init errors are fatal: each function has a process.
	t.Run("before", func(t *testing.T) { before(t, program) })
}
