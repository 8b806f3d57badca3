package abi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Function is a function of the C header.
type Function struct {
	Name   string // MPI_Send
	Result string // int, mostly
	Params string // all parameters, as in the header
	Args   []Arg

	Derived bool // from others: not declared in mpi.h itself
}

// Arg is an argument of a function.
type Arg struct {
	Name string
	Type string // as in C, without the name: "const int *", "MPI_Comm"
}

// Shape is the type in Go of an argument or a result.
type Shape int

// The shapes.
const (
	Word  Shape = iota // a pointer or a handle: uintptr
	Int                // int and the enums: int32
	Count              // MPI_Count, MPI_Aint, MPI_Offset: int64
	Float              // double
)

// pattern is a regular expression that is compiled when it is used first: impi-node is started
// often, and makes no use of most.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var prototype = pattern(`^(int|double|MPI_Aint|[A-Za-z_]+ \*?)\s*(P?MPIX?_\w+)\((.*)\)(?: [A-Z_]+\(.*\))?;`)

// ParseHeader returns the functions that the text of mpi.h declares, MPI_ ones only,
// in its order. Each prototype is on one line.
func ParseHeader(text string) ([]Function, error) { return parseHeader(text, "mpi.h", "MPI_") }

// parseHeader is ParseHeader for a header with such a name, and functions whose names begin so.
func parseHeader(text, file, begins string) ([]Function, error) {
	var fns []Function
	seen := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		m := prototype().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.HasPrefix(line, "typedef") || !strings.HasPrefix(m[2], begins) {
			continue
		}
		f := Function{Name: m[2], Result: strings.TrimSpace(m[1]), Params: m[3]}
		if seen[f.Name] {
			return nil, fmt.Errorf("%s:%d: %s is declared twice", file, n+1, f.Name)
		}
		seen[f.Name] = true
		var err error
		if f.Args, err = parseArgs(m[3]); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", file, n+1, f.Name, err)
		}
		fns = append(fns, f)
	}
	return fns, nil
}

var argument = pattern(`^(.*?)(\w+)((?:\[\w*\])*)$`)

func parseArgs(text string) ([]Arg, error) {
	if text = strings.TrimSpace(text); text == "void" || text == "" {
		return nil, nil
	}
	var args []Arg
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "..." {
			continue // of MPI_Pcontrol, which is written in C
		}
		m := argument().FindStringSubmatch(part)
		if m == nil || strings.TrimSpace(m[1]) == "" {
			return nil, fmt.Errorf("argument %q has no name", part)
		}
		a := Arg{Name: m[2], Type: strings.TrimSpace(m[1])}
		if m[3] != "" {
			a.Type += " *" // an array is a pointer
		}
		args = append(args, a)
	}
	return args, nil
}

var integers = []string{"int", "MPI_T_cb_safety", "MPI_T_source_order", "enum MPI_T_cb_safety", "enum MPI_T_source_order"}

// Shape returns the argument's shape.
func (a Arg) Shape() Shape { return shapeOf(a.Type) }

func shapeOf(c string) Shape {
	c = strings.TrimPrefix(c, "const ")
	switch {
	case strings.Contains(c, "*"):
		return Word
	case slices.Contains(integers, c):
		return Int
	case c == "MPI_Count" || c == "MPI_Aint" || c == "MPI_Offset":
		return Count
	case c == "double":
		return Float
	}
	return Word
}

// Handle reports whether the argument is a handle of an object that has an error handler, and
// returns the object's type: "Comm", "Win", "File" or "Session".
func (a Arg) Handle() (sort string, ok bool) {
	sort, ok = strings.CutPrefix(a.Type, "MPI_")
	return sort, ok && slices.Contains([]string{"Comm", "Win", "File", "Session"}, sort)
}

// Entry returns the name of the Go function that implements a function of C: abiCommRank for
// MPI_Comm_rank.
func Entry(name string) string {
	var b strings.Builder
	b.WriteString("abi")
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "MPI_"), "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// Pair is a function with its variant for large counts, or one of them alone.
type Pair struct {
	Small Function
	Large *Function // with the same arguments except for their widths
}

// Pairs joins functions with their _c variants that have the same number of arguments.
func Pairs(fns []Function) []Pair {
	byName := make(map[string]*Function, len(fns))
	for i := range fns {
		byName[fns[i].Name] = &fns[i]
	}
	var pairs []Pair
	for _, f := range fns {
		if small := byName[strings.TrimSuffix(f.Name, "_c")]; strings.HasSuffix(f.Name, "_c") && small != nil && len(small.Args) == len(f.Args) {
			continue
		}
		p := Pair{Small: f}
		if large := byName[f.Name+"_c"]; large != nil && len(large.Args) == len(f.Args) {
			p.Large = large
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// Shapes returns the shapes of the arguments of the Go function that implements both functions: the
// wider shape of each argument. which reports whether a last int32 is the number of the function
// that was called.
func (p Pair) Shapes() (shapes []Shape, which bool) {
	for i, a := range p.Small.Args {
		s := a.Shape()
		if p.Large != nil {
			s = max(s, p.Large.Args[i].Shape())
		}
		shapes = append(shapes, s)
	}
	return shapes, p.Large != nil
}
