package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/sim/mutant"
)

// module is one in which impi-sim says and does what its core says.
var module = map[string]string{
	"go.mod": "module example.org/m\n\ngo 1.26\n",
	"cmd/impi-sim/main.go": `package main

import (
	"fmt"
	"os"

	"example.org/m/core"
)

func main() {
	out, status := core.Do(7)
	fmt.Println(out)
	os.Exit(status)
}
`,
	"core/core.go": `package core

func Do(n int) (string, int) {
	seeds := "400"
	return "{\"seeds\": " + seeds + ", \"failed\": []}", n - 7
}
`,
}

// fault is one of the module's.
func fault(name, body string) mutant.Mutant {
	return mutant.Mutant{Name: name, What: "Do", File: "core/core.go", Old: "\tseeds := \"400\"\n", New: "\tseeds := \"400\"\n" + body}
}

func newTool(t *testing.T, faults ...mutant.Mutant) *tool {
	t.Helper()
	root := t.TempDir()
	for name, text := range module {
		write(t, filepath.Join(root, name), text)
	}
	return &tool{
		first: 1000, seeds: 400, limit: time.Minute, hang: time.Minute, workers: 2,
		report: io.Discard, root: root, dir: t.TempDir(), faults: faults,
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestTool(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	found := `{"seeds": 13, "failed": [{"seed": 1012, "oracle": "result", "text": "rank 0: other\nand more"}]}`
	tool := newTool(t,
		fault("survives", "\tseeds = \"3\" + seeds[1:]\n"),
		fault("found", "\tif n > 0 {\n\t\treturn `"+found+"`, n - 6\n\t}\n"),
		fault("dies", "\tif n > 0 {\n\t\tpanic(\"too bad\")\n\t}\n"),
		fault("hidden", "\tpanic(\"not tried\")\n"),
	)
	if err := tool.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tool.baseline(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []result{
		{Name: "survives", Seeds: 300},
		{Name: "found", Caught: true, By: "result", Seeds: 13, Text: "rank 0: other"},
		{Name: "dies", Caught: true, By: "crash", Text: "panic: too bad"},
	}
	got := tool.all(t.Context(), regexp.MustCompile("[^n]$"))
	if len(got) != len(want) {
		t.Fatalf("%d results: %+v", len(got), got)
	}
	for i, r := range got {
		want[i].File, want[i].What, want[i].Seconds = "core/core.go", "Do", r.Seconds
		if r != want[i] {
			t.Errorf("got %+v, want %+v", r, want[i])
		}
	}
	if b, err := os.ReadFile(filepath.Join(tool.root, "core/core.go")); err != nil || string(b) != module["core/core.go"] {
		t.Errorf("the source is %q now, %v", b, err)
	}
}

// What does not build is called by the fault's name.
func TestNotGo(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	tool := newTool(t, fault("wrong-type", "\tseeds = 4\n"))
	if err := tool.build(t.Context()); err == nil || !strings.Contains(err.Error(), "wrong-type:3") {
		t.Errorf("got %v", err)
	}
}

// A program that is not over in time is stopped, and counts as one that hangs.
func TestHang(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	tool := newTool(t, fault("hang", "\tfor n > 0 {\n\t}\n"))
	tool.limit, tool.hang = time.Millisecond, time.Millisecond
	if err := tool.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := tool.sweep(t.Context(), 1); !r.Caught || r.By != "hang" || r.Seeds != 0 {
		t.Errorf("got %+v", r)
	}
}

// Where seeds fail without a fault nothing can be proved.
func TestBaselineFails(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	tool := newTool(t)
	bad := strings.Replace(module["cmd/impi-sim/main.go"], "out, status := core.Do(7)",
		"_, status := core.Do(8)\n\tout := `{\"failed\": [{\"seed\": 7, \"oracle\": \"order\"}]}`", 1)
	write(t, filepath.Join(tool.root, "cmd/impi-sim/main.go"), bad)
	if err := tool.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tool.baseline(t.Context()); err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("got %v", err)
	}
	write(t, filepath.Join(tool.root, "cmd/impi-sim/main.go"), "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(2) }\n")
	if err := tool.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tool.baseline(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("got %v", err)
	}
}
