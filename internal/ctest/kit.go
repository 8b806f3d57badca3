// Package ctest compiles C programs with the library of this tree and runs them
// on one site and on several. Its own programs are in testdata.
package ctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNotHere is wrapped by errors about a machine where C programs cannot be built: they name what
// is missing.
var ErrNotHere = errors.New("no C programs can be built on this machine")

// Remedy is the advice for machines where C programs cannot be built.
const Remedy = "apt-get install gcc libc6-dev make, and put the folder of go into PATH"

// Installed names a variable of the environment: a folder that make install has filled. Build uses
// it as it is, and builds nothing.
const Installed = "IMPI_INSTALLED"

// Kit is an installation: bin/impicc, bin/impi-node and so on, lib/, include/.
type Kit struct {
	Dir string // absolute
}

// Build makes an installation of this tree in dir, or returns the one that the variable Installed
// names. It takes a minute or more.
func Build(ctx context.Context, dir string) (*Kit, error) {
	if given := os.Getenv(Installed); given != "" {
		return &Kit{Dir: given}, nil
	}
	for _, tool := range []string{"go", "make", "cc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w; there is no %s", ErrNotHere, tool)
		}
	}
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	k := &Kit{Dir: dir}
	if _, err := Run(ctx, root, nil, "make", "library", "LIB="+filepath.Join(dir, "lib")); err != nil {
		return nil, err
	}
	if _, err := os.Stat(k.Library()); err != nil {
		return nil, fmt.Errorf("%w; make library made none", ErrNotHere)
	}
	if _, err := Run(ctx, root, nil, "go", "build", "-ldflags=-w", "-o", filepath.Join(dir, "bin")+"/",
		"./cmd/impi-node", "./cmd/impicc", "./cmd/impicxx", "./cmd/impifort", "./cmd/impiexec"); err != nil {
		return nil, err
	}
	for name, to := range map[string]string{"mpicc_abi": "impicc", "mpicxx_abi": "impicxx"} {
		if err := os.Symlink(to, k.Command(name)); err != nil {
			return nil, fmt.Errorf("the wrappers: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "include"), 0o755); err != nil {
		return nil, fmt.Errorf("the headers: %w", err)
	}
	for _, name := range []string{"mpi.h", "mpi_generated.h", "mpi-ext.h", "mpif.h", "mpi.F90", "mpi_f08.F90"} {
		text, err := os.ReadFile(filepath.Join(root, "include", name))
		if err != nil {
			return nil, fmt.Errorf("the headers: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "include", name), text, 0o644); err != nil {
			return nil, fmt.Errorf("the headers: %w", err)
		}
	}
	return k, nil
}

// Command returns the path of one of the installation's commands.
func (k *Kit) Command(name string) string { return filepath.Join(k.Dir, "bin", name) }

// Library returns the path of the shared library.
func (k *Kit) Library() string { return filepath.Join(k.Dir, "lib", "libmpi_abi.so.1") }

// Compile compiles a source to a program, as C++ if its name ends in .cc. args come last.
func (k *Kit) Compile(ctx context.Context, program, source string, args ...string) error {
	words := []string{"-std=c99", "-D_GNU_SOURCE"}
	wrapper := "impicc"
	if strings.HasSuffix(source, ".cc") {
		wrapper, words = "impicxx", []string{"-std=c++11"}
	}
	words = append(words, "-O1", "-Wall", "-Wextra", "-Wno-sign-compare", "-o", program, source)
	_, err := Run(ctx, "", nil, k.Command(wrapper), append(words, args...)...)
	return err
}

// Run runs a command in dir, with env in addition to the environment. It returns all that the
// command printed; the error has it too.
func Run(ctx context.Context, dir string, env []string, name string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
