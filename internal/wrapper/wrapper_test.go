package wrapper

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		lang Language
		args string
		want request
	}{
		{C, "-O2 -o p p.c", request{args: []string{"-O2", "-o", "p", "p.c"}}},
		{C, "-show p.c", request{show: "all", args: []string{"p.c"}}},
		{C, "--showme:link", request{show: "link"}},
		{C, "-compile-info -c p.c", request{show: "compile command", args: []string{"-c", "p.c"}}},
		{C, "-cc=clang -norpath p.c", request{compiler: "clang", noPath: true, args: []string{"p.c"}}},
		{CXX, "-cxx=clang++ p.cc", request{compiler: "clang++", args: []string{"p.cc"}}},
		{CXX, "-CC=CC p.cc", request{compiler: "CC", args: []string{"p.cc"}}},
		{C, "-cxx=clang++", request{args: []string{"-cxx=clang++"}}},
		{C, "-help", request{help: true}},
		{C, "--help", request{help: true}},
		{C, "--version", request{args: []string{"--version"}}},
	} {
		got := parse(tc.lang, strings.Fields(tc.args))
		if got.help != tc.want.help || got.show != tc.want.show || got.compiler != tc.want.compiler ||
			got.noPath != tc.want.noPath || !slices.Equal(got.args, tc.want.args) {
			t.Errorf("%s: %+v, want %+v", tc.args, got, tc.want)
		}
	}
}

func TestLinks(t *testing.T) {
	for args, want := range map[string]bool{
		"p.c": true, "-o p p.o -lm": true, "-shared -o l.so l.c": true, "-x c -": true,
		"-c p.c": false, "-E p.c": false, "-MM p.c": false, "-S p.c": false, "-r a.o b.o": false,
		"--version": false, "-v": false, "": false,
	} {
		if got := links(strings.Fields(args)); got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"-Wl,-rpath,/usr/lib": "-Wl,-rpath,/usr/lib", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
	} {
		if got := quote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// installation makes a folder as make install does, with a compiler that
// prints its arguments.
func installation(t *testing.T, files ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, f := range append(files, "bin/impicc", "bin/impicxx", "tools/cc", "tools/mycc") {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(root, "tools")+":"+filepath.Join(root, "bin"))
	return root
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if k, v, _ := strings.Cut(p, "="); k == name {
				return v
			}
		}
		return ""
	}
}

// try returns what a wrapper of an installation would run or print, the
// installation's folder written as ROOT.
func try(t *testing.T, root string, lang Language, args string, env ...string) (string, error) {
	t.Helper()
	asked := parse(lang, strings.Fields(args))
	c, err := newCommand(lang, asked, filepath.Join(root, "bin", lang.Name), environment(env...))
	if err != nil {
		return "", err
	}
	text := strings.Join(c.words(), " ")
	if asked.show != "" {
		if text, err = c.show(asked.show); err != nil {
			t.Fatal(err)
		}
	}
	return strings.ReplaceAll(text, root, "ROOT"), nil
}

func TestCommands(t *testing.T) {
	root := installation(t, "include/mpi.h", "lib/libmpi_abi.so")
	link := " -LROOT/lib -Wl,-rpath,ROOT/lib -Wl,--enable-new-dtags -lmpi_abi"
	for _, tc := range []struct {
		lang      Language
		args, env string
		want      string
	}{
		{C, "-o p p.c", "", "cc -IROOT/include -o p p.c" + link},
		{C, "-c p.c", "", "cc -IROOT/include -c p.c"},
		{C, "-norpath p.o", "", "cc -IROOT/include p.o -LROOT/lib -lmpi_abi"},
		{C, "--version", "", "cc -IROOT/include --version"},
		{C, "-c p.c", "CC=mycc -m64", "mycc -m64 -IROOT/include -c p.c"},
		{C, "-cc=cc -c p.c", "CC=mycc", "cc -IROOT/include -c p.c"},
		{C, "-c p.c", "CC=impicc", "cc -IROOT/include -c p.c"},
		{C, "-c p.c", "CC=ccache impicc", "cc -IROOT/include -c p.c"},
		{CXX, "-c p.cc", "CXX=mycc", "mycc -IROOT/include -c p.cc"},
		{C, "-show", "", "cc -IROOT/include" + link},
		{C, "-show -c p.c", "", "cc -IROOT/include -c p.c"},
		{C, "-showme:compile", "", "-IROOT/include"},
		{C, "-showme:link", "", strings.TrimSpace(link)},
		{C, "-showme:incdirs", "", "ROOT/include"},
		{C, "-showme:libdirs", "", "ROOT/lib"},
		{C, "-showme:libs", "", "mpi_abi"},
		{C, "-showme:command", "CC=mycc", "mycc"},
		{C, "-compile_info", "", "cc -c -IROOT/include"},
		{C, "-link_info", "", "cc" + link},
	} {
		got, err := try(t, root, tc.lang, tc.args, tc.env)
		if err != nil || got != tc.want {
			t.Errorf("%s (%s): %s, %v; want %s", tc.args, tc.env, got, err, tc.want)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	bare := installation(t, "tools/ls")
	if _, err := try(t, bare, C, "p.c"); !errors.Is(err, errNoHeader) {
		t.Errorf("without a header: %v", err)
	}
	half := installation(t, "include/mpi.h")
	if _, err := try(t, half, C, "-c p.c"); err != nil {
		t.Errorf("compiling without a library: %v", err)
	}
	if _, err := try(t, half, C, "p.c"); !errors.Is(err, errNoLibrary) {
		t.Errorf("linking without a library: %v", err)
	}
	if _, err := try(t, half, CXX, "-c p.cc"); !errors.Is(err, errNoCompiler) {
		t.Errorf("without a compiler: %v", err)
	}
}

// script makes a tool of an installation.
func script(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, "tools", name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestFortran compiles the module once for each compiler and header.
func TestFortran(t *testing.T) {
	root := installation(t, "include/mpif.h", "include/mpi.F90", "include/mpi_f08.F90", "lib/libmpi_abi.so")
	cache, home := "XDG_CACHE_HOME="+filepath.Join(root, "cache"), "HOME="+root
	if _, err := try(t, root, Fortran, "-c p.f90", cache); !errors.Is(err, errNoCompiler) {
		t.Errorf("without a compiler: %v", err)
	}
	script(t, root, "gfortran", "echo called >>"+root+"/calls\n")
	script(t, root, "old", "case \"$*\" in *-fallow*) exit 1;; esac\n")
	script(t, root, "other", "echo no such option; exit 1\n")
	link := " -LROOT/lib -Wl,-rpath,ROOT/lib -Wl,--enable-new-dtags -limpi_fortran -lmpi_abi"
	for _, tc := range []struct{ args, env, want string }{
		{"-o p p.f90", cache, "gfortran -IROOT/include -IROOT/cache/impi/module-KEY -fallow-argument-mismatch -o p p.f90" + link},
		{"-c p.f90", cache, "gfortran -IROOT/include -IROOT/cache/impi/module-KEY -fallow-argument-mismatch -c p.f90"},
		{"-c p.f90", home, "gfortran -IROOT/include -IROOT/.cache/impi/module-KEY -fallow-argument-mismatch -c p.f90"},
		{"-fc=old -c p.f90", cache, "old -IROOT/include -IROOT/cache/impi/module-KEY -c p.f90"},
		{"-showme:libs", cache, "impi_fortran mpi_abi"},
		{"-showme:libs -fdefault-integer-8", home, "impi_fortran8 mpi_abi"},
	} {
		got, err := try(t, root, Fortran, tc.args, tc.env)
		got = regexp.MustCompile("module-[0-9a-f]+").ReplaceAllString(got, "module-KEY")
		if err != nil || got != tc.want {
			t.Errorf("%s (%s): %s, %v; want %s", tc.args, tc.env, got, err, tc.want)
		}
	}
	if calls, err := os.ReadFile(filepath.Join(root, "calls")); err != nil || strings.Count(string(calls), "called") != 6 {
		t.Errorf("the compiler was called %q times (%v), want once for each of two modules in each of two caches, and for INTEGERs of 8 bytes", calls, err)
	}
	if _, err := try(t, root, Fortran, "-fc=other -c p.f90", cache); !errors.Is(err, errNoModule) || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("with a compiler that takes no module: %v", err)
	}
	if _, err := try(t, root, Fortran, "-c p.f90"); !errors.Is(err, errNoCache) {
		t.Errorf("without a folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "include/mpif.h"), []byte("! another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := try(t, root, Fortran, "-c p.f90", cache); err != nil {
		t.Error(err)
	}
	if calls, _ := os.ReadFile(filepath.Join(root, "calls")); strings.Count(string(calls), "called") != 8 {
		t.Errorf("the module of another mpif.h was not compiled")
	}
}

// TestAnotherName calls the wrapper by a link in another folder.
func TestAnotherName(t *testing.T) {
	root := installation(t, "include/mpi.h", "lib/libmpi_abi.so")
	self := filepath.Join(root, "bin", "impicc")
	if err := os.Symlink(self, filepath.Join(root, "tools", "mpicc_abi")); err != nil {
		t.Fatal(err)
	}
	got, err := try(t, root, C, "-c p.c", "CC=mpicc_abi")
	if want := "cc -IROOT/include -c p.c"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if _, err := exec.LookPath("mpicc_abi"); err != nil {
		t.Fatal(err)
	}
}
