package trial

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// TestMain: the launcher starts this program as impi-node.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "native" {
		os.Exit(Run(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func run(args ...string) (status int, out, complaints string) {
	var o, c bytes.Buffer
	status = Run(args, &o, &c)
	return status, o.String(), c.String()
}

func TestWrongCommands(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"biuld", usage, `there is no "biuld"; there are build and test`},
		{"build x", usage, `it takes flags only, not "x"`},
		{"test -o x", usage, "flag provided but not defined: -o"},
		{"rank", bad, "it needs the shim"},
		{"build -cc impi-there-is-none", bad, "no mpicc of the site's MPI"},
		{"rank /nowhere/shim.so", bad, "/nowhere/shim.so"},
	} {
		if status, out, complaints := run(strings.Fields(c.args)...); status != c.status || out != "" || !strings.Contains(complaints, c.says) {
			t.Errorf("%s: status %d, %q, %q", c.args, status, out, complaints)
		}
	}
	for _, args := range [][]string{nil, {"-h"}, {"build", "--help"}} {
		if status, out, complaints := run(args...); status != ok || out != Help || complaints != "" {
			t.Errorf("%q: status %d, %q", args, status, complaints)
		}
	}
}

// TestHere builds and tries the shims for the MPIs of this machine.
func TestHere(t *testing.T) {
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	for _, v := range []struct{ name, cc, launch string }{
		{"Open MPI", "mpicc.openmpi", "mpirun --oversubscribe -n 2"}, {"MPICH", "mpicc.mpich", ""},
	} {
		t.Run(v.name, func(t *testing.T) {
			if _, err := exec.LookPath(v.cc); err != nil {
				skips.NotRun(t, "there is no "+v.cc, "apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich")
			}
			file := filepath.Join(t.TempDir(), "shim.so")
			status, out, complaints := run("build", "-cc", v.cc, "-o", file)
			if status != ok || !strings.HasPrefix(out, v.name+" ") || !strings.HasSuffix(out, "\n"+file+"\n") {
				t.Errorf("status %d, %q, %q", status, out, complaints)
			}
			if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o755 {
				t.Errorf("%v, %v", about, err)
			}
			if status, out, complaints = run("test", "-cc", v.cc, "-launch", v.launch); status != ok || !strings.Contains(out, "2 processes") {
				t.Errorf("status %d, %q, %q", status, out, complaints)
			}
			if status, _, complaints = run("test", "-cc", v.cc, "-launch", "mpirun -n 1"); status != bad || !strings.Contains(complaints, "mpirun") || !strings.Contains(complaints, "exit status") {
				t.Errorf("with one process: status %d, %q", status, complaints)
			}
		})
	}
}
