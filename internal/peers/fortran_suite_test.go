package peers

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/skips"
)

// fortranFolders are the parts of the suite's three folders of Fortran programs.
var fortranFolders = []string{
	"attr", "coll", "comm", "datatype", "ext", "f90types", "info", "init", "io", "misc", "profile", "pt2pt", "rma", "spawn", "subarray", "timer", "topo",
}

var fortranEndings = []string{".f", ".f90", ".c", "f.f", "f90.f90"}

// fortranParts are the sources of programs beside their own, by expressions of their names. One is
// taken from where it is found first: some are in the folder of another form of Fortran.
var fortranParts = []struct{ programs, part string }{
	{`f77/pt2pt/(p?[irs]*send|sendrecv|sendrecvrepl)f$`, "utilsf.f"},
	{`f77/pt2pt/greqf$`, "dummyf.f"},
	{`f90/pt2pt/(p?[irs]*send|sendrecv|sendrecvrepl)f90$`, "utilsf90.f90"},
	{`f90/pt2pt/greqf90$`, "dummyf90.f90"},
	{`f08/pt2pt/(p?[irs]*send|sendrecv|sendrecvrepl)f08$`, "utilsf08.f90"},
	{`f08/pt2pt/greqf08$`, "dummyf08.f90"},
	{`/datatype/bottom$`, "bottomc.c"},
	{`/attr/fandcattrf`, "fandcattrc.c"}, {`/attr/attrlangf`, "attrlangc.c"},
	{`f77/ext/c2f2cf$`, "c2f2c.c"}, {`f.*/ext/c2f2cf90$`, "../../f90/ext/c2f902c.c"}, {`/ext/ctypesinf`, "../../f77/ext/ctypesfromc.c"},
	{`f77/io/c2f2ciof$`, "c2f2cio.c"}, {`/io/c2f2ciof90$`, "../../f90/io/c2f902cio.c"},
	{`f77/rma/c2f2cwinf$`, "c2f2cwin.c"}, {`/rma/c2f2cwinf..$`, "c2f902cwin.c"},
}

// fortranSuite is the suite with what its Fortran programs need.
type fortranSuite struct {
	*suite
	cache string // of modules
}

// unpackFortran does what the suite's configure and make do: it fills in kinds, and makes the
// programs that read and write files of templates.
func unpackFortran(t *testing.T) *fortranSuite {
	t.Helper()
	skips.Program(t, "gfortran")
	skips.Program(t, "perl")
	f := &fortranSuite{suite: unpackSuite(t), cache: "XDG_CACHE_HOME=" + t.TempDir()}
	includes, err := filepath.Glob(filepath.Join(f.root, "f77", "*", "*.h.in"))
	if err != nil || len(includes) == 0 {
		t.Fatalf("no files to fill in: %v", err)
	}
	for _, name := range includes {
		f.rewrite(t, name, strings.TrimSuffix(name, ".in"), func(text string) string {
			return strings.NewReplacer("@F77_MPI_ADDRESS@", "integer*8", "@F77_MPI_OFFSET@", "integer*8").Replace(text)
		})
	}
	merge := filepath.Join(f.root, "maint", "testmerge")
	f.rewrite(t, merge+".in", merge, func(text string) string { _, rest, _ := strings.Cut(text, "\n"); return rest })
	io77, io90 := filepath.Join(f.root, "f77", "io"), filepath.Join(f.root, "f90", "io")
	f.rewrite(t, filepath.Join(io77, "ioharness.defn"), filepath.Join(io90, "ioharness.defn"), func(text string) string {
		text = regexp.MustCompile(`filename="(.*)f\.f"`).ReplaceAllString(text, `filename="${1}f90.f90"`)
		return regexp.MustCompile(`include.*iooffset.*`).ReplaceAllString(text, "integer (kind=MPI_OFFSET_KIND)offset")
	})
	f.rewrite(t, filepath.Join(io77, "ioharness.tlt"), filepath.Join(io90, "ioharness.tlt"), func(text string) string {
		text = regexp.MustCompile(`include.*mpif.*`).ReplaceAllString(text, "use mpi")
		text = strings.ReplaceAll(text, "fheader", "f90header")
		text = regexp.MustCompile(`(?m)^C`).ReplaceAllString(text, "!")
		return regexp.MustCompile(`(?m)^.*implicit *none.*\n`).ReplaceAllString(text, "")
	})
	for _, folder := range []string{"f77", "f90", "f08"} {
		harness := filepath.Join(f.root, folder, "io", "ioharness.tlt")
		f.rewrite(t, harness, harness, func(text string) string {
			return strings.Replace(text, "fparms/1,4000,", "fparms/1,40,", 1) // minutes of shared pointers
		})
		if _, err := ctest.Run(t.Context(), filepath.Join(f.root, folder, "io"), nil, "perl", merge, "-defn=../../maint/common.defn", "ioharness.defn", "ioharness.tlt"); err != nil {
			t.Fatal(err)
		}
	}
	f.rewrite(t, filepath.Join("testdata", "suite", "mpitestconf.h"), filepath.Join(f.root, "include", "mpitestconf.h"), func(text string) string { return text })
	own, err := filepath.Abs(filepath.Join("testdata", "suite", "removed.c"))
	if err != nil {
		t.Fatal(err)
	}
	f.compile(t, t.TempDir(), own, f.object(own))
	for _, name := range []string{"mtest_f77.f", "mtest_f90.f90", "mtest_f08.f90"} {
		f.compile(t, t.TempDir(), filepath.Join(f.root, "util", name), f.object(name))
	}
	return f
}

func (f *fortranSuite) rewrite(t *testing.T, from, to string, how func(string) string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, []byte(how(string(text))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fortranSuite) object(source string) string {
	return filepath.Join(f.bin, strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))+".o")
}

// compile compiles one source. Its modules go into dir.
func (f *fortranSuite) compile(t *testing.T, dir, source, object string) {
	t.Helper()
	own, err := filepath.Abs(filepath.Join("testdata", "suite"))
	if err != nil {
		t.Fatal(err)
	}
	command := f.k.Command("impifort")
	words := []string{
		"-std=legacy", "-fcray-pointer", "-ffree-line-length-none", "-fno-range-check", "-w", "-O1", "-J", dir,
		"-I", filepath.Join(f.root, "f77", "attr"), "-c", "-o", object, source,
	}
	if filepath.Ext(source) == ".c" {
		command = f.k.Command("impicc")
		words = f.flags("-include", filepath.Join(own, "fint.h"), "-DF77_NAME_LOWER_USCORE", "-c", "-o", object, source)
	}
	if _, err := ctest.Run(t.Context(), dir, []string{f.cache}, command, words...); err != nil {
		t.Fatal(err)
	}
}

// build makes a program.
func (f *fortranSuite) build(t *testing.T, program string) (path string) {
	t.Helper()
	dir := t.TempDir()
	source := sourceOf(f.root, program, fortranEndings)
	var sources, objects []string
	if source != "" {
		sources = append(sources, source)
	}
	for _, p := range fortranParts {
		if regexp.MustCompile(p.programs).MatchString(program) {
			sources = append(sources, filepath.Join(f.root, filepath.Dir(program), p.part))
		}
	}
	inFortran := false
	for i, s := range sources {
		object := filepath.Join(dir, strconv.Itoa(i)+".o")
		f.compile(t, dir, s, object)
		objects = append(objects, object)
		inFortran = inFortran || filepath.Ext(s) != ".c"
	}
	if inFortran {
		objects = append(objects, f.object("mtest_"+program[:3]), f.object("removed.c"))
	} else {
		for _, o := range f.objects {
			if filepath.Base(o) != "mtest_thread.o" {
				objects = append(objects, o)
			}
		}
	}
	command := "impifort"
	if !inFortran {
		command = "impicc"
	}
	path = filepath.Join(dir, filepath.Base(program))
	if _, err := ctest.Run(t.Context(), dir, []string{f.cache}, f.k.Command(command), append(objects, "-o", path, "-lm", "-pthread")...); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFortranSuite runs MPICH's test programs in Fortran on one site and on two: those of
// fortran_quick.txt, and all but those of fortran_not.txt if the variable wholeSuite is set.
func TestFortranSuite(t *testing.T) {
	f := unpackFortran(t)
	not, quick := readNotes(t, "fortran_not.txt"), readNotes(t, "fortran_quick.txt")
	whole := os.Getenv(wholeSuite) != ""
	known := map[string]bool{}
	for _, form := range []string{"f77", "f90", "f08"} {
		for _, part := range fortranFolders {
			folder := form + "/" + part
			if _, err := os.Stat(filepath.Join(f.root, folder)); err != nil {
				continue
			}
			for _, r := range readList(t, f.root, folder, fortranEndings...) {
				known[r.program] = true
				if _, isQuick := quick[r.program]; !isQuick && !whole || not[r.program] != "" {
					continue
				}
				t.Run(r.program, func(t *testing.T) {
					t.Parallel()
					path := f.build(t, r.program)
					f.start(t, r, path, ownSite)
					if r.procs > 1 {
						f.start(t, r, path, ownSite, ownSite)
					}
				})
			}
		}
	}
	for _, notes := range []map[string]string{not, quick} {
		for program := range notes {
			if !known[program] {
				t.Errorf("%s is in no list of the suite", program)
			}
		}
	}
	for program, why := range not {
		if why == "" {
			t.Errorf("fortran_not.txt: there is no reason for %s", program)
		}
	}
	if len(known) < 250 {
		t.Errorf("the suite has %d programs in Fortran, that cannot be all", len(known))
	}
}
