package vendors

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/conformance"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

const root = "../.."

// built returns a plugin's file, or says what was not run.
func built(t *testing.T, g Plugin) string {
	t.Helper()
	path, err := g.Build(root)
	var missing *MissingError
	if errors.As(err, &missing) {
		skips.NotRun(t, missing.What, missing.Remedy)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The plugins of examples/plugins keep the whole contract on one of their planes, and that in C,
// whose library has its own, on all of them. impi-conform does the others.
func TestGuestsKeepTheContract(t *testing.T) {
	for _, g := range All {
		t.Run(g.Name, func(t *testing.T) {
			path := built(t, g)
			planes := []transports.DataPlane{transports.PlaneStream}
			if !slices.Contains(g.Planes, transports.PlaneStream) {
				planes = g.Planes[:1]
			}
			if slices.Contains(goGuests, g.Name) {
				soak.SkipUnlessSoak(t, "make test has jobs with all of them, and the contract of those that do not use the SDK")
			}
			if g.Name == "c" || g.Name == "pretend-c" {
				soak.SkipUnlessSoak(t, "TestCIsCertified has all of the contract on all of its planes")
				planes = g.Planes
			}
			s := conformance.Subject{Path: path, NoMTLS: g.NoMTLS}
			r, err := conformance.Run(t.Context(), s, conformance.Options{Quick: true, Planes: planes})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range r.Results {
				if x.Verdict == transporttest.Fail {
					t.Errorf("%s %s", x.Plane, x.Reason)
				}
			}
			if g.Others == "" || !slices.Equal(r.Site.Planes, g.Planes) {
				t.Errorf("%s offers %q, and %q is what is known of it", g.Name, r.Site.Planes, g.Planes)
			}
			if r.Site.Name != g.Name || r.Passed < 50 {
				t.Errorf("%s: only %d rules were tried", r.Site.Name, r.Passed)
			}
		})
	}
}

// goGuests are those of which each is a Go module.
var goGuests = []string{"websocket", "ofi"}

// A vendor's own tests pass, and its code is formatted and vetted like ours.
func TestGoGuest(t *testing.T) {
	for _, name := range goGuests {
		t.Run(name, func(t *testing.T) { goGuest(t, name) })
	}
}

func goGuest(t *testing.T, name string) {
	g, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	built(t, g)
	dir := filepath.Join(root, "examples", "plugins", g.Name)
	for _, args := range [][]string{{"go", "vet", "./..."}, {"go", "test", "./..."}, {"gofmt", "-l", "."}} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			skips.Program(t, args[0])
			if args[0] == "go" {
				soak.SkipUnlessSoak(t, "it is a module of its own, which is built with all that it needs")
			}
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off")
			out, err := cmd.CombinedOutput()
			if err != nil || args[0] == "gofmt" && len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	text, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if n := strings.Count(string(text), "\n"); err != nil || n > 30 {
		t.Errorf("%v: its main has %d lines", err, n)
	}
}

// What the Go examples use of ours is what vendors get.
func TestGoGuestUsesWhatVendorsGet(t *testing.T) {
	var files []string
	for _, name := range goGuests {
		list, err := filepath.Glob(filepath.Join(root, "examples", "plugins", name, "*.go"))
		if err != nil || len(list) == 0 {
			t.Fatalf("%v: %q", err, list)
		}
		files = append(files, list...)
	}
	allowed := []string{"plugins/sdk/link", "plugins/sdk", "plugins/sdk/transports", "plugins/sdk/transports/conn", "plugins/sdk/transports/identity", "plugins/sdk/transports/socket", "plugins/sdk/transports/transporttest"}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			path, ok := strings.CutPrefix(strings.Trim(line, "\t\"\n"), "github.com/openimpi/impi/")
			if ok && !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// The messages that the Python plugin carries are those of the protocol today.
func TestPythonMessagesAreUpToDate(t *testing.T) {
	path := skips.Program(t, "protoc")
	out := t.TempDir()
	if text, err := exec.Command(path, "-I"+root+"/plugins/sdk/proto", "--python_out="+out, "transport.proto").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want, err := os.ReadFile(filepath.Join(out, "transport_pb2.py"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root + "/examples/plugins/python/src/transport_pb2.py")
	if err != nil {
		t.Fatal(err)
	}
	if descriptor(got) != descriptor(want) {
		t.Error("transport_pb2.py is not made of plugins/sdk/proto/transport.proto: run make in examples/plugins/python")
	}
}

// descriptor is the part of a generated file that does not depend on protoc's version.
func descriptor(text []byte) string {
	_, rest, _ := strings.Cut(string(text), "AddSerializedFile(")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// A plugin that is built again is the same file, which nobody has touched: it may be
// running. What nobody asks for is removed after a time.
func TestBuiltOnce(t *testing.T) {
	for _, g := range All {
		first := built(t, g)
		before, err := os.Stat(first)
		if err != nil {
			t.Fatal(err)
		}
		second := built(t, g)
		after, err := os.Stat(second)
		if err != nil || first != second || !os.SameFile(before, after) {
			t.Errorf("%s: %s, then %s; %v", g.Name, first, second, err)
		}
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"young": time.Hour, "old": 2 * unused} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(dir, now.Add(-unused)); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "young" {
		t.Errorf("%v, %v", left, err)
	}
}

func TestFind(t *testing.T) {
	if _, err := Find("pigeon"); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Error(err)
	}
}
