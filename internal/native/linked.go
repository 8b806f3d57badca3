package native

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// others are the libraries of other MPIs, by their names: of MPICH and its kin, Open MPI, Intel,
// Cray for each of its compilers, IBM, HPE.
var others = regexp.MustCompile(`^libmpi(ch|_[a-z]\w*)?\.so`)

// notAlone are libraries with such names that have no functions of MPI in C: ours, which is for the
// standard ABI, and those for Fortran of Open MPI, which are there together with its libmpi.so.
var notAlone = regexp.MustCompile(`^libmpi_(abi|mpifh|usempi\w*)\.so`)

// Alone returns an error if the process has another MPI library, which the program or a library of
// it was linked to: that one's handles would get into our functions, or ours into its. It is to be
// called before a site's MPI is loaded.
func Alone() error {
	maps, _ := os.ReadFile("/proc/self/maps") // where there is none, nothing is found out
	if other := linked(string(maps)); other != "" {
		return fmt.Errorf("%w: the program is linked to %s: compile it, and the libraries that it uses, with impicc (or impicxx, impifort) alone", ErrLinked, other)
	}
	return nil
}

// linked finds another MPI library in the text of a process's maps.
func linked(maps string) string {
	for l := range strings.Lines(maps) {
		at := strings.IndexByte(l, '/')
		if at < 0 {
			continue
		}
		path := strings.TrimSpace(l[at:])
		if name := filepath.Base(path); others.MatchString(name) && !notAlone.MatchString(name) {
			return path
		}
	}
	return ""
}

// isOpenMPI reports whether an MPI's description of itself is one of Open MPI.
func isOpenMPI(text string) bool { return strings.HasPrefix(text, "Open MPI") }
