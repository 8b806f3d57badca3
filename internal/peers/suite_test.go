package peers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/openimpi/impi/internal/ctest"
	"github.com/openimpi/impi/internal/soak"
)

// wholeSuite is a variable of the environment that has all of MPICH's test programs run
// if it is set, which takes long. Else those of testdata/suite/quick.txt run.
const wholeSuite = "IMPI_SUITE"

// suiteFolders are the suite's parts that are about MPI as its text says, in C.
var suiteFolders = []string{
	"attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "io", "part", "pt2pt", "rma", "spawn", "topo",
	"errors/attr", "errors/coll", "errors/comm", "errors/datatype", "errors/group", "errors/io", "errors/pt2pt", "errors/rma",
	"errors/spawn", "errors/topo",
	"threads/coll", "threads/comm", "threads/init", "threads/pt2pt", "threads/rma", "threads/spawn",
}

// suiteRun is a line of the suite's lists: a program, with how many procs and which
// arguments it runs.
type suiteRun struct {
	program string // folder and name
	procs   int
	args    []string
	fails   bool // its job is to end with another status than 0
}

// readList reads one of the suite's lists: programs with a source with one of these endings. It
// leaves out what wants much memory, what is about MPICH's own settings, and what MPICH itself is
// expected to fail.
func readList(t *testing.T, root, folder string, endings ...string) (runs []suiteRun) {
	t.Helper()
	var text []byte
	var err error
	for _, name := range []string{"testlist", "testlist.in"} {
		if text, err = os.ReadFile(filepath.Join(root, folder, name)); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if slices.ContainsFunc([]string{"@largetest@", "mem=", "env=MPIR_", "xfail="}, func(s string) bool { return strings.Contains(line, s) }) {
			continue
		}
		if _, after, ok := strings.Cut(line[min(1, len(line)):], "@"); ok && line[0] == '@' {
			line = after
		}
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		procs, err := strconv.Atoi(words[1])
		if err != nil {
			continue // a line that its configure would change
		}
		r := suiteRun{program: folder + "/" + words[0], procs: procs}
		for _, w := range words[2:] {
			if arg, ok := strings.CutPrefix(w, "arg="); ok {
				r.args = append(r.args, arg)
			}
			r.fails = r.fails || w == "resultTest=TestStatus" || w == "resultTest=TestErrFatal"
		}
		if sourceOf(root, r.program, endings) != "" {
			runs = append(runs, r) // else it is another one compiled in another way
		}
	}
	return runs
}

// sourceOf is the source of a program; empty if there is none with these endings.
func sourceOf(root, program string, endings []string) string {
	for _, e := range endings {
		source := filepath.Join(root, program+e)
		if _, err := os.Stat(source); err == nil {
			return source
		}
	}
	return ""
}

// readNotes reads a file of testdata/suite: a program a line, and a note on it.
func readNotes(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "suite", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	notes := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		program, note, _ := strings.Cut(lines.Text(), " ")
		if program != "" && program != "#" {
			notes[program] = strings.TrimSpace(note)
		}
	}
	return notes
}

// suite is the suite unpacked, and what all of its programs are linked with.
type suite struct {
	k       *ctest.Kit
	root    string // test/mpi
	bin     string
	objects []string

	mu    sync.Mutex
	built map[string]*sync.Once
}

// unpackSuite makes the suite ready, or ends the test.
func unpackSuite(t *testing.T) *suite {
	t.Helper()
	archive, err := MPICHTests.Find()
	if err != nil {
		notThere(t, err)
	}
	needC(t)
	s := &suite{k: &ctest.Kit{Dir: ownCDir}, bin: t.TempDir(), built: map[string]*sync.Once{}}
	if given := os.Getenv(ctest.Installed); given != "" {
		s.k.Dir = given
	}
	dir := t.TempDir()
	if _, err := ctest.Run(t.Context(), dir, nil, "tar", "-xf", archive, "--strip-components=1", "--no-same-owner", "--wildcards", "*/test/mpi"); err != nil {
		t.Fatal(err)
	}
	s.root = filepath.Join(dir, "test", "mpi")
	if err := os.WriteFile(filepath.Join(s.root, "dtpools", "dtpoolsconf.h"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob(filepath.Join(s.root, "dtpools", "src", "*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of its datatypes: %v", err)
	}
	for _, name := range []string{"mtest.c", "mtest_common.c", "dtypes.c", "mtest_single.c", "mtest_thread.c"} {
		sources = append(sources, filepath.Join(s.root, "util", name))
	}
	for _, source := range sources {
		object := filepath.Join(s.bin, strings.TrimSuffix(filepath.Base(source), ".c")+".o")
		if _, err := ctest.Run(t.Context(), "", nil, s.k.Command("impicc"), s.flags("-DMTEST_USE_THREAD", "-c", "-o", object, source)...); err != nil {
			t.Fatal(err)
		}
		s.objects = append(s.objects, object)
	}
	return s
}

func (s *suite) flags(more ...string) []string {
	own, _ := filepath.Abs(filepath.Join("testdata", "suite"))
	return append([]string{
		"-std=gnu99", "-O1", "-w", "-include", filepath.Join(own, "mpi1.h"), "-I", own,
		"-I", filepath.Join(s.root, "include"), "-I", filepath.Join(s.root, "dtpools", "include"),
	}, more...)
}

// more are the other sources of a program.
func (s *suite) more(program string) []string {
	if program == "rma/mutex_bench" {
		return []string{filepath.Join(s.root, "rma", "mcs_mutex.c")}
	}
	return nil
}

// build compiles a program once.
func (s *suite) build(t *testing.T, program string) (path string) {
	t.Helper()
	path = filepath.Join(s.bin, strings.ReplaceAll(program, "/", "-"), filepath.Base(program))
	s.mu.Lock()
	once := s.built[path]
	if once == nil {
		once = new(sync.Once)
		s.built[path] = once
	}
	s.mu.Unlock()
	once.Do(func() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"-o", path, filepath.Join(s.root, program+".c")}, s.more(program)...)
		leave := "mtest_thread.o"
		if strings.HasPrefix(program, "threads/") {
			args, leave = append(args, "-DMTEST_USE_THREAD"), "mtest_single.o"
		}
		for _, o := range s.objects {
			if filepath.Base(o) != leave {
				args = append(args, o)
			}
		}
		if _, err := ctest.Run(t.Context(), "", nil, s.k.Command("impicc"), s.flags(append(args, "-lm", "-pthread")...)...); err != nil {
			t.Error(err)
		}
	})
	return path
}

// job is a job of r with its procs on some sites.
func (r suiteRun) job(path string, sites ...string) string {
	words := make([]string, 0, len(r.args)+1)
	for _, w := range append([]string{path}, r.args...) {
		words = append(words, strconv.Quote(w))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "job { embedded_server {} }\nprogram {\n  command = [%s]\n  prefix_output = false\n}\n", strings.Join(words, ", "))
	for i, inside := range sites {
		if inside == ownSite {
			inside = "spawn { slots = 64 }"
		}
		fmt.Fprintf(&b, "site \"s%d\" {\n  client = %d\n  host {\n    address = \"127.0.0.%d\"\n    procs = %d\n  }\n  %s\n}\n",
			i, i, 20+i, (r.procs+i)/len(sites), Site{Native: inside}.Inside(fmt.Sprintf("s%d", i)))
	}
	return b.String()
}

// run runs a program in a folder of its own, for it may write files and spawns itself from there.
func (s *suite) run(t *testing.T, r suiteRun, sites ...string) {
	t.Helper()
	s.start(t, r, s.build(t, r.program), sites...)
}

// start runs a program that is compiled.
func (s *suite) start(t *testing.T, r suiteRun, path string, sites ...string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatal("it was not compiled")
	}
	dir := t.TempDir()
	if err := os.Symlink(path, filepath.Join(dir, filepath.Base(path))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.hcl"), []byte(r.job(path, sites...)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := ctest.Run(ctx, dir, nil, s.k.Command("impi-node"), "-config", "job.hcl")
	switch {
	case r.fails && (err == nil || ctx.Err() != nil):
		t.Errorf("it is to fail: %v\n%s", err, out)
	case !r.fails && (err != nil || !strings.Contains(strings.ToLower(out), "no errors")):
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSuite runs MPICH's test programs with our library: the quick ones on one site and on
// two (make test: on two, if they can), and all of them on one site if the variable wholeSuite is
// set.
func TestSuite(t *testing.T) {
	s := unpackSuite(t)
	not, quick := readNotes(t, "not.txt"), readNotes(t, "quick.txt")
	whole := os.Getenv(wholeSuite) != ""
	known := map[string]bool{}
	for _, folder := range suiteFolders {
		for _, r := range readList(t, s.root, folder, ".c") {
			known[r.program] = true
			note, isQuick := quick[r.program]
			if !isQuick && (!whole || not[r.program] != "") {
				continue
			}
			name := strings.Join(append([]string{r.program, strconv.Itoa(r.procs)}, r.args...), " ")
			apart := isQuick && note != "one site" && r.procs > 1
			t.Run(name, func(t *testing.T) {
				if apart {
					soak.SkipUnlessSoak(t, "make test has it on two sites")
				}
				t.Parallel()
				s.run(t, r, ownSite)
			})
			if apart {
				t.Run(name+" two sites", func(t *testing.T) { t.Parallel(); s.run(t, r, ownSite, ownSite) })
			}
		}
	}
	for program := range quick {
		if !known[program] || not[program] != "" {
			t.Errorf("quick.txt: %s is in no list of the suite, or in not.txt", program)
		}
	}
	for program, why := range not {
		if !known[program] || why == "" {
			t.Errorf("not.txt: %s is in no list of the suite, or there is no reason", program)
		}
	}
}

// TestSuiteOnNativeSites runs the same programs, but for those that spawn, on a site of Open MPI
// and on one of MPICH, and with their procs on both.
func TestSuiteOnNativeSites(t *testing.T) {
	soak.SkipUnlessSoak(t, "a launcher of another MPI starts each program")
	needNatives(t)
	s := unpackSuite(t)
	not, native, quick := readNotes(t, "not.txt"), readNotes(t, "native.txt"), readNotes(t, "quick.txt")
	whole := os.Getenv(wholeSuite) != ""
	for _, folder := range suiteFolders {
		for _, r := range readList(t, s.root, folder, ".c") {
			_, isQuick := quick[r.program]
			if strings.Contains(r.program, "spawn/") || native[r.program] != "" || !isQuick && (!whole || not[r.program] != "") {
				continue
			}
			for name, sites := range map[string][]string{
				"Open MPI": {openMPISite + always}, "MPICH": {mpichSite + always},
				"both": {openMPISite + always, mpichSite + always}, "both by default": {openMPISite, mpichSite},
			} {
				if r.procs < len(sites) {
					continue
				}
				// One at a time, as those MPIs compute while they wait.
				t.Run(strings.Join(append([]string{r.program, strconv.Itoa(r.procs)}, r.args...), " ")+" "+name, func(t *testing.T) { s.run(t, r, sites...) })
			}
		}
	}
}

// onBoth are programs of the suite, each of which takes part of a second, that make test runs with
// their procs on a site of Open MPI and on one of MPICH.
var onBoth = []string{"rma/wintest", "errors/coll/bcastlength", "pt2pt/icprobe", "coll/redscat", "io/rdwrord"}

// TestSuiteOnBoth runs some of them.
func TestSuiteOnBoth(t *testing.T) {
	needNatives(t)
	s := unpackSuite(t)
	for _, program := range onBoth {
		list := readList(t, s.root, filepath.Dir(program), ".c")
		i := slices.IndexFunc(list, func(r suiteRun) bool { return r.program == program })
		if i < 0 {
			t.Fatalf("%s is not in the suite", program)
		}
		t.Run(program, func(t *testing.T) { s.run(t, list[i], openMPISite+always, mpichSite+always) })
	}
}

// TestSuiteLists reads the lists as the suite has them.
func TestSuiteLists(t *testing.T) {
	root := t.TempDir()
	text := "# a comment\nhere 4 arg=-a arg=b=c timeLimit=3\n@some@here 2 resultTest=TestStatus\n@largetest@here 2\nhere 2 mem=3\nhere 2 env=MPIR_CVAR_X=1\nhere @n@\nnowhere 2\n\n"
	if err := os.WriteFile(filepath.Join(root, "testlist.in"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "here.c"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := readList(t, root, ".", ".f", ".c")
	want := []suiteRun{{"./here", 4, []string{"-a", "b=c"}, false}, {"./here", 2, nil, true}}
	if !slices.EqualFunc(got, want, func(a, b suiteRun) bool {
		return a.program == b.program && a.procs == b.procs && a.fails == b.fails && slices.Equal(a.args, b.args)
	}) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for sites, hosts := range map[int][]string{1: {"procs = 5"}, 2: {"procs = 2\n", "procs = 3\n"}} {
		job := suiteRun{program: "a/b", procs: 5, args: []string{"-x y"}}.job("/b", make([]string, sites)...)
		for _, h := range append(hosts, `command = ["/b", "-x y"]`) {
			if strings.Count(job, h) != 1 {
				t.Errorf("%d sites: no %q in\n%s", sites, h, job)
			}
		}
	}
}
