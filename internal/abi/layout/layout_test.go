//go:build !386 && !arm

package layout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"unsafe"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/link"
)

const root = "../../.."

// TestUpToDate: the headers are those of the Go types as they are now.
func TestUpToDate(t *testing.T) {
	files, err := Generate(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		old, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(old) != text {
			t.Errorf("%s is out of date: go generate ./internal/abi", name)
		}
	}
}

// TestC: a compiler finds each struct of the headers where Go has it, and refuses headers in which
// two fields of one size have changed places, or one is missing.
func TestC(t *testing.T) {
	skips.Programs(t, "cc")
	files, err := Generate(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		if out, err := compile(t, files[h.file]); err != nil {
			t.Errorf("%s: %v\n%s", h.file, err, out)
		}
	}
	const rank, tag = "\tint32_t rank; // of the sender in the communicator\n", "\tint32_t tag;\n"
	text := files["cmd/libmpi/fastpath_layout.h"]
	for what, wrong := range map[string]string{
		"swapped": strings.Replace(text, rank+tag, tag+rank, 1),
		"missing": strings.Replace(text, "\tuint32_t fences;", "\t//", 1),
	} {
		if wrong == text {
			t.Fatalf("%s: nothing was changed", what)
		}
		if out, err := compile(t, wrong); err == nil || !strings.Contains(out, "go generate ./internal/abi") {
			t.Errorf("fields are %s: %v\n%s", what, err, out)
		}
	}
}

func compile(t *testing.T, text string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layout.c")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "cc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", file).CombinedOutput()
	return string(out), err
}

// TestCheck: the Go file has what another package can name.
func TestCheck(t *testing.T) {
	files, err := Generate(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	got := files["cmd/libmpi/fastpath_layout.go"]
	for _, want := range []string{
		fmt.Sprintf("\t_ = -uint(board.AreaSize ^ %d)\n", board.AreaSize),
		fmt.Sprintf("\t_ = -(unsafe.Offsetof(fastpath.Comm{}.Team) ^ %d)\n", unsafe.Offsetof(fastpath.Comm{}.Team)),
		fmt.Sprintf("\t_ = -(unsafe.Offsetof(link.FastBoxes{}.Owed) ^ %d)\n", unsafe.Offsetof(link.FastBoxes{}.Owed)),
		fmt.Sprintf("\t_ = -(unsafe.Sizeof(board.State{}) ^ %d)\n", unsafe.Sizeof(board.State{})),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s", want)
		}
	}
}

// Small types that C could share, if their source were that of sample.
type (
	inner struct{ A, B uint32 }
	part  struct{ InPart uint64 }
	outer struct {
		part
		Word    atomic.Uint32
		_       uint32
		Told    *atomic.Uint64
		Many    [some][3]inner
		Flat    inner
		Memory  [5]byte
		TagUB   int8
		Call    unsafe.Pointer
		Next    *inner
		History *[4]inner
	}
)

const some = 2

const sample = `package layout

// outer is all of it.
type outer struct {
	part
	Word atomic.Uint32 // beside
	_ uint32

	// Above.
	Told *atomic.Uint64
	Many [some][3]inner
	Flat inner
	Memory [5]byte
	TagUB int8
	Call unsafe.Pointer
	Next *inner
	History *[4]inner
}

// inner is in it.
type inner struct {
	A, B uint32 // both
}

type part struct {
	InPart uint64
}

// Numbers.
const (
	some = 2
	large = 1 << 31 // too large
)
`

func text(t *testing.T, source string, h header) (string, error) {
	t.Helper()
	text, _, err := h.text(newSource(fstest.MapFS{"internal/abi/layout/x.go": {Data: []byte(source)}}))
	return text, err
}

var example = header{
	guard: "X", about: "About.",
	enums:        []enum{{"internal/abi/layout", []constant{{"SOME", "some", some}, {"BIG", "large", 1 << 31}}}},
	structs:      []structure{{"within", reflect.TypeFor[inner]()}, {"all", reflect.TypeFor[outer]()}},
	declarations: map[string]string{"outer.Call": "int (*%s)(void)"},
}

func TestText(t *testing.T) {
	got, err := text(t, sample, example)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\t// Numbers.\n\tSOME = 2,\n};\n#define BIG 2147483648u // large: too large\n",
		"// inner is in it.\nstruct within {\n\tuint32_t a;\n\tuint32_t b; // both\n};\n",
		"// outer is all of it.\nstruct all {\n\tuint64_t in_part;\n\t_Atomic uint32_t word; // beside\n\tuint32_t unused;\n\n\t// Above.\n\t_Atomic uint64_t *told;\n" +
			"\tstruct within many[SOME][3];\n\tstruct within flat;\n\tchar memory[5];\n\tint8_t tag_ub;\n\tint (*call)(void);\n\tstruct within *next;\n\tstruct within *history;\n};\n",
		"IMPI_SIZE(within, 8);\nIMPI_AT(within, a, 0);\nIMPI_AT(within, b, 4);\n",
		"IMPI_AT(all, in_part, 0);\nIMPI_AT(all, word, 8);\nIMPI_AT(all, unused, 12);\nIMPI_AT(all, told, 16);\nIMPI_AT(all, many, 24);\nIMPI_AT(all, flat, 72);\nIMPI_AT(all, memory, 80);\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no\n%s\nin\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(strings.TrimSpace(line), "//") && len(line) > width+1 {
			t.Errorf("a comment is wider than %d columns: %s", width, line)
		}
	}
}

func TestRefused(t *testing.T) {
	type odd struct{ Text string }
	for what, x := range map[string]struct {
		source string
		h      header
		want   string
	}{
		"a struct that C does not have": {sample, header{structs: example.structs[1:]}, "C has no struct for layout.inner"},
		"a type that C does not have":   {sample + "type odd struct { Text string }\n", header{structs: []structure{{"odd", reflect.TypeFor[odd]()}}}, "C has no type for string"},
		"another order in the source":   {strings.Replace(sample, "A, B", "B, A", 1), example, "field 0 is B in the source, and A in the type"},
		"a field less in the source":    {strings.Replace(sample, "A, B", "A", 1), example, "the source has 1 fields"},
		"no such constant":              {strings.ReplaceAll(sample, "large", "huge"), example, "internal/abi/layout has no constant large"},
		"no such type":                  {strings.Replace(sample, "type inner struct", "type another struct", 1), example, "internal/abi/layout has no struct inner"},
	} {
		if _, err := text(t, x.source, x.h); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", what, err, x.want)
		}
	}
}
