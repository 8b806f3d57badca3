// Package calls finds the calls of MPI in which a process's goroutines wait.
package calls

import (
	"path"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// Call is a call of MPI that waits.
type Call struct {
	Name string // as in the program: mpi.Recv in Go, MPI_Recv in C
	At   string // file and line of a Go program; empty: it is in C
}

// maxTraces bounds the traces of all goroutines, in bytes. What does not fit is not looked at.
const maxTraces = 1 << 20

// mostGoroutines is how many goroutines a program may have for their traces to be taken: those of
// so many take about a millisecond, during which all are stopped.
const mostGoroutines = 128

// Waiting returns the calls that wait. All goroutines stop meanwhile. It returns nil for a program
// that has too many goroutines to look at them quickly.
func Waiting() []Call {
	if runtime.NumGoroutine() > mostGoroutines {
		return nil
	}
	b := make([]byte, 64<<10)
	for {
		n := runtime.Stack(b, true)
		if n < len(b) || len(b) >= maxTraces {
			return parse(string(b[:n]))
		}
		b = make([]byte, 2*len(b))
	}
}

const module = "github.com/openimpi/impi/"

// parse finds the calls in traces as runtime.Stack writes them.
func parse(traces string) (list []Call) {
	for trace := range strings.SplitSeq(traces, "\n\n") {
		if c, ok := waiting(trace); ok {
			list = append(list, c)
		}
	}
	return list
}

// waiting returns the call in which a goroutine waits for others: of the functions of this library
// on its stack, the one that the program has called.
func waiting(trace string) (c Call, ok bool) {
	lines := strings.Split(trace, "\n")
	waits := false
	for i := 1; i+1 < len(lines); i += 2 { // a function, and its file and line
		name, _, _ := strings.Cut(lines[i], "(0x")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "()"), "(...)")
		name, _, _ = strings.Cut(strings.TrimSuffix(name, "({...})"), "[...]")
		switch rest, own := strings.CutPrefix(name, module); {
		case own && (strings.HasPrefix(rest, "internal/engine/proc.(*Process).doze") || strings.HasPrefix(rest, "internal/engine/proc.(*Process).watch")):
			waits = true
		case own && strings.HasPrefix(rest, "core/mpi."):
			c.Name = goName(rest)
			if i+3 < len(lines) {
				c.At = place(lines[i+3])
			}
		case strings.HasPrefix(name, "main.") && strings.Contains(lines[i+1], "/cmd/libmpi/"): // the C library
			if s, ok := strings.CutPrefix(name, "main.abi"); ok {
				return Call{Name: cName("MPI_", s)}, waits
			}
			if s, ok := strings.CutPrefix(name, "main.ext"); ok { // of mpi-ext.h
				return Call{Name: cName("MPIX_", s)}, waits
			}
		case own && (strings.HasPrefix(rest, "internal/") || strings.HasPrefix(rest, "core/")):
		case isRuntime(name):
		default: // the program
			return c, waits && c.Name != ""
		}
	}
	return c, waits && c.Name != ""
}

// isRuntime reports whether a function is one in which this library sleeps.
func isRuntime(name string) bool {
	prefixes := []string{"runtime.", "sync.", "syscall.", "internal/", "golang.org/x/sys/"}
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// goName turns core/mpi.(*Comm).Barrier into mpi.Comm.Barrier.
func goName(s string) string {
	s = strings.NewReplacer("(*", "", ")", "").Replace(path.Base(s))
	s, _, _ = strings.Cut(s, "(")
	s, _, _ = strings.Cut(s, ".func") // a function within it
	return s
}

// cName turns MPI_ and WinCreate into MPI_Win_create.
func cName(prefix, s string) string {
	s, _, _ = strings.Cut(s, "(")
	s, _, _ = strings.Cut(s, ".") // a function within it
	var b strings.Builder
	b.WriteString(prefix)
	for i, r := range s {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// place returns file and line of the second line of a function in a trace.
func place(line string) string {
	at, _, _ := strings.Cut(strings.TrimSpace(line), " +0x")
	return at
}
