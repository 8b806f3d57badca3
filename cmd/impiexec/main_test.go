package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/skips"
)

// asProgram makes the test binary the MPI program that the jobs run.
const asProgram = "IMPI_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(program())
	}
	os.Exit(m.Run())
}

// program prints what a proc was given, and ends with the status of its argument.
func program() int {
	if err := mpi.Init(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	world := mpi.World()
	if slices.Contains(os.Args, "where") {
		fmt.Println(where())
		if err := mpi.Finalize(); err != nil {
			return 96
		}
		return 0
	}
	if slices.Contains(os.Args, "seen") {
		seen, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", os.Getppid()))
		_, left := os.LookupEnv("IMPI_PROGRAMS")
		fmt.Printf("secret %v in %q, %v, variable %v\n", os.Getenv("SECRET"), seen, err, left)
		if err := mpi.Finalize(); err != nil {
			return 96
		}
		return 0
	}
	app, _, err := world.Attr(mpi.AppNum)
	if err != nil {
		return 98
	}
	dir, err := os.Getwd()
	if err != nil {
		return 97
	}
	line, _ := io.ReadAll(os.Stdin)
	fmt.Printf("%d of %d app %v in %s A=%s B=%s args %v read %q\n", world.Rank(), world.Size(), app,
		filepath.Base(dir), os.Getenv("A"), os.Getenv("B"), os.Args[1:], line)
	fmt.Fprintf(os.Stderr, "error of %d\n", world.Rank())
	if err := mpi.Finalize(); err != nil {
		return 96
	}
	if slices.Contains(os.Args, "fail") {
		return 5
	}
	return 0
}

// commands builds impiexec and impi-node into one folder.
func commands(t *testing.T) (impiexec string) {
	t.Helper()
	skips.Short(t)
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "../impi-node", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "impiexec")
}

// result is what a run gave.
type result struct {
	out, err string
	status   int
}

func start(t *testing.T, dir, impiexec string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), impiexec, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), asProgram+"=1"), &out, &errs
	cmd.Stdin = strings.NewReader("a line")
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// wants reports lines that are not among those of a text.
func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	have := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, l := range lines {
		if !slices.Contains(have, l) {
			t.Errorf("no line %q in\n%s", l, text)
		}
	}
	if len(have) != len(lines) {
		t.Errorf("%d lines, want %d:\n%s", len(have), len(lines), text)
	}
}

// TestRuns starts jobs as people do.
func TestRuns(t *testing.T) {
	impiexec := commands(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "here")
	if err := os.MkdirAll(filepath.Join(dir, "there"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("B", "inherited")
	ok := func(t *testing.T, r result) result {
		t.Helper()
		if r.status != 0 {
			t.Fatalf("status %d\n%s%s", r.status, r.out, r.err)
		}
		return r
	}
	t.Run("n", func(t *testing.T) {
		r := ok(t, start(t, dir, impiexec, "-n", "2", self, "x", "y"))
		wants(t, r.out, `0 of 2 app 0 in here A= B=inherited args [x y] read "a line"`, `1 of 2 app 0 in here A= B=inherited args [x y] read ""`)
		wants(t, r.err, "error of 0", "error of 1")
	})
	t.Run("ranks before lines", func(t *testing.T) {
		r := ok(t, start(t, dir, impiexec, "-l", "-np", "2", self))
		wants(t, r.out, `[0] 0 of 2 app 0 in here A= B=inherited args [] read "a line"`, `[1] 1 of 2 app 0 in here A= B=inherited args [] read ""`)
	})
	t.Run("programs", func(t *testing.T) {
		r := ok(t, start(t, dir, impiexec, "-genv", "B", "all", "-n", "1", "-env", "A", "one", self, "a", ":",
			"-n", "2", "-wdir", "there", "-x", "A=two", self, "b"))
		wants(t, r.out, `0 of 3 app 0 in here A=one B=all args [a] read "a line"`,
			`1 of 3 app 1 in there A=two B=all args [b] read ""`, `2 of 3 app 1 in there A=two B=all args [b] read ""`)
	})
	t.Run("files", func(t *testing.T) {
		r := ok(t, start(t, dir, impiexec, "-outfile-pattern", "out.%r", "-n", "2", self))
		if r.out != "" {
			t.Errorf("printed: %s", r.out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "out.1"))
		if err != nil {
			t.Fatal(err)
		}
		wants(t, string(text), `1 of 2 app 0 in here A= B=inherited args [] read ""`)
	})
	t.Run("here", func(t *testing.T) {
		if err := os.Symlink(self, filepath.Join(dir, "prog-of-this-folder")); err != nil {
			t.Fatal(err)
		}
		r := ok(t, start(t, dir, impiexec, "-n", "1", "prog-of-this-folder", "a", ":", "-n", "1", "-env", "A", "b", "prog-of-this-folder"))
		wants(t, r.out, `0 of 2 app 0 in here A= B=inherited args [a] read "a line"`, `1 of 2 app 1 in here A=b B=inherited args [] read ""`)
	})
	t.Run("no program of MPI", func(t *testing.T) {
		wants(t, ok(t, start(t, dir, impiexec, "-n", "2", "echo", "hello")).out, "hello", "hello")
		wants(t, ok(t, start(t, dir, impiexec, "-n", "1", "echo", "a", ":", "-n", "1", "echo", "b")).out, "a", "b")
		if r := start(t, dir, impiexec, "-n", "2", "sh", "-c", "exit 3"); r.status != 3 || !strings.Contains(r.err, "exited with status 3 before it called MPI Init") {
			t.Errorf("%+v", r)
		}
		for _, args := range [][]string{{"-n", "1", "true", ":", "-n", "1", self}, {"-n", "1", self, ":", "-n", "1", "true"}} {
			if r := start(t, dir, impiexec, args...); r.status != 1 || !strings.Contains(r.err, "exited with status 0 before it called MPI Init") {
				t.Errorf("one of two is in MPI: %+v", r)
			}
		}
	})
	t.Run("secret", func(t *testing.T) { // values are not in the command line, which all users see
		r := ok(t, start(t, dir, impiexec, "-n", "1", "-x", "SECRET=mellon", self, "seen"))
		if !strings.HasPrefix(r.out, "secret mellon in ") || strings.Count(r.out, "mellon") != 1 || !strings.Contains(r.out, "@IMPI_PROGRAMS") || !strings.HasSuffix(r.out, "<nil>, variable false\n") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("status", func(t *testing.T) {
		if r := start(t, dir, impiexec, "-n", "2", self, "fail"); r.status != 5 || !strings.Contains(r.err, "rank ") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("verbose", func(t *testing.T) {
		if r := ok(t, start(t, dir, impiexec, "-v", "-n", "1", self)); !strings.Contains(r.err, "impi-node -no-prefix -n 1 -- ") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("version", func(t *testing.T) {
		if r := ok(t, start(t, dir, impiexec, "--version")); !strings.HasPrefix(r.out, "impiexec 0.") {
			t.Errorf("%+v", r)
		}
	})
	for want, args := range map[string][]string{
		`is it -hostfile?`:              {"--hostfil", "h", self},
		`no program "./none"`:           {"-n", "1", self, ":", "./none"},
		`no folder`:                     {"-wdir", "nowhere", self},
		`no program "./none": build it`: {"-n", "2", "./none"},
		`"ls-of-no-folder"`:             {"-n", "2", "ls-of-no-folder"},
		`is not this one`:               {"-host", "192.0.2.1", self},
	} {
		t.Run("fault "+want, func(t *testing.T) {
			if r := start(t, dir, impiexec, args...); r.status != statusUsage || !strings.Contains(r.err, want) {
				t.Errorf("%+v", r)
			}
		})
	}
}
