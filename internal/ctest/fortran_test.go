package ctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// fortran is the kit with a cache of the test's own for the module.
func fortran(t *testing.T) *Kit {
	t.Helper()
	skips.Programs(t, "gfortran")
	k := kit(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return k
}

// TestFortran runs Fortran programs: heat.f90, transpose.f90, wide.f90 and integer8.f90 use the
// module mpi, f08.f90 and wavefront.f90 mpi_f08, handles.f90 mpif.h; some with INTEGERs of 8 bytes.
func TestFortran(t *testing.T) {
	k := fortran(t)
	for _, p := range []struct{ name, flag string }{
		{"heat", "-Wall"}, {"handles", "-w"}, {"f08", "-Wall"}, {"f08", "-fdefault-integer-8"}, {"integer8", "-fdefault-integer-8"},
		{"transpose", "-Wall"}, {"wavefront", "-Wall"}, {"wide", "-Wall"},
	} {
		name, flag := p.name, p.flag
		t.Run(name+" "+flag, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, name)
			in(t, "", k.Command("impifort"), flag, "-O2", "-J"+dir, "-o", program, filepath.Join("testdata", name+".f90"))
			for _, s := range shapes {
				t.Run(s.name, func(t *testing.T) { succeed(t, s.start(t, k, []string{program, t.TempDir()}), name) })
			}
		})
	}
}

// TestFortranSpawn has a program in Fortran start others.
func TestFortranSpawn(t *testing.T) {
	k := fortran(t)
	program := filepath.Join(t.TempDir(), "spawned")
	in(t, "", k.Command("impifort"), "-O2", "-o", program, filepath.Join("testdata", "spawned.f90"))
	succeed(t, []string{k.Command("impiexec"), "-n", "1", program}, "spawned")
}

var (
	interfaceBody = regexp.MustCompile(`(?m)^    (?:subroutine|function) (P?MPIX?_\w+)\(`)
	conditional   = regexp.MustCompile(`(?s)#ifndef IMPI_INTEGER8.*?#endif`)
)

// TestFortranAllLinked links programs that refer to every procedure of the modules, with INTEGERs
// of 4 bytes and of 8.
func TestFortranAllLinked(t *testing.T) {
	k, dir := fortran(t), t.TempDir()
	for _, module := range []string{"mpi", "mpi_f08"} {
		text, err := os.ReadFile(filepath.Join(k.Dir, "include", module+".F90"))
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range []string{"-O0", "-fdefault-integer-8"} {
			source := string(text)
			if flag != "-O0" {
				source = conditional.ReplaceAllString(source, "")
			}
			var names []string
			for _, m := range interfaceBody.FindAllStringSubmatch(source, -1) {
				if !strings.Contains(strings.ToLower(m[1]), "_function") { // those are of the program
					names = append(names, m[1])
				}
			}
			if len(names) < 800 {
				t.Fatalf("%s has %d procedures, that cannot be all", module, len(names))
			}
			var b strings.Builder
			fmt.Fprintf(&b, "program all\nuse %s\nuse, intrinsic :: iso_c_binding, only: c_funptr, c_funloc, c_associated\nimplicit none\ntype(c_funptr) :: p(%d)\ninteger :: i\n", module, len(names))
			for i, name := range names {
				fmt.Fprintf(&b, "p(%d) = c_funloc(%s)\n", i+1, name)
			}
			fmt.Fprintf(&b, "if (count([(c_associated(p(i)), i = 1, %d)]) == %d) print '(A)', 'all'\nend program\n", len(names), len(names))
			if err := os.WriteFile(filepath.Join(dir, "all.f90"), []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			in(t, dir, k.Command("impifort"), "-w", flag, "-o", "all", "all.f90")
			if out := in(t, dir, "./all"); out != "all\n" {
				t.Errorf("%s %s printed %q", module, flag, out)
			}
		}
	}
}

// TestFortranChecked compiles calls that are right, and others that the compiler has to refuse.
func TestFortranChecked(t *testing.T) {
	k, dir := fortran(t), t.TempDir()
	compiles := func(module, call string) bool {
		t.Helper()
		declared := "integer :: comm, type, request, status(MPI_STATUS_SIZE)"
		if module == "mpi_f08" {
			declared = "type(MPI_Comm) :: comm\ntype(MPI_Datatype) :: type\ntype(MPI_Request) :: request\ntype(MPI_Status) :: status"
		}
		text := "program p\nuse " + module + "\nimplicit none\n" + declared + "\ninteger :: ierr, n\nlogical :: flag\nreal :: x(4)\ncharacter(len=9) :: name\nexternal :: f\n" + call + "\nend program\n"
		if err := os.WriteFile(filepath.Join(dir, "p.f90"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := Run(t.Context(), dir, nil, k.Command("impifort"), "-w", "-fsyntax-only", "p.f90")
		if err != nil && !strings.Contains(out, "Error:") {
			t.Fatal(err)
		}
		return err == nil
	}
	for call, right := range map[string]bool{
		"call MPI_Send(x, 4, type, 1, 2, comm, ierr)":           true,
		"call MPI_Send(x(1:3:2), 2, type, 1, 2, comm, ierr)":    true,
		"call MPI_Send(n, 1, type, 1, 2, comm, ierr)":           true,
		"call MPI_Send(name, 9, type, 1, 2, comm, ierr)":        true,
		"call PMPI_Recv(x, 4, type, 1, 2, comm, status, ierr)":  true,
		"call MPI_Isend(x, 4, type, 1, 2, comm, request, ierr)": true,
		"call MPI_Test(request, flag, status, ierr)":            true,
		"call MPI_Get_processor_name(name, n, ierr)":            true,
		"call MPI_Send(x, 4, type, 1, 2, ierr)":                 false, // too few
		"call MPI_Send(x, 4., type, 1, 2, comm, ierr)":          false, // a real count
		"call MPI_Send(x, 4, type, 1, flag, comm, ierr)":        false,
		"call MPI_Send(x, 4, type, 1, 2, x, ierr)":              false,
		"call MPI_Isend(x, 4, type, 1, 2, comm, 5, ierr)":       false, // nothing to write into
		"call MPI_Test(request, n, status, ierr)":               false, // LOGICAL
		"call MPI_Get_processor_name(n, n, ierr)":               false,
		"call MPI_Get_address(x, n, ierr)":                      false, // too short for an address
		"call MPI_Wait(request, n, ierr)":                       false, // no status
	} {
		for _, module := range []string{"mpi", "mpi_f08"} {
			if got := compiles(module, call); got != right {
				t.Errorf("%s: %s compiles: %v, want %v", module, call, got, right)
			}
		}
	}
	for call, right := range map[string]bool{
		"call MPI_Send(x, 4, type, 1, 2, comm)":                true,
		"if (comm == MPI_COMM_WORLD) n = status%MPI_TAG":       true,
		"call MPI_Send(x, 4_MPI_COUNT_KIND, type, 1, 2, comm)": true,
		"call MPI_Send(x, 4, comm, 1, 2, comm)":                false, // handles have types
		"call MPI_Send(x, 4, 17, 1, 2, comm)":                  false,
		"if (comm == MPI_INT) n = 1":                           false,
		"call MPI_Op_create(n, .true., MPI_SUM)":               false,
		"MPI_COMM_WORLD = comm":                                false,
	} {
		if got := compiles("mpi_f08", call); got != right {
			t.Errorf("mpi_f08: %s compiles: %v, want %v", call, got, right)
		}
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
	skips.Programs(t, "cmake", "make")
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

var parameter = regexp.MustCompile(`(?m)^      PARAMETER \((MPI_\w+)=-?\d+(?:\+.*)?\)$`)

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
		"MPI_ADDRESS_KIND": "sizeof(MPI_Aint)", "MPI_COUNT_KIND": "sizeof(MPI_Count)", "MPI_OFFSET_KIND": "sizeof(MPI_Offset)"}
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
