package ctest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/skips"
)

// installed does what make install does, with the programs of the kit: its tree is then
// moved, as one that is packed is.
func installed(t *testing.T) *Kit {
	t.Helper()
	if os.Getenv(Installed) != "" {
		return kit(t)
	}
	k, dir := kit(t), t.TempDir()
	words := []string{"install", "BUILT=1", "BIN=" + filepath.Join(k.Dir, "bin"), "LIB=" + filepath.Join(k.Dir, "lib"),
		"DESTDIR=" + filepath.Join(dir, "packed"), "PREFIX=/usr"}
	if _, err := Run(t.Context(), "../..", nil, "make", words...); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(dir, "there")
	if err := os.Rename(filepath.Join(dir, "packed/usr"), there); err != nil {
		t.Fatal(err)
	}
	return &Kit{Dir: there}
}

// in runs a command in dir, which has to succeed.
func in(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := Run(t.Context(), dir, nil, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInstall compiles and runs programs with an installed tree.
func TestInstall(t *testing.T) {
	k := installed(t)
	source, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	ring := filepath.Join(source, "ring.c")
	for _, wrapper := range []string{"impicc", "mpicc_abi"} {
		t.Run(wrapper, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "ring")
			in(t, "", k.Command(wrapper), "-o", program, ring)
			succeed(t, []string{k.Command("impiexec"), "-n", "4", program}, "ring")
			succeed(t, onSites(t, k, []string{program}, ""), "ring")
		})
	}
	t.Run("share", func(t *testing.T) {
		for _, name := range []string{
			"man/man1/impi-node.1", "man/man1/impi-node-status.1", "man/man1/impiexec.1", "man/man1/impicxx.1", "man/man1/impifort.1", "bash-completion/completions/impi-node",
			"fish/vendor_completions.d/impi-node.fish", "zsh/site-functions/_impi-node", "bash-completion/completions/impiexec",
			"impi/grafana.json", "impi/sdk/plugins/c/impi_plugin.h", "impi/sdk/plugins/c/Makefile", "impi/sdk/plugins/sdk/go.mod", "impi/sdk/plugins/sdk/support/ring/region.go", "impi/sdk/examples/plugins/python/src/service.py", "doc/impi/impi-node.md", "doc/impi/conformance/impi.md", "doc/impi/LICENSE", "../lib/systemd/system/impi-server@.service",
		} {
			if st, err := os.Stat(filepath.Join(k.Dir, "share", name)); err != nil || st.Size() < 500 {
				t.Errorf("%s: %v, %v", name, st, err)
			}
		}
	})
	t.Run("units", func(t *testing.T) {
		if os.Getenv(Installed) != "" {
			skips.NotRun(t, "it is not known with which PREFIX it was installed", "unset "+Installed)
		}
		for _, name := range []string{"impi-names.service", "impi-server@.service"} {
			text, err := os.ReadFile(filepath.Join(k.Dir, "lib/systemd/system", name))
			if err != nil || !strings.Contains(string(text), "\nExecStart=/usr/bin/impi-server ") {
				t.Errorf("%s, %v:\n%s", name, err, text)
			}
		}
	})
	t.Run("pkg-config", func(t *testing.T) {
		skips.Programs(t, "pkg-config")
		dir := t.TempDir()
		flags := in(t, "", "env", "PKG_CONFIG_PATH="+filepath.Join(k.Dir, "lib/pkgconfig"), "pkg-config", "--cflags", "--libs", "impi")
		in(t, dir, "cc", append([]string{"-o", "ring", ring}, strings.Fields(flags)...)...)
		succeed(t, []string{k.Command("impiexec"), "-n", "4", filepath.Join(dir, "ring")}, "ring")
	})
	t.Run("cmake", func(t *testing.T) {
		skips.Programs(t, "cmake", "make", "ctest")
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "CMakeLists.txt"), fmt.Appendf(nil, cmakeLists, source), 0o600); err != nil {
			t.Fatal(err)
		}
		build := filepath.Join(dir, "build")
		out := in(t, "", "cmake", "-S", dir, "-B", build, "-DMPI_C_COMPILER="+k.Command("impicc"),
			"-DMPI_CXX_COMPILER="+k.Command("impicxx"), "-DMPIEXEC_EXECUTABLE="+k.Command("impiexec"))
		if !strings.Contains(out, "FOUND 5.0 5.0") {
			t.Errorf("CMake did not find version 5.0:\n%s", out)
		}
		in(t, "", "cmake", "--build", build)
		if other := in(t, build, "ldd", "ring"); !strings.Contains(other, k.Dir) {
			t.Errorf("the program uses another library:\n%s", other)
		}
		out = in(t, build, "ctest", "--output-on-failure")
		if !strings.Contains(out, "100% tests passed, 0 tests failed out of 2") {
			t.Errorf("not all of the project's tests were run:\n%s", out)
		}
	})
}

// A project as people have them; its tests are run by what find_package says.
const cmakeLists = `cmake_minimum_required(VERSION 3.10)
project(project C CXX)
find_package(MPI REQUIRED)
message(STATUS "FOUND ${MPI_C_VERSION} ${MPI_CXX_VERSION}")
set(DIR %q)
add_executable(ring ${DIR}/ring.c)
target_link_libraries(ring MPI::MPI_C)
add_executable(ctors ${DIR}/ctors.cc)
target_link_libraries(ctors MPI::MPI_CXX)
enable_testing()
foreach(name ring ctors)
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4 ${MPIEXEC_PREFLAGS} ${name} ${MPIEXEC_POSTFLAGS})
  set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "OK ${name}")
endforeach()
`
