package ctest

import (
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestAlone: the C code by which procs use the MPI of their site, compiled without Go, waits as
// long as it should, leaves to Go what only Go can do, and ends what it has begun.
func TestAlone(t *testing.T) {
	skips.Programs(t, "cc")
	const library = "../../cmd/libmpi"
	program := filepath.Join(t.TempDir(), "waits")
	args := []string{"-std=gnu11", "-O1", "-Wall", "-Itestdata/alone", "-I" + library, "-I../../include", "-o", program, "testdata/alone/waits.c"}
	for _, file := range []string{"fastboard.c", "faststart.c", "fastwindow.c", "loops.c", "copies.c", "ahead.c", "direct.c", "measure.c"} {
		args = append(args, filepath.Join(library, file))
	}
	if out, err := Run(t.Context(), "", nil, "cc", append(args, "-lpthread")...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := Run(t.Context(), "", nil, program); err != nil || out != "OK\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
