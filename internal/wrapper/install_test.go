package wrapper

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openimpi/impi/include"
	"github.com/openimpi/impi/internal/skips"
)

// run runs a tool in dir and returns what it printed.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// install makes an installation with the true wrappers and header. Its library
// has all functions, which do nothing.
func install(t *testing.T) (root string) {
	t.Helper()
	skips.Programs(t, "cc", "c++", "go")
	root = t.TempDir()
	run(t, ".", nil, "go", "build", "-o", filepath.Join(root, "bin")+"/", "../../cmd/impicc", "../../cmd/impicxx")
	pc, err := os.ReadFile("../../cmd/impicc/impi.pc")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "lib/pkgconfig/impi.pc"), string(pc))
	write(t, filepath.Join(root, "include/mpi.h"), include.Header)
	write(t, filepath.Join(root, "include/mpi_generated.h"), include.Generated)
	source := filepath.Join(root, "nothing.c")
	body := regexp.MustCompile(`(?m)^(\w+ P?MPI_\w+\(.*\));$`).ReplaceAllString(include.Header+include.Generated, "$1 { return 0; }")
	write(t, source, body)
	run(t, root, nil, "cc", "-w", "-Iinclude", "-shared", "-fPIC", "-Wl,-soname,libmpi_abi.so.1", "-o", "lib/libmpi_abi.so.1", source)
	if err := os.Symlink("libmpi_abi.so.1", filepath.Join(root, "lib/libmpi_abi.so")); err != nil {
		t.Fatal(err)
	}
	return root
}

const program = `#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  printf("it runs\n");
  return 0;
}
`

// runs wants the program at path to find the library by itself.
func runs(t *testing.T, path string) {
	t.Helper()
	if out := run(t, filepath.Dir(path), nil, path); out != "it runs\n" {
		t.Errorf("%s printed %q", path, out)
	}
}

// TestInstalled compiles programs in the ways that people do.
func TestInstalled(t *testing.T) {
	root, dir := install(t), t.TempDir()
	write(t, filepath.Join(dir, "p.c"), program)
	write(t, filepath.Join(dir, "p.cc"), program)
	impicc, impicxx := filepath.Join(root, "bin/impicc"), filepath.Join(root, "bin/impicxx")

	t.Run("c", func(t *testing.T) {
		run(t, dir, nil, impicc, "-std=c99", "-pedantic", "-Wall", "-Werror", "-o", "c", "p.c")
		runs(t, filepath.Join(dir, "c"))
	})
	t.Run("c++", func(t *testing.T) {
		run(t, dir, nil, impicxx, "-Wall", "-Werror", "-o", "cxx", "p.cc")
		runs(t, filepath.Join(dir, "cxx"))
	})
	t.Run("in two steps", func(t *testing.T) {
		run(t, dir, nil, impicc, "-c", "p.c", "-o", "p.o")
		run(t, dir, nil, impicc, "p.o", "-o", "steps")
		runs(t, filepath.Join(dir, "steps"))
	})
	t.Run("CC is the wrapper", func(t *testing.T) {
		run(t, dir, []string{"CC=" + impicc}, impicc, "-o", "cc", "p.c")
		runs(t, filepath.Join(dir, "cc"))
	})
	t.Run("what is shown compiles", func(t *testing.T) {
		run(t, dir, nil, "sh", "-c", run(t, dir, nil, impicc, "-show", "p.c", "-o", "shown"))
		runs(t, filepath.Join(dir, "shown"))
	})
	t.Run("no path", func(t *testing.T) {
		run(t, dir, nil, impicc, "-norpath", "-o", "nopath", "p.c")
		if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "nopath")).CombinedOutput(); err == nil {
			t.Errorf("a program without the library's path found it: %s", out)
		}
		run(t, dir, []string{"LD_LIBRARY_PATH=" + filepath.Join(root, "lib")}, "./nopath")
	})
	t.Run("pkg-config", func(t *testing.T) {
		skips.Programs(t, "pkg-config")
		env := []string{"PKG_CONFIG_PATH=" + filepath.Join(root, "lib/pkgconfig")}
		flags := strings.Fields(run(t, dir, env, "pkg-config", "--cflags", "--libs", "impi"))
		run(t, dir, nil, "cc", append([]string{"-o", "pc", "p.c"}, flags...)...)
		runs(t, filepath.Join(dir, "pc"))
	})
}

const cmakeLists = `cmake_minimum_required(VERSION 3.10)
project(p C CXX)
find_package(MPI REQUIRED)
message(STATUS "FOUND C ${MPI_C_FOUND} ${MPI_C_VERSION} CXX ${MPI_CXX_FOUND} ${MPI_CXX_VERSION}")
add_executable(c p.c)
target_link_libraries(c MPI::MPI_C)
add_executable(cxx p.cc)
target_link_libraries(cxx MPI::MPI_CXX)
`

// TestCMake builds a project whose CMakeLists.txt asks for MPI, once naming the
// wrappers to FindMPI and once with them as the compilers.
func TestCMake(t *testing.T) {
	skips.Programs(t, "cmake", "make")
	root, source := install(t), t.TempDir()
	write(t, filepath.Join(source, "p.c"), program)
	write(t, filepath.Join(source, "p.cc"), program)
	write(t, filepath.Join(source, "CMakeLists.txt"), cmakeLists)
	impicc, impicxx := filepath.Join(root, "bin/impicc"), filepath.Join(root, "bin/impicxx")
	for name, args := range map[string][]string{
		"named":     {"-DMPI_C_COMPILER=" + impicc, "-DMPI_CXX_COMPILER=" + impicxx},
		"compilers": {"-DCMAKE_C_COMPILER=" + impicc, "-DCMAKE_CXX_COMPILER=" + impicxx},
	} {
		t.Run(name, func(t *testing.T) {
			build := t.TempDir()
			out := run(t, build, nil, "cmake", append(args, source)...)
			if want := "FOUND C TRUE 5.0 CXX TRUE 5.0"; !strings.Contains(out, want) {
				t.Fatalf("CMake did not print %q:\n%s", want, out)
			}
			run(t, build, nil, "cmake", "--build", ".")
			if other := run(t, build, nil, "ldd", "c"); !strings.Contains(other, root) {
				t.Errorf("the program uses another library:\n%s", other)
			}
			runs(t, filepath.Join(build, "c"))
			runs(t, filepath.Join(build, "cxx"))
		})
	}
}
