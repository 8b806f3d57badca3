package mpiexec

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestHide: what is long or secret goes through the environment in parts that the system takes, and
// leaves nothing there. Words of programs are left alone.
func TestHide(t *testing.T) {
	long := strings.Repeat("node,", 100_000)
	args := []string{"-no-prefix", "-log-level", "info", "-on", long, "-programs", "[secret]"}
	words, environ := FlagsToEnviron(args)
	if want := []string{"-no-prefix", "-log-level", "info", "-on", "@IMPI_MACHINES", "-programs", "@IMPI_PROGRAMS"}; !slices.Equal(words, want) {
		t.Errorf("%.100q", words)
	}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if len(v) >= 128<<10 {
			t.Errorf("%s has %d bytes", name, len(v))
		}
		t.Setenv(name, value)
	}
	for i, word := range words {
		if got, err := FlagFromEnviron(word); err != nil || got != args[i] {
			t.Errorf("%s: %v, %d bytes", word, err, len(got))
		}
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if _, found := os.LookupEnv(name); found {
			t.Errorf("procs get %s", name)
		}
	}
	if _, err := FlagFromEnviron("@IMPI_MACHINES"); err == nil {
		t.Error("there is nothing to reveal")
	}
	plain := []string{"-n", "2", "--", "prog", "-on", "fire"}
	if words, environ := FlagsToEnviron(plain); !slices.Equal(words, plain) || len(environ) != 0 {
		t.Errorf("%q %q", words, environ)
	}
}
