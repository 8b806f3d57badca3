package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/mutant"
	"github.com/openimpi/impi/internal/skips"
)

// module is a module whose impi-sim behaves as its core says.
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

// fault is a fault of the module.
func fault(name, body string) mutant.Mutant {
	return mutant.Mutant{Name: name, What: "Do", File: "core/core.go", Old: "\tseeds := \"400\"\n", New: "\tseeds := \"400\"\n" + body}
}

// try tries faults of the module, and returns the exit status and the output.
func try(t *testing.T, s *sweeper, args ...string) (status int, out, report string) {
	t.Helper()
	var o, r bytes.Buffer
	status = s.command.Run(t.Context(), args, &o, &r)
	return status, o.String(), r.String()
}

// in returns a sweeper of faults in the module, some of whose files may be other ones.
func in(t *testing.T, others map[string]string, faults ...mutant.Mutant) *sweeper {
	t.Helper()
	s := newSweeper(faults)
	s.command.Bench.Root = t.TempDir()
	for name, text := range module {
		if other, has := others[name]; has {
			text = other
		}
		write(t, filepath.Join(s.command.Bench.Root, name), text)
	}
	return s
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

func TestSweep(t *testing.T) {
	skips.Short(t)
	found := `{"seeds": 13, "failed": [{"seed": 1012, "oracle": "result", "text": "rank 0: other\nand more"}]}`
	s := in(t, nil,
		fault("survives", "\tseeds = \"3\" + seeds[1:]\n"),
		fault("found", "\tif n > 0 {\n\t\treturn `"+found+"`, n - 6\n\t}\n"),
		fault("dies", "\tif n > 0 {\n\t\tpanic(\"too bad\")\n\t}\n"),
		fault("hidden", "\tpanic(\"not tried\")\n"),
	)
	status, out, report := try(t, s, "-first", "1000", "-seeds", "400", "-json", "-only", "[^n]$")
	want := []result{
		{Name: "survives", Seeds: 300},
		{Name: "found", Caught: true, By: "result", Seeds: 13, Text: "rank 0: other"},
		{Name: "dies", Caught: true, By: "crash", Text: "panic: too bad"},
	}
	var got summary
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != mutant.Survived || len(got.Results) != len(want) {
		t.Fatalf("status %d, %v: %s%s", status, err, report, out)
	}
	for i, r := range got.Results {
		want[i].File, want[i].What, want[i].Seconds = "core/core.go", "Do", r.Seconds
		if r != want[i] {
			t.Errorf("got %+v, want %+v", r, want[i])
		}
	}
	if line := "survives: SURVIVED 300 seeds"; !strings.Contains(report, line) {
		t.Errorf("%q is not in %s", line, report)
	}
	if b, err := os.ReadFile(filepath.Join(s.command.Bench.Root, "core/core.go")); err != nil || string(b) != module["core/core.go"] {
		t.Errorf("the source is %q now, %v", b, err)
	}
}

// A program that is not over in time is stopped, and counts as one that hangs.
func TestHang(t *testing.T) {
	skips.Short(t)
	s := in(t, nil, fault("hang", "\tfor n > 0 {\n\t}\n"))
	s.hang = time.Millisecond
	status, out, report := try(t, s, "-time", "1ms")
	if r := s.results[0]; status != mutant.Caught || !r.Caught || r.By != "hang" || r.Seeds != 0 {
		t.Errorf("status %d, %+v: %s%s", status, r, report, out)
	}
}

// Where seeds fail without a fault nothing can be proved.
func TestBaselineFails(t *testing.T) {
	skips.Short(t)
	const main = "cmd/impi-sim/main.go"
	for text, want := range map[string]string{
		strings.Replace(module[main], "out, status := core.Do(7)",
			"_, status := core.Do(8)\n\tout := `{\"failed\": [{\"seed\": 7, \"oracle\": \"order\"}]}`", 1): "order",
		"package main\n\nimport \"os\"\n\nfunc main() { os.Exit(2) }\n": "exit status 2",
	} {
		s := in(t, map[string]string{main: text}, fault("any", "\tn++\n"))
		if status, out, report := try(t, s); status != mutant.Survived || !strings.Contains(report, want) {
			t.Errorf("status %d: %s%s", status, report, out)
		}
	}
}
