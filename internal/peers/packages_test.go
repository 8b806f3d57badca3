package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// pack is a large program with makefiles of its own. It is built once for all versions of our
// library that have the same headers, since the standard ABI lets it run with each of them, and
// kept beside its archive.
type pack struct {
	Program
	commands []string // of a shell, in its folder; $CC is our compiler
	libs     []string // folders of its own libraries
}

var (
	hdf5 = pack{HDF5, []string{
		"./configure --enable-parallel --disable-fortran --disable-cxx --disable-java --disable-hl --disable-tools --disable-static --disable-dependency-tracking CFLAGS=-O1",
		"make -j2 -C src",
		"make -j2 -C test libh5test.la",
		"make -j2 -C testpar " + strings.Join(hdf5Tests, " "),
	}, []string{"src/.libs"}}
	// FFTW has functions for Fortran, which ask for what the standard ABI leaves to Fortran's own
	// library.
	fftw = pack{FFTW, []string{
		"./configure --enable-mpi --disable-fortran --disable-doc --disable-dependency-tracking MPICC=\"$CC\" CC=gcc CFLAGS='-O1 -DMPI_Fint=int -DMPI_Comm_f2c=MPI_Comm_fromint'",
		"make -j2",
	}, nil}
	hypre = pack{Hypre, []string{
		"cd src && ./configure --disable-fortran --with-MPI --enable-shared CFLAGS=-O1 && make -j2 && make -j2 -C test struct sstruct ij",
	}, []string{"src/hypre/lib"}}
	// The archive has no configure.
	pnetcdf = pack{PnetCDF, []string{
		"autoreconf -i",
		"./configure --disable-fortran --disable-cxx --disable-dependency-tracking --enable-shared --disable-static MPICC=\"$CC\" CFLAGS=-O1",
		"make -j2 -C src",
		"make -C test/common tests",
		"make -j2 -C test/testcases tests",
		"make -j2 -C test/nonblocking tests",
	}, []string{"src/libs/.libs"}}
	sundials = pack{SUNDIALS, []string{
		"cmake -S . -B build -DENABLE_MPI=ON -DBUILD_CVODES=OFF -DBUILD_IDAS=OFF -DBUILD_STATIC_LIBS=OFF -DEXAMPLES_INSTALL=OFF -DCMAKE_C_FLAGS=-O1",
		"make -j2 -C build",
	}, nil}
	// It asks the compiler which functions there are, as the standard ABI leaves some to Fortran's
	// library.
	mpi4py = pack{Mpi4py, []string{
		"python3 setup.py build --configure --mpicc=\"$CC\" --build-lib=built",
	}, []string{"built"}}
)

// make builds the pack, or ends the test, and returns its folder.
func (p pack) make(t *testing.T) (dir string, k *ctest.Kit) {
	t.Helper()
	archive, err := p.Find()
	if err != nil {
		notThere(t, err)
	}
	needC(t)
	k = &ctest.Kit{Dir: ownCDir}
	if given := os.Getenv(ctest.Installed); given != "" {
		k.Dir = given
	}
	name, _, _ := strings.Cut(archive, ".orig.")
	dir = name + "-" + p.recipe(t, k)
	unlock, err := lock(t.Context(), filepath.Dir(archive), func() { t.Log("waiting for another one that builds") })
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	built := filepath.Join(dir, "built-by-impi")
	if _, err := os.Stat(built); err == nil {
		return dir, k
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := ctest.Run(t.Context(), dir, nil, "tar", "-xf", archive, "--strip-components=1", "--no-same-owner"); err != nil {
		t.Fatal(err)
	}
	env := append(p.environment(dir, k), "CC="+k.Command("impicc")+" -norpath")
	for _, c := range p.commands {
		if out, err := ctest.Run(t.Context(), dir, env, "sh", "-ec", c); err != nil {
			t.Fatalf("%s: %v\n%.4000s", c, err, out[max(0, len(out)-4000):])
		}
	}
	if err := os.WriteFile(built, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, k
}

// recipe names what is built and how.
func (p pack) recipe(t *testing.T, k *ctest.Kit) string {
	t.Helper()
	h := sha256.New()
	fmt.Fprintln(h, p.sha256, p.commands)
	for _, name := range []string{"mpi.h", "mpi_generated.h"} {
		text, err := os.ReadFile(filepath.Join(k.Dir, "include", name))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// environment is what its programs need to find the libraries.
func (p pack) environment(dir string, k *ctest.Kit) []string {
	folders := filepath.Dir(k.Library())
	for _, f := range p.libs {
		folders += ":" + filepath.Join(dir, f)
	}
	return []string{"LD_LIBRARY_PATH=" + folders}
}

// run runs one of its programs with procs on some sites, in the folder work.
func (p pack) run(t *testing.T, k *ctest.Kit, dir, work string, sites, procs int, words ...string) (output string) {
	t.Helper()
	job := suiteRun{procs: procs, args: words[1:]}.job(words[0], make([]string, sites)...)
	file := filepath.Join(work, "job.hcl") // procs run in its folder
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := ctest.Run(ctx, work, p.environment(dir, k), k.Command("impi-node"), "-config", file)
	if err != nil {
		t.Errorf("%s with %d procs on %d sites: %v\n%.4000s", strings.Join(words, " "), procs, sites, errors.Join(err, ctx.Err()), out[max(0, len(out)-4000):])
	}
	return out
}

// hdf5Tests are HDF5's tests of parallel files. One looks at what another has left.
var hdf5Tests = []string{"t_mpi", "t_pread", "testphdf5", "t_shapesame", "t_filters_parallel", "t_init_term", "t_pshutdown", "t_prestart", "t_bigio", "t_cache", "t_cache_image"}

// longHDF5 take minutes.
var longHDF5 = []string{"t_bigio", "t_cache", "t_cache_image"}

// TestHDF5 runs HDF5's own tests of parallel files on one site and on two.
func TestHDF5(t *testing.T) {
	soak.SkipUnlessSoak(t, "the library is compiled for some minutes")
	dir, k := hdf5.make(t)
	for sites := 1; sites <= 2; sites++ {
		work := t.TempDir()
		for _, name := range hdf5Tests {
			if err := os.Symlink(filepath.Join(dir, "testpar", ".libs", name), filepath.Join(work, name)); err != nil {
				t.Fatal(err) // one starts itself from the folder that it runs in
			}
		}
		for _, name := range hdf5Tests {
			if slices.Contains(longHDF5, name) && os.Getenv(wholeSuite) == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s on %d sites", name, sites), func(t *testing.T) {
				if out := hdf5.run(t, k, dir, work, sites, 4, filepath.Join(work, name)); strings.Contains(out, "*FAILED*") {
					t.Errorf("a part has failed:\n%.4000s", out)
				}
			})
		}
	}
}

// TestFFTW verifies transforms of several shapes, complex and real, over procs of one site and of
// two.
func TestFFTW(t *testing.T) {
	soak.SkipUnlessSoak(t, "the library is compiled for a minute")
	dir, k := fftw.make(t)
	words := []string{filepath.Join(dir, "mpi", "mpi-bench"), "-v1"}
	shapes := []string{"ocf12x16x20", "icb24x18", "ocf1000", "ocb7x9x5", "orf16x20x12", "irb20x16", "orf9x7x4v3"}
	for _, s := range shapes {
		words = append(words, "--verify", s)
	}
	for _, procs := range []int{1, 2, 3, 4} {
		sites := min(procs, 2)
		t.Run(fmt.Sprintf("%d procs on %d sites", procs, sites), func(t *testing.T) {
			out := fftw.run(t, k, dir, t.TempDir(), sites, procs, words...)
			for _, s := range shapes {
				if !strings.Contains(out, s+" ") {
					t.Errorf("nothing is said of %s:\n%.2000s", s, out)
				}
			}
		})
	}
}

// TestHypre solves equations of hypre's own tests, some with procs that have no part of the grid.
func TestHypre(t *testing.T) {
	soak.SkipUnlessSoak(t, "the library is compiled for a minute")
	dir, k := hypre.make(t)
	for name, c := range map[string]struct {
		procs int
		words string
	}{
		"structured":          {4, "struct -n 12 12 12 -P 2 1 2 -solver 1"},
		"procs without work":  {6, "struct -n 12 12 12 -P 2 2 1 -solver 1"},
		"blocks":              {7, "struct -n 6 6 6 -b 2 2 2 -P 2 2 1 -solver 3"},
		"algebraic multigrid": {4, "ij -n 10 10 10 -P 2 2 1 -solver 1"},
	} {
		for sites := 1; sites <= 2; sites++ {
			t.Run(fmt.Sprintf("%s on %d sites", name, sites), func(t *testing.T) {
				words := strings.Fields(c.words)
				words[0] = filepath.Join(dir, "src", "test", words[0])
				out := hypre.run(t, k, dir, t.TempDir(), sites, c.procs, words...)
				if !strings.Contains(out, "Final") || strings.Contains(out, "nan") {
					t.Errorf("no residual, or none that is a number:\n%.2000s", out)
				}
			})
		}
	}
}

// TestPnetCDF runs PnetCDF's own tests of blocking and nonblocking accesses on one site and on two.
func TestPnetCDF(t *testing.T) {
	soak.SkipUnlessSoak(t, "the library is compiled for a minute")
	for name, packages := range map[string]string{"autoreconf": "autoconf automake", "libtoolize": "libtool", "m4": "m4"} {
		skips.ProgramOf(t, name, packages)
	}
	dir, k := pnetcdf.make(t)
	var programs []string
	for _, folder := range []string{"testcases", "nonblocking"} {
		list, err := filepath.Glob(filepath.Join(dir, "test", folder, ".libs", "*"))
		if err != nil || len(list) < 10 {
			t.Fatalf("%d programs of %s were compiled: %v", len(list), folder, err)
		}
		programs = append(programs, list...)
	}
	for sites := 1; sites <= 2; sites++ {
		work := t.TempDir()
		for _, program := range programs {
			name := filepath.Base(program)
			t.Run(fmt.Sprintf("%s on %d sites", name, sites), func(t *testing.T) {
				out := pnetcdf.run(t, k, dir, work, sites, 4, program, filepath.Join(work, name+".nc"))
				if strings.Contains(out, "fail") || !strings.Contains(out, "pass") && !strings.Contains(out, "skip") {
					t.Errorf("it does not say that it has passed:\n%.4000s", out)
				}
			})
		}
	}
}

// TestSUNDIALS runs tests of SUNDIALS' vectors and linear solvers, which check themselves, and some
// of its examples, whose results are compared with those that come with them.
func TestSUNDIALS(t *testing.T) {
	soak.SkipUnlessSoak(t, "the library is compiled for half a minute")
	skips.ProgramOf(t, "cmake", "cmake")
	dir, k := sundials.make(t)
	number := `([0-9][-+.e0-9]*)`
	for _, c := range []struct {
		words   string
		results string // matches a line with results; empty: the program says SUCCESS
	}{
		{"nvector/parallel/test_nvector_mpi 5000 4 0", ""},
		{"nvector/mpiplusx/test_nvector_mpiplusx 5000 4 0", ""},
		{"sunlinsol/spgmr/parallel/test_sunlinsol_spgmr_parallel 100 1 1 50 1e-3 0", ""},
		{"sunlinsol/spbcgs/parallel/test_sunlinsol_spbcgs_parallel 100 1 50 1e-3 0", ""},
		{"sunlinsol/sptfqmr/parallel/test_sunlinsol_sptfqmr_parallel 100 1 50 1e-3 0", ""},
		{"sunlinsol/spfgmr/parallel/test_sunlinsol_spfgmr_parallel 100 1 50 1e-3 0", ""},
		{"cvode/parallel/cvDiurnal_kry_p", `^At .*c1, c2 = +\S+ +` + number},
		{"cvode/parallel/cvDiurnal_kry_bbd_p", `^At .*c1, c2 = +\S+ +` + number},
		{"ida/parallel/idaFoodWeb_kry_p", `^\S* +` + number + " +" + number + ` +\|`},
		{"kinsol/parallel/kinFoodWeb_kry_p", `^ ` + number + ` \S+ \S+ ` + number},
	} {
		words := strings.Fields(c.words)
		program := filepath.Join(dir, "build", "examples", words[0])
		for sites := 1; sites <= 2; sites++ {
			t.Run(fmt.Sprintf("%s on %d sites", filepath.Base(program), sites), func(t *testing.T) {
				out := sundials.run(t, k, dir, t.TempDir(), sites, 4, append([]string{program}, words[1:]...)...)
				if c.results == "" {
					if !strings.Contains(out, "SUCCESS") || strings.Contains(out, "FAIL") {
						t.Errorf("it does not say that it has passed:\n%.4000s", out)
					}
					return
				}
				text, err := os.ReadFile(filepath.Join(dir, "examples", words[0]+".out"))
				if err != nil {
					t.Fatal(err)
				}
				got, want := resultsOf(t, out, c.results), resultsOf(t, string(text), c.results)
				if len(got) != len(want) || len(want) < 4 {
					t.Fatalf("%d results, want %d:\n%.4000s", len(got), len(want), out)
				}
				for i := range want {
					if d := math.Abs(got[i] - want[i]); d > 0.02*math.Abs(want[i]) {
						t.Errorf("result %d is %g, not %g:\n%.4000s", i, got[i], want[i], out)
					}
				}
			})
		}
	}
}

// TestMpi4py runs mpi4py's own tests with 1, 2 and 4 procs on one site, and with 2 and 4 on two.
func TestMpi4py(t *testing.T) {
	soak.SkipUnlessSoak(t, "the module is compiled for a minute")
	python := skips.ProgramOf(t, "python3", "python3 python3-dev")
	skips.ProgramOf(t, "cython3", "cython3")
	dir, k := mpi4py.make(t)
	for _, procs := range []int{1, 2, 4} {
		for sites := 1; sites <= min(procs, 2); sites++ {
			t.Run(fmt.Sprintf("%d procs on %d sites", procs, sites), func(t *testing.T) {
				// Each proc says how many of its tests ran, and OK or FAILED.
				out := mpi4py.run(t, k, dir, t.TempDir(), sites, procs, python, filepath.Join(dir, "test", "runtests.py"), "--path="+filepath.Join(dir, "built"))
				ok := regexp.MustCompile(`(?m)^OK\b`).FindAllString(out, -1)
				if len(ok) != procs {
					t.Errorf("%d of %d procs say OK:\n%.4000s", len(ok), procs, out[max(0, len(out)-4000):])
				}
			})
		}
	}
}

// resultsOf returns what the groups of a regular expression match in the lines of a text.
func resultsOf(t *testing.T, text, line string) (all []float64) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?m)"+line).FindAllStringSubmatch(text, -1) {
		for _, s := range m[1:] {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
	}
	return all
}
