package doctor

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/native"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/version"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/proto"
)

// installed is a folder like that of make install, with parts of the right version.
func installed(t *testing.T) (m *machine, root string) {
	t.Helper()
	root = t.TempDir()
	m = fit(t)
	m.folder, m.says = filepath.Join(root, "bin"), says
	for _, name := range programs {
		prints(t, m, name, name+" "+version.String())
	}
	prints(t, m, "impi-transport-tcp", fmt.Sprintf(`impi-transport-tcp 1 (transport "tcp" of openimpi, protocol %d, impi-go-sdk/%s)`, proto.Version, sdk.Version))
	prints(t, m, "impi-transport-own", `impi-transport-own 7 (transport "own" of somebody, protocol 1, impi-c-sdk/3)`)
	saves(t, filepath.Join(root, "lib", library), libraryWith(t, version.Release))
	return m, root
}

func saves(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

func prints(t *testing.T, m *machine, name, line string) {
	t.Helper()
	saves(t, filepath.Join(m.folder, name), []byte("#!/bin/sh\n[ \"$1\" = -version ] && echo '"+line+"'\n"))
}

// libraryWith is a file of Go's linker that says its release.
func libraryWith(t *testing.T, release string) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(b, "impi %ssubversion", release)
}

// shimWith compiles what a shim has at least, with a version of its functions.
func shimWith(t *testing.T, path string, abi uint32) {
	t.Helper()
	skips.Programs(t, "cc")
	source := filepath.Join(t.TempDir(), "shim.c")
	saves(t, source, fmt.Appendf(nil, "static int f(void) { return 0; }\nconst struct { unsigned abi, size; int (*f)(void); } impi_native = {%d, 16, f};\n", abi))
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestVersions: the doctor compares what is installed together, and says of each part of another
// version which it is and what to do.
func TestVersions(t *testing.T) {
	m, root := installed(t)
	shimWith(t, filepath.Join(root, "lib", "shim-good.so"), native.ABI())
	list := m.checks(leastProcs)
	if c := list[0]; c.State != OK || !strings.Contains(c.Found, "; 9 programs and libraries") || list[1].Name == software { // 5 programs, 2 plugins, library, shim
		t.Errorf("%+v", list[:2])
	}
	for name, c := range map[string]struct {
		spoil func(m *machine, root string)
		want  State
		found string
		do    string
	}{
		"another server": {func(m *machine, _ string) { prints(t, m, "impi-server", "impi-server 0.0.9 (commit abc)") }, Warn, `bin/impi-server: it is "0.0.9 (commit abc)", and this is ` + version.Release, "make install"},
		"a broken program": {func(m *machine, _ string) {
			saves(t, filepath.Join(m.folder, "impiexec"), []byte("#!/bin/sh\nexit 3\n"))
		}, Warn, "impiexec: it does not say its version: exit status 3", "make install"},
		"another plugin": {func(m *machine, _ string) {
			prints(t, m, "impi-transport-tcp", `impi-transport-tcp 1 (transport "tcp" of openimpi, protocol 1, impi-go-sdk/0.9.0)`)
		}, Warn, "impi-transport-tcp: it speaks version 1 of the plugins' protocol, by SDK 0.9.0", "make install"},
		"another library": {func(_ *machine, root string) {
			saves(t, filepath.Join(root, "lib", library), libraryWith(t, "0.0.9"))
		}, Fail, library + ": it is of release 0.0.9, and this is " + version.Release, "make install"},
		"another MPI's library": {func(m *machine, root string) {
			m.libraryPath = "/nowhere:" + filepath.Join(root, "mpich")
			saves(t, filepath.Join(root, "mpich", library), []byte("\x7fELF"))
		}, Warn, filepath.Join("mpich", library) + ": it is no library of impi", "LD_LIBRARY_PATH"},
		"another shim":   {func(_ *machine, root string) { shimWith(t, filepath.Join(root, "lib", "shim-old.so"), native.ABI()-1) }, Fail, fmt.Sprintf("shim-old.so: it has version %d", native.ABI()-1), "impi-node native build -o " + "ROOT/lib/shim-old.so"},
		"no shim at all": {func(m *machine, _ string) { saves(t, filepath.Join(m.folder, "shim.so"), []byte("text")) }, Fail, "shim.so: it is no shim", "native build"},
	} {
		t.Run(name, func(t *testing.T) {
			m, root := installed(t)
			c.spoil(m, root)
			var wrong []Check
			for _, x := range m.checks(leastProcs) {
				if x.State != OK {
					wrong = append(wrong, x)
				}
			}
			do := strings.ReplaceAll(c.do, "ROOT", root)
			if len(wrong) != 1 || wrong[0].Name != software || wrong[0].State != c.want || !strings.Contains(wrong[0].Found, c.found) || !strings.Contains(wrong[0].Remedy, do) {
				t.Errorf("%+v, want %q and %q", wrong, c.found, do)
			}
		})
	}
}

// TestVersionsOfAJob: a shim that a job file names for this machine is compared, and that of another
// one is not.
func TestVersionsOfAJob(t *testing.T) {
	m, root := installed(t)
	old := filepath.Join(root, "old.so")
	shimWith(t, old, native.ABI()+1)
	for address, want := range map[string]State{"10.0.0.1": Fail, "10.0.0.2": OK} {
		job := &config.Job{Complete: true, Sites: []config.Site{{
			Name: "alpha", Native: &config.Native{Shim: old}, Hosts: []config.Host{{Address: netip.MustParseAddr(address), Procs: 1}},
		}}}
		j := Job{
			Load:  func(string) (*config.Job, config.Diagnostics) { return job, nil },
			Local: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") },
		}
		var out, errs strings.Builder
		m.command(func() (Job, error) { return j, nil }).Execute([]string{"-json", "job.hcl"}, &out, &errs)
		var list []Check
		if err := json.Unmarshal([]byte(out.String()), &list); err != nil {
			t.Fatalf("%v: %s%s", err, &out, &errs)
		}
		state := OK
		for _, c := range list {
			if c.Name == software && strings.Contains(c.Found, old) {
				state = c.State
			}
		}
		if state != want {
			t.Errorf("%s: %v\n%s", address, state, &out)
		}
	}
}
