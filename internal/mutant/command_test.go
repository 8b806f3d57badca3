package mutant

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/skips"
)

// module has a program that prints what its core says.
var module = map[string]string{
	"go.mod": "module example.org/m\n\ngo 1.26\n",
	"cmd/talk/main.go": `package main

import (
	"fmt"

	"example.org/m/core"
)

func main() { fmt.Print(core.Word()) }
`,
	"core/core.go": `package core

// Word is said.
func Word() string {
	return "right"
}
`,
}

// says is a fault of the module.
func says(name, result string) Mutant {
	return Mutant{Name: name, What: "Word", File: "core/core.go", Old: "\treturn \"right\"\n", New: "\treturn " + result + "\n"}
}

// writeModule makes the module in a folder of the test.
func writeModule(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range module {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// talker is a command that wants the program to say something else with a fault.
func talker(t *testing.T, faults ...Mutant) *Command {
	t.Helper()
	c := &Command{Name: "talker", Bench: Harness{Root: writeModule(t), Faults: faults, Programs: []string{"./cmd/talk"}, Workers: 2}}
	expected, missed := "right", make([]bool, len(faults))
	word := func(ctx context.Context, number int) string {
		out, err := c.Bench.Command(ctx, number, "talk").Output()
		return fmt.Sprintf("%s %v", out, err)
	}
	c.Flags = func(fs *flag.FlagSet) { fs.StringVar(&expected, "expect", expected, "what is right") }
	c.Check = func() error {
		if expected == "" {
			return errors.New("-expect: nothing is expected")
		}
		return nil
	}
	c.Baseline = func(ctx context.Context, numbers []int) error {
		clear(missed)
		if got := word(ctx, 0); got != expected+" <nil>" {
			return fmt.Errorf("%d faults, and it says %s", len(numbers), got)
		}
		return nil
	}
	c.Try = func(ctx context.Context, number int) string {
		got := word(ctx, number)
		missed[number-1] = got == expected+" <nil>"
		return "it says " + got
	}
	c.Conclude = func(out io.Writer, _ time.Duration) bool {
		fmt.Fprintln(out, missed)
		for _, m := range missed {
			if m {
				return false
			}
		}
		return true
	}
	return c
}

// ran runs a command.
func ran(t *testing.T, c *Command, args ...string) (status int, out, report string) {
	t.Helper()
	var o, r bytes.Buffer
	status = c.Run(t.Context(), args, &o, &r)
	return status, o.String(), r.String()
}

// TestCheck: faults with type errors are named, and others are not.
func TestCheck(t *testing.T) {
	skips.Program(t, "go")
	root := writeModule(t)
	if err := Check(t.Context(), root, []Mutant{says("wrong", `"wrong"`)}); err != nil {
		t.Error(err)
	}
	err := Check(t.Context(), root, []Mutant{says("wrong", `"wrong"`), says("no string", "1"), says("no name", "x")})
	if err == nil || !strings.Contains(err.Error(), "core/no string:2: cannot use 1") || !strings.Contains(err.Error(), "core/no name:2: undefined: x") || strings.Contains(err.Error(), "wrong") {
		t.Error(err)
	}
	if err := Check(t.Context(), filepath.Dir(root), nil); err != nil {
		t.Error("no faults:", err)
	}
}

// One build has all faults, and each is on when it is tried.
func TestCommand(t *testing.T) {
	skips.Short(t)
	c := talker(t, says("wrong", `"wrong"`), says("silent", `""`), says("same", `"r" + "ight"`))
	status, out, report := ran(t, c)
	if status != Survived || out != "[false false true]\n" {
		t.Errorf("status %d, %q: %s", status, out, report)
	}
	for _, line := range []string{"/3] wrong: it says wrong <nil>\n", "/3] silent: it says  <nil>\n", "/3] same: it says right <nil>\n"} {
		if !strings.Contains(report, line) {
			t.Errorf("%q is not in %s", line, report)
		}
	}
	if _, err := os.Stat(c.Bench.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was built is still there: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(c.Bench.Root, "core/core.go")); err != nil || string(b) != module["core/core.go"] {
		t.Errorf("the source is %q now, %v", b, err)
	}
	if status, out, report = ran(t, c, "-only", "^(wrong|silent)$", "-j", "1"); status != Caught || strings.Count(report, "/2] ") != 2 {
		t.Errorf("status %d, %q: %s", status, out, report)
	}
}

// Nothing is tried where nothing could be proved.
func TestCommandProvesNothing(t *testing.T) {
	skips.Short(t)
	for _, x := range []struct {
		c    *Command
		args []string
		want string
	}{
		{talker(t, says("wrong", `"wrong"`)), []string{"-expect", "other"}, "without any fault: 1 faults, and it says right"},
		{talker(t, says("wrong", `"wrong"`)), []string{"-only", "^none$"}, "no fault has such a name"},
		{talker(t, says("wrong-type", "4")), nil, "wrong-type:2"}, // the compiler names the fault
		{talker(t, says("not-there", `"wrong"`), Mutant{Name: "gone", File: "core/core.go", Old: "\tno\n"}), nil, "gone: its lines are not in"},
	} {
		status, out, report := ran(t, x.c, x.args...)
		if status != Survived || out != "" || !strings.Contains(report, x.want) {
			t.Errorf("status %d, %q, want %q: %s", status, out, x.want, report)
		}
	}
}

func TestCommandInterrupted(t *testing.T) {
	skips.Short(t)
	c := talker(t, says("one", `"1"`), says("two", `"2"`))
	ctx, stop := context.WithCancelCause(t.Context())
	tried := 0
	c.Bench.Workers = 1
	c.Try = func(context.Context, int) string {
		tried++
		stop(errors.New("enough"))
		return "tried"
	}
	var out, report bytes.Buffer
	if status := c.Run(ctx, nil, &out, &report); status != Survived || tried != 1 || out.Len() > 0 || !strings.Contains(report.String(), "enough") {
		t.Errorf("status %d, %d tried: %s%s", status, tried, out.String(), report.String())
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-j", "0"}, {"more"}, {"-no-such"}, {"-only", "("}, {"-expect", ""}} {
		status, out, report := ran(t, talker(t, says("wrong", `"wrong"`)), args...)
		if status != Usage || out != "" || report == "" {
			t.Errorf("%v: status %d, %q, %q", args, status, out, report)
		}
	}
}
