package ctest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// inspected makes the program that tools look at.
func inspected(t *testing.T, k *Kit, args ...string) string {
	t.Helper()
	return compiled(t, k, "inspected.c", append([]string{"-g", "-pthread"}, args...)...)
}

// sanitizer is one of the compiler's, with the fault of the program that it finds.
type sanitizer struct{ name, option, fault, says, function string }

var sanitizers = []sanitizer{
	{"address", "-fsanitize=address,undefined", "beyond", "ERROR: AddressSanitizer: heap-buffer-overflow", "beyond"},
	{"thread", "-fsanitize=thread", "race", "WARNING: ThreadSanitizer: data race", "races"},
}

// TestSanitizers: the compiler's sanitizers find faults of programs, and none in the library.
func TestSanitizers(t *testing.T) {
	k := kit(t)
	for _, s := range sanitizers {
		t.Run(s.name, func(t *testing.T) {
			trial := filepath.Join(t.TempDir(), "trial")
			if err := os.WriteFile(trial+".c", []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := Run(t.Context(), "", nil, "cc", s.option, "-o", trial, trial+".c"); err != nil {
				skips.NotRun(t, "cc has no "+s.option, "install the compiler's runtime libraries (libasan, libtsan, libubsan)\n"+out)
			}
			if out, err := Run(t.Context(), "", nil, trial); err != nil {
				skips.NotRun(t, s.option+" does not work on this kernel", "sysctl vm.mmap_rnd_bits=28\n"+out)
			}
			program := inspected(t, k, s.option)
			t.Run("one site", func(t *testing.T) { // with few procs, so that C does what it can
				wantQuiet(t, succeed(t, []string{k.Command("impiexec"), "-n", "2", program}, "inspected"))
			})
			t.Run("two sites", func(t *testing.T) {
				wantQuiet(t, succeed(t, onSites(t, k, []string{program}, ""), "inspected"))
			})
			if s.name == "thread" { // messages of several threads at a time, in C and in Go
				t.Run("threads", func(t *testing.T) {
					soak.SkipUnlessSoak(t, "make test has three threads")
					many := compiled(t, k, "threads.c", "-g", "-pthread", s.option)
					wantQuiet(t, succeed(t, []string{k.Command("impiexec"), "-n", "2", many}, "threads"))
				})
			}
			t.Run("fault", func(t *testing.T) {
				output, status := run(t, []string{k.Command("impiexec"), "-n", "2", program, s.fault})
				if status == 0 || !strings.Contains(output, s.says) || !strings.Contains(output, "in "+s.function+" ") && !strings.Contains(output, " "+s.function+" ") {
					t.Errorf("status %d, want another and %q in %s:\n%s", status, s.says, s.function, output)
				}
			})
		})
	}
}

// wantQuiet wants no sanitizer to have said anything.
func wantQuiet(t *testing.T, output string) {
	t.Helper()
	for _, sign := range []string{"Sanitizer", "runtime error:"} {
		if strings.Contains(output, sign) {
			t.Errorf("a false alarm:\n%s", output)
			return
		}
	}
}

// TestValgrind: impiexec -valgrind has a log of each rank, with the program's faults alone.
func TestValgrind(t *testing.T) {
	k := kit(t)
	skips.Program(t, "valgrind")
	program := inspected(t, k)
	for _, tc := range []struct {
		name, fault string
		options     []string
		errors      []int // of each rank; -1: it has no log
	}{
		{"no fault", "", nil, []int{0, 0}},
		{"one rank", "beyond", []string{"-tool-ranks", "1"}, []int{-1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			words := append([]string{k.Command("impiexec"), "-n", "2", "-wdir", dir, "-valgrind"}, tc.options...)
			output := succeed(t, append(words, program, tc.fault), "inspected", "VALGRIND_OPTS=--leak-check=full")
			for r, want := range tc.errors {
				log, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("valgrind.%d.log", r)))
				switch text := string(log); {
				case want < 0:
					if err == nil {
						t.Errorf("rank %d has a log:\n%s", r, text)
					}
				case err != nil:
					t.Errorf("%v:\n%s", err, output)
				case !strings.Contains(text, fmt.Sprintf("ERROR SUMMARY: %d errors", want)):
					t.Errorf("rank %d: want %d errors:\n%s", r, want, text)
				case want > 0 && !strings.Contains(text, "beyond (inspected.c:"):
					t.Errorf("rank %d: not the program's error:\n%s", r, text)
				}
			}
		})
	}
}

// TestDebugger: impiexec -gdb says where a proc fell, and has the program's status.
func TestDebugger(t *testing.T) {
	k := kit(t)
	skips.Program(t, "gdb")
	t.Setenv("DISPLAY", "") // no windows
	program := inspected(t, k, "-O0")
	out, err := Run(t.Context(), "", nil, "gdb", "-q", "-batch", "-ex", "run", "--args", "/bin/true")
	if err != nil || strings.Contains(out, "ptrace") {
		skips.NotRun(t, "gdb may not trace processes here", "allow ptrace (sysctl kernel.yama.ptrace_scope=0, or the container's capability SYS_PTRACE)")
	}
	t.Run("no fault", func(t *testing.T) {
		out := succeed(t, []string{k.Command("impiexec"), "-n", "2", "-gdb", program}, "inspected")
		if strings.Contains(out, "received signal") {
			t.Errorf("gdb stopped:\n%s", out)
		}
	})
	t.Run("a fault", func(t *testing.T) {
		out, status := run(t, []string{k.Command("impiexec"), "-n", "2", "-gdb", "-tool-ranks", "1", program, "fall"})
		if status != 128+11 || !strings.Contains(out, "falls (p=0x0)") || !strings.Contains(out, "main (argc=2") {
			t.Errorf("status %d, want %d and where the program fell:\n%s", status, 128+11, out)
		}
	})
}
