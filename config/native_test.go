package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nativeFile is a file with a native site a and another one.
func nativeFile(native, routes string) string {
	return `
job {
  embedded_server {}
  auth "none" {}
}
program { command = ["./bin/prog"] }
site "a" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
  native { ` + native + ` }
  ` + routes + `
}
site "b" {
  client = 1
  host { address = "127.0.0.3"  procs = 1 }
}
`
}

func TestNative(t *testing.T) {
	j, found := loadText(t, nativeFile(`mpicc = "./bin/prog"  launch = ["srun", "-n", "{procs}", "-w{machinefile}"]`, ""))
	if len(found) > 0 {
		t.Fatal(found.Err())
	}
	n := mustSite(t, j, "a").Native
	if n == nil || !slices.Equal(n.Launch, []string{"srun", "-n", "{procs}", "-w{machinefile}"}) || n.Shim != "" || n.Compiler(j.Dir) != filepath.Join(j.Dir, "bin/prog") {
		t.Errorf("%+v", n)
	}
	if mustSite(t, j, "b").Native != nil {
		t.Error("b is native")
	}
	if j, found = loadText(t, nativeFile(`shim = "bin/prog"`, "")); len(found) > 0 {
		t.Fatal(found.Err())
	}
	if n := mustSite(t, j, "a").Native; n.Shim != filepath.Join(j.Dir, "bin/prog") || n.MPICC != "mpicc" || n.Launch != nil {
		t.Errorf("%+v", n)
	}
}

// TestNativeRoutes: the site's own MPI is first on the way from the site to itself unless a route
// of that way says more, and on no other.
func TestNativeRoutes(t *testing.T) {
	for routes, want := range map[string]struct {
		native bool
		at     int
		prefer string
	}{
		"":                               {true, 0, "unix tcp"},
		`route "*" { prefer = ["tcp"] }`: {true, 0, "tcp"},
		`route "b" { prefer = ["tcp"] }`: {true, 0, "unix tcp"},
		`route "a" { resume = true }`:    {true, 0, "unix tcp"},
		`route "a" { prefer = ["tcp"] }`: {false, 0, "tcp"},
		`route "a" { prefer = ["unix", "native", "tcp"] }`: {true, 1, "unix tcp"},
		`route "a" { prefer = ["tcp", "native"] }`:         {true, 1, "tcp"},
		`route "a" { prefer = ["native"] }`:                {true, 0, ""},
		`route "*" { require_tls = true }
  route "a" { require_tls = false }`: {true, 0, "unix tcp"},
	} {
		j, found := loadText(t, nativeFile(`shim = "bin/prog"`, routes))
		if len(found) > 0 {
			t.Errorf("%s: %v", routes, found.Err())
			continue
		}
		a := mustSite(t, j, "a")
		if r := a.RouteTo("a"); r.Native != want.native || r.NativeAt != want.at || strings.Join(r.Prefer, " ") != want.prefer {
			t.Errorf("%s: %+v", routes, r)
		}
		for _, other := range []string{"b", "*"} {
			if r := a.RouteTo(other); r.Native || slices.Contains(r.Prefer, NativeName) {
				t.Errorf("%s: to %s: %+v", routes, other, r)
			}
		}
		if r := mustSite(t, j, "b").RouteTo("b"); r.Native {
			t.Errorf("%s: of b: %+v", routes, r)
		}
	}
}

// TestNativeAfterMemory: by default, shared memory comes before the site's own MPI, and nothing
// else does.
func TestNativeAfterMemory(t *testing.T) {
	opt := testOptions()
	opt.Builtins = append([]Builtin{{Name: "shm", Machine: true, Memory: true}}, two...)
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for routes, want := range map[string]struct {
		at     int
		usual  bool
		prefer string
	}{
		"":                                                {1, true, "shm unix tcp"},
		`route "*" { prefer = ["tcp"] }`:                  {0, true, "tcp"},
		`route "*" { prefer = ["tcp", "shm"] }`:           {1, true, "shm tcp"},
		`route "a" { resume = true }`:                     {1, true, "shm unix tcp"},
		`route "a" { prefer = ["native"] }`:               {0, false, ""},
		`route "a" { prefer = ["native", "shm"] }`:        {0, false, "shm"},
		`route "a" { prefer = ["tcp", "native", "shm"] }`: {1, false, "tcp shm"},
	} {
		j, found := load(&faults{file: "testdata/job.hcl"}, []byte(nativeFile(`shim = "bin/prog"`, routes)), dir, opt)
		if len(found) > 0 {
			t.Errorf("%s: %v", routes, found.Err())
			continue
		}
		a := mustSite(t, j, "a")
		if r := a.RouteTo("a"); !r.Native || r.NativeAt != want.at || r.NativeUsual != want.usual || strings.Join(r.Prefer, " ") != want.prefer {
			t.Errorf("%s: %+v", routes, r)
		}
		if r := a.RouteTo("b"); routes == `route "*" { prefer = ["tcp", "shm"] }` && strings.Join(r.Prefer, " ") != "tcp shm" {
			t.Errorf("the route to others is changed: %+v", r)
		}
	}
}

func TestBeside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mpicc", "mpicc.x", "mpicc.y", "other", "mpirun", "mpirun.x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ mpicc, name, want string }{
		{"mpicc", "mpirun", "mpirun"},
		{"mpicc.x", "mpirun", "mpirun.x"},
		{"mpicc.y", "mpirun", "mpirun"},
		{"other", "mpirun", "mpirun"},
	} {
		n := Native{MPICC: "./" + c.mpicc}
		if got := n.Beside(dir, c.name); got != filepath.Join(dir, c.want) {
			t.Errorf("%s beside %s: %s", c.name, c.mpicc, got)
		}
	}
	n := Native{MPICC: "./mpicc"}
	for _, name := range []string{"srun", "./mpirun", "/usr/bin/mpirun"} {
		if got := n.Beside(dir, name); got != name {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := (&Native{MPICC: "./none"}).Beside(dir, "mpirun"); got != "mpirun" {
		t.Error(got)
	}
}
