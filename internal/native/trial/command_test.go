package trial

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/skips"
)

// TestMain: the launcher starts this program as impi-node.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "native" {
		os.Exit(Command().Execute(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func run(args ...string) (status int, out, complaints string) {
	var o, c bytes.Buffer
	status = Command().Execute(args, &o, &c)
	return status, o.String(), c.String()
}

func TestWrongCommands(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"biuld", cmdline.StatusUsage, `no command "biuld"; did you mean "build"? (known here: build, test)`},
		{"build x", cmdline.StatusUsage, `"x": this command takes only flags`},
		{"test -o x", cmdline.StatusUsage, "flag provided but not defined: -o"},
		{"rank", bad, "it needs the shim"},
		{"build -cc impi-there-is-none", bad, "no mpicc of the site's MPI"},
		{"rank /nowhere/shim.so", bad, "/nowhere/shim.so"},
	} {
		if status, out, complaints := run(strings.Fields(c.args)...); status != c.status || out != "" || !strings.Contains(complaints, c.says) {
			t.Errorf("%s: status %d, %q, %q", c.args, status, out, complaints)
		}
	}
	for _, args := range [][]string{nil, {"-h"}, {"build", "--help"}} {
		if status, out, complaints := run(args...); status != 0 || out != Help || complaints != "" {
			t.Errorf("%q: status %d, %q", args, status, complaints)
		}
	}
}

// TestHere builds and tries the shims for the MPIs of this machine.
func TestHere(t *testing.T) {
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	const figures = `
 +by impi +alone +ratio
 +8 bytes, half a round trip +[\d.]+[nµm]s +[\d.]+[nµm]s +\d+\.\d\d
 +1 MiB messages, one way +\d+\.\d\d GB/s +\d+\.\d\d GB/s +\d+\.\d\d
$`
	for _, v := range []struct{ name, cc, launch, says string }{
		{"Open MPI", "mpicc.openmpi", "mpirun --oversubscribe -n 2", `(?s)^Open MPI v.*2 processes; any thread may call it\nfabric: pml .*btl .*` + figures},
		{"MPICH", "mpicc.mpich", "", `(?s)^MPICH Version.*2 processes; any thread may call it\nfabric: ch\d:\w+` + figures},
	} {
		t.Run(v.name, func(t *testing.T) {
			if _, err := exec.LookPath(v.cc); err != nil {
				skips.NotRun(t, "there is no "+v.cc, "apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich")
			}
			file := filepath.Join(t.TempDir(), "shim.so")
			status, out, complaints := run("build", "-cc", v.cc, "-o", file)
			if status != 0 || !strings.HasPrefix(out, v.name+" ") || !strings.HasSuffix(out, "\n"+file+"\n") {
				t.Errorf("status %d, %q, %q", status, out, complaints)
			}
			if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o755 {
				t.Errorf("%v, %v", about, err)
			}
			status, out, complaints = run("test", "-cc", v.cc, "-launch", v.launch)
			if want := regexp.MustCompile(v.says); status != 0 || !want.MatchString(out) {
				t.Errorf("status %d, want %s, has %s%s", status, want, out, complaints)
			}
			status, out, complaints = run("test", "-cc", v.cc, "-launch", v.launch, "-json")
			var r report
			if err := json.Unmarshal([]byte(out), &r); status != 0 || err != nil {
				t.Fatalf("status %d, %v, %s%s", status, err, out, complaints)
			}
			if r.Schema != schema || r.Vendor != v.name || r.Processes != 2 || r.Fabric == "" || r.Problem != "" ||
				r.HalfRoundTrip <= 0 || r.Stream <= 0 || r.Alone == nil || r.Alone.HalfRoundTrip <= 0 || r.Alone.Stream <= 0 {
				t.Errorf("%s", out)
			}
			if status, _, complaints = run("test", "-cc", v.cc, "-launch", "mpirun -n 1"); status != bad || !strings.Contains(complaints, "mpirun") || !strings.Contains(complaints, "exit status") {
				t.Errorf("with one process: status %d, %q", status, complaints)
			}
		})
	}
}
