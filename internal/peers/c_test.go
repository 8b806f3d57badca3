package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// ownCDir has our library, and ownCTemp is where ownC builds; empty as long as nobody has asked.
var ownCDir, ownCTemp string

// ownC is the exchange in C, compiled with our library: the source that LAM compiles
// too. It is built once for all tests.
var ownC = sync.OnceValues(func() (program string, err error) {
	dir, err := os.MkdirTemp("", "impi-peers-c-")
	if err != nil {
		return "", err
	}
	ownCTemp = dir
	k, err := ctest.Build(context.Background(), dir)
	if err != nil {
		return "", err
	}
	ownCDir = k.Dir
	program = filepath.Join(dir, "exchange-c")
	return program, k.Compile(context.Background(), program, "testdata/exchange.c", "-Wno-maybe-uninitialized")
})

// needC returns the program, or ends the test.
func needC(t *testing.T) string {
	t.Helper()
	skips.Short(t)
	program, err := ownC()
	if errors.Is(err, ctest.ErrNotHere) {
		skips.NotRun(t, err.Error(), ctest.Remedy)
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestLAMWithC: one C source, compiled with our library at one site and with LAM/MPI
// at the other, in one job.
func TestLAMWithC(t *testing.T) {
	k := needLAM(t)
	program := needC(t)
	for i, s := range shapes[:4] {
		t.Run(s.name, func(t *testing.T) {
			if i >= 2 {
				soak.SkipUnlessSoak(t, "make test has two procs a site")
			}
			t.Parallel()
			pass(t, k, s, s.all(300), func(j *Job) { j.Ours[0] = program })
		})
	}
}

const mixed = `job { embedded_server {} }
program { prefix_output = false }
site "go" {
  client  = %d
  program { command = [%s] }
  host    { address = "127.0.0.10"  procs = 2 }
}
site "c" {
  client  = %d
  program { command = [%s] }
  host    { address = "127.0.0.11"  procs = 2 }
}
`

// TestGoWithC: a site with a Go program and a site with a C program in one job.
func TestGoWithC(t *testing.T) {
	program := needC(t)
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", "../../cmd/impi-node", "./exchange").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	everything := shapes[0].all(1000)
	words := strings.Fields(strings.Join(everything, " + "))
	quoted := func(program string) string {
		text := fmt.Sprintf("%q", program)
		for _, w := range words {
			text += fmt.Sprintf(", %q", w)
		}
		return text
	}
	for client, name := range []string{"Go first", "C first"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "job.hcl")
			text := fmt.Sprintf(mixed, client, quoted(filepath.Join(bin, "exchange")), 1-client, quoted(program))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			out, err := exec.CommandContext(ctx, filepath.Join(bin, "impi-node"), "-config", file).CombinedOutput()
			if err != nil || strings.Count(string(out), ": finalized\n") != 4 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
