package pmix_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/launch/pmi/pmitest"
	"github.com/openimpi/impi/internal/launch/pmix"
	"github.com/openimpi/impi/internal/launch/pmix/pmixtest"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/skips"
)

// asProcess in the environment has the test program be what process managers start: a process of a
// job. If it is "open", the process does no more than that.
const asProcess = "IMPI_TEST_PMIX"

func TestMain(m *testing.M) {
	how := os.Getenv(asProcess)
	if how == "" {
		os.Exit(m.Run())
	}
	c, err := pmix.Open(os.Getenv)
	switch {
	case err == nil && how != "open":
		err = errors.Join(inheritance(), pmitest.Process(c, 4000))
	case errors.Is(err, pmix.ErrNoLibrary):
		err = fmt.Errorf("no library: %w", err)
	}
	if err != nil {
		fmt.Println("FAULT:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// inheritance wants programs that this one starts not to have its connection to the server.
func inheritance() error {
	if os.Getenv("SLURM_JOB_ID") != "" {
		return nil // srun leaves a socket of its own open
	}
	out, err := exec.Command("sh", "-c", "ls -l /proc/$$/fd").CombinedOutput()
	if strings.Contains(string(out), "socket:") {
		err = errors.Join(err, fmt.Errorf("a program that is started here has descriptors of\n%s", out))
	}
	return err
}

// failing runs a command that ends by the abort of a process, and gives its status.
func failing(t *testing.T, env []string, words ...string) (status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env = append(append(os.Environ(), env...), pmitest.AbortVariable+"=1", asProcess+"=1")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || strings.Contains(string(out), "FAULT") {
		t.Errorf("%v, want that all are ended\n%s", err, out)
	}
	return cmd.ProcessState.ExitCode()
}

// TestMpirun has Open MPI's mpirun start processes.
func TestMpirun(t *testing.T) {
	withCgo(t)
	words, env := pmixtest.Mpirun(t)
	out := daemons.Run(t, append(env, asProcess+"=1"), words[0], append(words[1:len(words):len(words)], "-n", "2", launchtest.Self(t), ":", "-n", "1", launchtest.Self(t))...)
	pmitest.Want(t, out, "rank 0 of 3 nodes [0 0 0] appnum 0", "rank 1 of 3 nodes [0 0 0] appnum 0", "rank 2 of 3 nodes [0 0 0] appnum 1")
	t.Run("abort", func(t *testing.T) {
		if status := failing(t, env, append(words, "-n", "3", launchtest.Self(t))...); status != 7 {
			t.Errorf("status %d, want 7", status)
		}
	})
}

// TestSrun has a real Slurm start processes on three nodes.
func TestSrun(t *testing.T) {
	withCgo(t)
	c := slurmtest.Start(t, 3)
	srun := []string{"srun", "--quiet", "--mpi=pmix", "-N3", "-n5", "--distribution=block", launchtest.Self(t)}
	var lines []string
	for rank := range 5 {
		lines = append(lines, fmt.Sprintf("rank %d of 5 nodes [0 0 1 1 2] appnum 0", rank))
	}
	pmitest.Want(t, daemons.Run(t, append(c.Env(), asProcess+"=1"), srun[0], srun[1:]...), lines...)
	t.Run("abort", func(t *testing.T) { failing(t, c.Env(), srun...) })
}

// TestRefusals: a process that cannot speak PMIx says what to do.
func TestRefusals(t *testing.T) {
	withCgo(t)
	none := t.TempDir()
	if err := os.WriteFile(filepath.Join(none, "libpmix.so.2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(t.TempDir(), "without.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", without, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const started = "PMIX_NAMESPACE=a PMIX_RANK=0 "
	for name, c := range map[string]struct{ program, env, says string }{
		"no manager": {launchtest.Self(t), "PMIX_RANK=0", "PMIX_NAMESPACE and PMIX_RANK are not both in the environment"},
		"no library": {launchtest.Self(t), started + "LD_LIBRARY_PATH=" + none, "no library: PMIx cannot be spoken: a process manager that speaks PMIx has started this process (PMIX_NAMESPACE=a), and its library cannot be loaded ("},
		"no server":  {launchtest.Self(t), started, "cannot speak PMIx to the process manager that has started this process: PMIx_Init: "},
		"no cgo":     {without, started, "no library: PMIx cannot be spoken: a process manager that speaks PMIx has started this process (PMIX_NAMESPACE=a), and the program is built without cgo"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no server" {
				pmixtest.Mpirun(t) // which is there where libpmix is
			}
			cmd := exec.CommandContext(t.Context(), c.program)
			cmd.Env = append(append(os.Environ(), asProcess+"=open"), strings.Fields(c.env)...)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, want %q\n%s", err, c.says, out)
			}
		})
	}
}

// withCgo skips a test that takes cgo, which loads libpmix.
func withCgo(t *testing.T) {
	t.Helper()
	if !pmix.CanLoad {
		skips.NotRun(t, "libpmix is loaded by cgo", "install a C compiler, and do not set CGO_ENABLED=0")
	}
}

// TestABI compares what is declared here with PMIx's header.
func TestABI(t *testing.T) {
	withCgo(t)
	var include string
	for _, pattern := range []string{"/usr/include/pmix.h", "/usr/lib/*/pmix2/include/pmix.h"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			include = filepath.Dir(found[0])
		}
	}
	if include == "" {
		skips.NotRun(t, "there is no pmix.h", "install libpmix-dev")
	}
	gcc := skips.Program(t, "gcc")
	out, err := exec.CommandContext(t.Context(), gcc, "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-isystem", include, "testdata/abi.c").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
