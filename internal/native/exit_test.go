//go:build cgo && linux

package native

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestExitHandlers ends MPICH in a process that ends as one in Go does, without the handlers of C's
// exit: Finalize has run MPICH's, by which its newer versions tell their launcher that all is well.
func TestExitHandlers(t *testing.T) {
	for _, tool := range []string{"cc", "mpicc.mpich", "mpiexec.hydra"} {
		if _, err := exec.LookPath(tool); err != nil {
			skips.NotRun(t, "there is no "+tool, "apt-get install gcc libmpich-dev mpich")
		}
	}
	shim, _, err := Build(t.Context(), "mpicc.mpich", nil)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "exit")
	if out, err := exec.CommandContext(t.Context(), "cc", "-std=gnu11", "-Wall", "-I.", "-o", program, "testdata/exit.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "mpiexec.hydra", "-n", "1", program, shim).CombinedOutput()
	if want := "the handlers have run\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}
