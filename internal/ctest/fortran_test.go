package ctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// fortran is the kit with a cache of the test's own for the module.
func fortran(t *testing.T) *Kit {
	t.Helper()
	need(t, "gfortran")
	k := kit(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return k
}

// TestFortran runs Fortran programs: heat.f90 uses the module, handles.f90 mpif.h.
func TestFortran(t *testing.T) {
	k := fortran(t)
	for _, name := range []string{"heat", "handles"} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), name)
			in(t, "", k.Command("impifort"), "-O2", "-w", "-o", program, filepath.Join("testdata", name+".f90"))
			for _, s := range shapes {
				t.Run(s.name, func(t *testing.T) { succeed(t, s.start(t, k, []string{program}), name) })
			}
		})
	}
}

// TestFortranShown compiles with the command that -show prints.
func TestFortranShown(t *testing.T) {
	k, dir := fortran(t), t.TempDir()
	source, err := filepath.Abs("testdata/heat.f90")
	if err != nil {
		t.Fatal(err)
	}
	in(t, dir, "sh", "-c", in(t, "", k.Command("impifort"), "-show", "-w", "-o", "heat", source))
	succeed(t, []string{k.Command("impiexec"), "-n", "2", filepath.Join(dir, "heat")}, "heat")
}

// TestFortranCMake builds a project whose CMakeLists.txt asks for MPI in Fortran.
func TestFortranCMake(t *testing.T) {
	need(t, "cmake", "make")
	k, dir := fortran(t), t.TempDir()
	source, err := filepath.Abs("testdata/heat.f90")
	if err != nil {
		t.Fatal(err)
	}
	project := fmt.Sprintf(`cmake_minimum_required(VERSION 3.10)
project(project Fortran)
find_package(MPI REQUIRED)
message(STATUS "FOUND ${MPI_Fortran_VERSION} ${MPI_Fortran_HAVE_F77_HEADER} ${MPI_Fortran_HAVE_F90_MODULE}")
add_executable(heat %q)
target_link_libraries(heat MPI::MPI_Fortran)
`, source)
	if err := os.WriteFile(filepath.Join(dir, "CMakeLists.txt"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	build := filepath.Join(dir, "build")
	if out := in(t, "", "cmake", "-S", dir, "-B", build, "-DMPI_Fortran_COMPILER="+k.Command("impifort")); !strings.Contains(out, "FOUND 5.0 TRUE TRUE") {
		t.Errorf("CMake did not find version 5.0 with header and module:\n%s", out)
	}
	in(t, "", "cmake", "--build", build)
	succeed(t, []string{k.Command("impiexec"), "-n", "4", filepath.Join(build, "heat")}, "heat")
}

var parameter = regexp.MustCompile(`(?m)^      PARAMETER \((MPI_\w+)=-?\d+\)$`)

// TestFortranConstants has Fortran, in both forms and from the module, and C print the
// constants: they are the same, but for lengths of strings, where C counts the final
// zero, and for what C has under other names.
func TestFortranConstants(t *testing.T) {
	k, dir := fortran(t), t.TempDir()
	header, err := os.ReadFile(filepath.Join(k.Dir, "include/mpif.h"))
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]string{
		"MPI_STATUS_SIZE": "sizeof(MPI_Status)/sizeof(int)", "MPI_SOURCE": "MPI_F_SOURCE+1", "MPI_TAG": "MPI_F_TAG+1", "MPI_ERROR": "MPI_F_ERROR+1",
		"MPI_ADDRESS_KIND": "sizeof(MPI_Aint)", "MPI_COUNT_KIND": "sizeof(MPI_Count)", "MPI_OFFSET_KIND": "sizeof(MPI_Offset)", "MPI_INTEGER_KIND": "sizeof(int)",
	}
	var c, f strings.Builder
	names := parameter.FindAllSubmatch(header, -1)
	for _, m := range names {
		name := string(m[1])
		value := name
		if other := others[name]; other != "" {
			value = other
		}
		fmt.Fprintf(&c, "  printf(\"%s %%d\\n\", (int)(intptr_t)(%s));\n", name, value)
		fmt.Fprintf(&f, "      PRINT '(A,1X,I0)', '%s',\n     &%s\n", name, name)
	}
	if len(names) < 200 {
		t.Fatalf("mpif.h has %d constants, that cannot be all", len(names))
	}
	free := strings.ReplaceAll(f.String(), ",\n     &", ", &\n")
	for file, text := range map[string]string{
		"c.c":        "#include <mpi.h>\n#include <stdio.h>\nint main(void) {\n" + c.String() + "}\n",
		"fixed.f":    "      PROGRAM FIXED\n      IMPLICIT NONE\n      INCLUDE 'mpif.h'\n" + f.String() + "      END\n",
		"free.f90":   "program free\nimplicit none\ninclude 'mpif.h'\n" + free + "end program\n",
		"module.f90": "program module_\nuse mpi\nimplicit none\n" + free + "end program\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in(t, dir, k.Command("impicc"), "-o", "c", "c.c")
	want := strings.Fields(in(t, dir, "./c"))
	for i := 0; i < len(want); i += 2 {
		if n, err := strconv.Atoi(want[i+1]); strings.HasPrefix(want[i], "MPI_MAX_") {
			if err != nil {
				t.Fatal(err)
			}
			want[i+1] = strconv.Itoa(n - 1)
		}
	}
	for _, source := range []string{"fixed.f", "free.f90", "module.f90"} {
		program, _, _ := strings.Cut(source, ".")
		in(t, dir, k.Command("impifort"), "-Wall", "-o", program, source)
		got := strings.Fields(in(t, dir, "./"+program))
		if len(got) != len(want) {
			t.Fatalf("%s printed %d words, want %d", source, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %s is %s, want %s", source, got[i-1], got[i], want[i])
			}
		}
	}
}
