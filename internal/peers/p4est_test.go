package peers

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// quickP4est are its test programs that always run; the others do if the variable
// wholeSuite is set. Each checks its results and aborts if they are wrong.
var quickP4est = []string{"test_balance2", "test_comm", "test_ghost2", "test_load2", "test_loadsave2", "test_partition3", "test_subcomm2", "test_wrap2"}

// notP4est are no MPI programs, or need a library that is not there.
var notP4est = []string{"test_edge_face_corners3", "test_face_transform3", "test_hash", "test_periodic3", "test_reorder2", "test_reorder3"}

// p4est is its source unpacked, and its library.
type p4est struct {
	k         *ctest.Kit
	root, bin string
}

func (p *p4est) compile(t *testing.T, args ...string) {
	t.Helper()
	own, _ := filepath.Abs(filepath.Join("testdata", "p4est"))
	words := []string{"-O1", "-w", "-std=gnu99", "-I", own}
	for _, dir := range []string{"src", "sc/src", "sc/iniparser", "sc/libb64"} {
		words = append(words, "-I", filepath.Join(p.root, dir))
	}
	if _, err := ctest.Run(t.Context(), p.bin, nil, p.k.Command("impicc"), append(words, args...)...); err != nil {
		t.Error(err)
	}
}

// unpackP4est compiles the library with ours, or ends the test.
func unpackP4est(t *testing.T) *p4est {
	t.Helper()
	archive, err := P4est.Find()
	if err != nil {
		notThere(t, err)
	}
	needC(t)
	p := &p4est{k: &ctest.Kit{Dir: ownCDir}, root: t.TempDir(), bin: t.TempDir()}
	if given := os.Getenv(ctest.Installed); given != "" {
		p.k.Dir = given
	}
	empty := filepath.Join(p.bin, "empty.c")
	if err := os.WriteFile(empty, []byte("#include <zlib.h>\nint main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), p.bin, nil, "cc", "-o", "empty", empty, "-lz"); err != nil {
		skips.NotRun(t, "there is no zlib to compile with", "apt-get install zlib1g-dev")
	}
	if _, err := ctest.Run(t.Context(), p.root, nil, "tar", "-xf", archive, "--strip-components=1", "--no-same-owner"); err != nil {
		t.Fatal(err)
	}
	parts := make([][]string, runtime.NumCPU())
	for i, source := range p.sources(t) {
		parts[i%len(parts)] = append(parts[i%len(parts)], source)
	}
	t.Run("library", func(t *testing.T) {
		for _, part := range parts {
			t.Run("part", func(t *testing.T) { t.Parallel(); p.compile(t, append([]string{"-c"}, part...)...) })
		}
	})
	objects, err := filepath.Glob(filepath.Join(p.bin, "*.o"))
	if err != nil || t.Failed() {
		t.Fatal("it was not compiled")
	}
	if _, err := ctest.Run(t.Context(), p.bin, nil, "ar", append([]string{"rc", "lib.a"}, objects...)...); err != nil {
		t.Fatal(err)
	}
	return p
}

// sources returns the library's own source files, without those that other libraries
// replace or that need what nobody has.
func (p *p4est) sources(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"src/*.c", "sc/src/*.c", "sc/iniparser/*.c", "sc/libb64/*.c"} {
		files, err := filepath.Glob(filepath.Join(p.root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range files {
			out := []string{"getopt", "obstack", "sc_lua", "sc_blas", "sc_lapack", "sc_dmatrix", "sc_darray", "sc_builtin", "sc_bspline", "metis", "sc_v4l2"}
			if name := filepath.Base(f); !slices.ContainsFunc(out, func(part string) bool { return strings.Contains(name, part) }) {
				all = append(all, f)
			}
		}
	}
	return all
}

// TestP4est runs p4est's own tests with our library, on one site and on two: meshes that
// are made, refined, divided anew and saved, with messages, collectives, shared windows
// and parallel files.
func TestP4est(t *testing.T) {
	soak.SkipUnlessSoak(t, "the library is compiled for half a minute")
	p := unpackP4est(t)
	tests, err := filepath.Glob(filepath.Join(p.root, "test", "test_*.c"))
	if err != nil || len(tests) < len(quickP4est) {
		t.Fatalf("%d tests: %v", len(tests), err)
	}
	for _, source := range tests {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		if slices.Contains(notP4est, name) || os.Getenv(wholeSuite) == "" && !slices.Contains(quickP4est, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.compile(t, "-o", name, source, "lib.a", "-lm", "-lz")
			for sites := 1; sites <= 2 && !t.Failed(); sites++ {
				p.run(t, name, sites)
			}
		})
	}
}

func (p *p4est) run(t *testing.T, name string, sites int) {
	t.Helper()
	dir := t.TempDir() // it writes files
	job := suiteRun{procs: 4}.job(filepath.Join(p.bin, name), make([]string, sites)...)
	if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if out, err := ctest.Run(ctx, dir, nil, p.k.Command("impi-node"), "-config", "job.hcl"); err != nil {
		t.Errorf("%d sites: %v\n%.4000s", sites, ctx.Err(), out[max(0, len(out)-4000):])
	}
}
