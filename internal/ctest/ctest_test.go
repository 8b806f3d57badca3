package ctest

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/launch/pmix/pmixtest"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
)

// runLimit ends a job that hangs, with what it printed.
const runLimit = 2 * time.Minute

var built struct {
	sync.Once
	kit *Kit
	dir string
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // the folder is of the test's own
	}
	os.Exit(code)
}

// kit is the installation that all tests share.
func kit(t *testing.T) *Kit {
	t.Helper()
	skips.Short(t)
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "impi-ctest-"); built.err == nil {
			built.kit, built.err = Build(context.Background(), built.dir)
		}
	})
	if errors.Is(built.err, ErrNotHere) {
		skips.NotRun(t, built.err.Error(), Remedy)
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.kit
}

// drawn are programs whose steps are drawn: how many each kind of step needs to be done often, and
// how many there are in make soak.
var drawn = map[string]struct {
	name        string
	little, all int
}{
	"fastboard.c": {"STEPS", 2000, 6000}, "fastboxes.c": {"STEPS", 10000, 30000}, "faststart.c": {"STEPS", 1500, 4000}, "lending.c": {"ROUNDS", 12, 40},
}

// compiled makes a program of a file in testdata.
func compiled(t *testing.T, k *Kit, source string, args ...string) string {
	t.Helper()
	name, _, _ := strings.Cut(source, ".")
	program := filepath.Join(t.TempDir(), name)
	if d, is := drawn[source]; is {
		args = append(slices.Clone(args), fmt.Sprintf("-D%s=%d", d.name, soak.Size(d.little, d.all)))
	}
	if err := k.Compile(t.Context(), program, filepath.Join("testdata", source), args...); err != nil {
		t.Fatal(err)
	}
	return program
}

// job is a job file of two sites with two procs each.
const job = `job { embedded_server {} }
program { command = [%s]  prefix_output = false }
%s
site "alpha" {
  client = 0
  host { address = "127.0.0.2"  procs = 2 }
}
site "beta" {
  client = 1
  host { address = "127.0.0.3"  procs = 2 }
}
`

// shape is a kind of job.
type shape struct {
	name  string
	start func(t *testing.T, k *Kit, command []string) []string
}

// shapes are the jobs that programs run in: four procs each.
var shapes = []shape{
	{"one site", func(_ *testing.T, k *Kit, command []string) []string {
		return append([]string{k.Command("impiexec"), "-n", "4"}, command...)
	}},
	{"two sites", func(t *testing.T, k *Kit, command []string) []string { return onSites(t, k, command, "") }},
	{"two sites over tcp", func(t *testing.T, k *Kit, command []string) []string {
		return onSites(t, k, command, `route "*" { prefer = ["tcp"] }`)
	}},
}

func onSites(t *testing.T, k *Kit, command []string, more string) []string {
	t.Helper()
	var words []string
	for _, w := range command {
		words = append(words, fmt.Sprintf("%q", w))
	}
	file := filepath.Join(t.TempDir(), "job.hcl")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(job, strings.Join(words, ", "), more)), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{k.Command("impi-node"), "-config", file}
}

// run runs a job to its end. What it printed never tells of a fault inside Go.
func run(t *testing.T, words []string, env ...string) (output string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	output, err := Run(ctx, t.TempDir(), env, words[0], words[1:]...)
	if ctx.Err() != nil {
		t.Fatalf("after %v the job was not over:\n%s", runLimit, output)
	}
	for _, sign := range []string{"goroutine ", "fatal error:", "panic:", "SIGSEGV: segmentation violation"} {
		if strings.Contains(output, sign) {
			t.Errorf("a fault inside Go:\n%s", output)
			break
		}
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return output, exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return output, 0
}

// succeed wants a job that ends well, and rank 0 to have printed OK and a name.
func succeed(t *testing.T, words []string, name string, env ...string) (output string) {
	t.Helper()
	output, status := run(t, words, env...)
	if status != 0 || !strings.Contains(output, "OK "+name+"\n") {
		t.Errorf("%s: status %d, want 0 and OK %s:\n%s", strings.Join(words, " "), status, name, output)
	}
	return output
}

// TestPrograms runs each program in each shape.
func TestPrograms(t *testing.T) {
	k := kit(t)
	for _, p := range []struct {
		source string
		args   []string // DIR stands for a folder of the run's own, LIB for the library
		link   []string
	}{
		{source: "pingpong.c"},
		{source: "ring.c"},
		{source: "collectives.c"},
		{source: "nonblocking.c"},
		{source: "fastboxes.c"},
		{source: "fastboard.c", link: []string{"-lm"}},
		{source: "faststart.c", link: []string{"-lm"}},
		{source: "copies.c"},
		{source: "datatypes.c"},
		{source: "comms.c"},
		{source: "attributes.c"},
		{source: "errors.c"},
		{source: "badinput.c"},
		{source: "wild.c"},
		{source: "badmemory.c"},
		{source: "misc.c"},
		{source: "kept.c"},
		{source: "sessions.c", args: []string{"init"}},
		{source: "buffers.c"},
		{source: "partitioned.c", link: []string{"-pthread"}},
		{source: "tool.c"},
		{source: "rma.c"},
		{source: "fastwindow.c", link: []string{"-pthread"}},
		{source: "shared.c", args: []string{"DIR/data"}},
		{source: "files.c", args: []string{"DIR/data"}},
		{source: "together.c", args: []string{"DIR/data"}},
		{source: "datareps.c", args: []string{"DIR/data"}},
		{source: "dynamic.c", args: []string{"spawn"}},
		{source: "threads.c", link: []string{"-pthread"}},
		{source: "signals.c", link: []string{"-pthread"}},
		{source: "children.c"},
		{source: "ctors.cc"},
		{source: "dlopen.c", args: []string{"LIB"}, link: []string{"-ldl", "-Wl,--as-needed"}},
	} {
		name, _, _ := strings.Cut(p.source, ".")
		t.Run(name, func(t *testing.T) {
			program := compiled(t, k, p.source, p.link...)
			for _, s := range shapes {
				t.Run(s.name, func(t *testing.T) {
					if s.name == "two sites over tcp" && !slices.Contains([]string{"pingpong", "collectives", "rma"}, name) {
						soak.SkipUnlessSoak(t, "make test has it for other programs")
					}
					if s.name == "two sites" && name == "wild" {
						soak.SkipUnlessSoak(t, "make test has the many calls at one site")
					}
					command := []string{program}
					for _, a := range p.args {
						command = append(command, strings.NewReplacer("DIR", t.TempDir(), "LIB", k.Library()).Replace(a))
					}
					succeed(t, s.start(t, k, command), name)
				})
			}
		})
	}
}

// TestKilledAggregator ends a job whose aggregator dies while the others wait for it to write.
func TestKilledAggregator(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "together.c")
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			words := s.start(t, k, []string{program, filepath.Join(t.TempDir(), "data"), "killed"})
			if output, status := run(t, words); status != 128+9 || !strings.Contains(output, "rank 0") {
				t.Errorf("status %d, want %d:\n%s", status, 128+9, output)
			}
		})
	}
}

// TestBehindAnother runs a program that does not name the library: another one needs it, so that it
// comes behind the C library, whose functions it is to call.
func TestBehindAnother(t *testing.T) {
	k := kit(t)
	dir := t.TempDir()
	if err := k.Compile(t.Context(), filepath.Join(dir, "libring.so"), filepath.Join("testdata", "ring.c"), "-shared", "-fPIC", "-Dmain=ring"); err != nil {
		t.Fatal(err)
	}
	const source = "int ring(int, char **);\nint main(int n, char **args) { return ring(n, args); }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.c"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), dir, nil, k.Command("impicc"), "-o", "main", "main.c", "-L.", "-lring", "-Wl,--as-needed,-rpath,"+dir); err != nil {
		t.Fatal(err)
	}
	succeed(t, []string{k.Command("impiexec"), "-n", "4", filepath.Join(dir, "main")}, "ring")
}

// TestFastBoxes has more procs on a host than C once could send to.
func TestFastBoxes(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "fastboxes.c")
	succeed(t, []string{k.Command("impiexec"), "-n", "10", program, "7"}, "fastboxes")
}

// TestLongFastBoxes has messages in pieces come from several procs, and a receiver that takes none
// for a while.
func TestLongFastBoxes(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "fastlong.c")
	for _, procs := range []string{"3", "4"} {
		t.Run(procs+" procs", func(t *testing.T) {
			succeed(t, []string{k.Command("impiexec"), "-n", procs, program}, "fastlong")
		})
	}
}

// TestNoPIE runs programs that are linked to fixed addresses, which have copies of the library's
// variables.
func TestNoPIE(t *testing.T) {
	k := kit(t)
	for _, x := range []struct{ source, argument string }{{"fastboxes.c", "3"}, {"fastboard.c", "5"}, {"collectives.c", ""}} {
		name, _, _ := strings.Cut(x.source, ".")
		t.Run(name, func(t *testing.T) {
			program := compiled(t, k, x.source, "-fno-pie", "-no-pie", "-lm")
			f, err := elf.Open(program)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Type != elf.ET_EXEC {
				t.Fatalf("its type is %v", f.Type)
			}
			command := []string{k.Command("impiexec"), "-n", "4", program}
			if x.argument != "" {
				command = append(command, x.argument)
			}
			succeed(t, command, name)
		})
	}
}

// TestFastBoard has members of one host do collective operations in C and in Go, in the same job.
func TestFastBoard(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "fastboard.c", "-lm")
	for i, procs := range []string{"2", "3", "4", "6"} {
		t.Run(procs+" procs", func(t *testing.T) {
			succeed(t, []string{k.Command("impiexec"), "-n", procs, program, strconv.Itoa(i + 2), "host"}, "fastboard")
		})
	}
}

// TestNoBytes has members of one host do collective operations in which nobody has anything to
// send.
func TestNoBytes(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "nobytes.c")
	for _, procs := range []string{"1", "2", "3"} {
		succeed(t, []string{k.Command("impiexec"), "-n", procs, program}, "nobytes")
	}
}

// TestFastStart has members of one host start and complete collective operations in C and in Go, in
// the same job.
func TestFastStart(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "faststart.c", "-lm")
	for i, procs := range []string{"1", "2", "3", "4", "8"} {
		t.Run(procs+" procs", func(t *testing.T) {
			succeed(t, []string{k.Command("impiexec"), "-n", procs, program, strconv.Itoa(i + 2), "host"}, "faststart")
		})
	}
}

// TestFastWindow has procs, and threads of theirs, do one-sided operations in C and in Go on the
// same memory.
func TestFastWindow(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "fastwindow.c", "-pthread")
	for _, x := range []struct{ procs, threads string }{{"1", "1"}, {"2", "1"}, {"3", "1"}, {"2", "3"}} {
		t.Run(x.procs+" procs, "+x.threads+" threads", func(t *testing.T) {
			succeed(t, []string{k.Command("impiexec"), "-n", x.procs, program, x.threads}, "fastwindow")
		})
	}
}

// TestLending has members of one host lend each other memory where that does not work.
func TestLending(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "lending.c")
	for _, tc := range []struct{ procs, stop string }{{"2", "odd"}, {"3", "all"}, {"4", "odd"}} {
		t.Run(tc.procs+" procs, "+tc.stop, func(t *testing.T) {
			output, status := run(t, []string{k.Command("impiexec"), "-n", tc.procs, program, tc.stop})
			if strings.Contains(output, "seccomp is not there") {
				skips.NotRun(t, "the kernel has no filters of system calls", "allow seccomp")
			}
			if status != 0 || !strings.Contains(output, "OK lending") {
				t.Errorf("status %d:\n%s", status, output)
			}
		})
	}
}

// memoryShapes are shapes, and others in which messages take other ways.
var memoryShapes = append(slices.Clone(shapes), []shape{
	{"by agents", func(t *testing.T, k *Kit, command []string) []string {
		return onSites(t, k, command, `route "*" { direct = false }`)
	}},
	{"two sites over unix", func(t *testing.T, k *Kit, command []string) []string {
		return onSites(t, k, command, `route "*" { prefer = ["unix"] }`)
	}},
}...)

// TestMemory runs programs that are about the memory of messages: what a proc keeps of those that
// nobody has asked for, and memory that is not there.
func TestMemory(t *testing.T) {
	k := kit(t)
	for _, source := range []string{"unexpected.c", "badtail.c"} {
		name, _, _ := strings.Cut(source, ".")
		t.Run(name, func(t *testing.T) {
			program := compiled(t, k, source)
			for _, s := range memoryShapes {
				t.Run(s.name, func(t *testing.T) {
					if s.name == "two sites over unix" && name == "unexpected" {
						soak.SkipUnlessSoak(t, "make test has its gigabytes by tcp, shared memory and agents")
					}
					succeed(t, s.start(t, k, []string{program}), name)
				})
			}
		})
	}
}

// TestSingleton starts a program without any launcher.
func TestSingleton(t *testing.T) {
	k := kit(t)
	for _, source := range []string{"ring.c", "collectives.c", "misc.c"} {
		name, _, _ := strings.Cut(source, ".")
		t.Run(name, func(t *testing.T) {
			succeed(t, []string{compiled(t, k, source)}, name)
		})
	}
}

// TestOtherLaunchers refuses to be one of several jobs of one rank, by MPI_Init and by a
// session, and is not misled where our own launcher runs under another one.
func TestOtherLaunchers(t *testing.T) {
	k := kit(t)
	env := []string{"PMI_RANK=1", "PMI_SIZE=2", "SLURM_NTASKS=2", "SLURM_STEP_NUM_TASKS=2"}
	for _, source := range []string{"ring.c", "sessions.c"} {
		name, _, _ := strings.Cut(source, ".")
		t.Run(name, func(t *testing.T) {
			program := compiled(t, k, source)
			output, status := run(t, []string{program}, env...)
			if status == 0 || !strings.Contains(output, "PMI_SIZE=2, PMI_RANK=1") || !strings.Contains(output, "impiexec -n 2") {
				t.Errorf("status %d, want another than 0 and a text with the remedy:\n%s", status, output)
			}
			succeed(t, []string{program}, name, append(env, "IMPI_SINGLETON=1")...)
			succeed(t, []string{k.Command("impiexec"), "-n", "2", program}, name, env...)
		})
	}
}

// TestLibraryNeedsNothing: what process managers want of a program is loaded when one has started
// it.
func TestLibraryNeedsNothing(t *testing.T) {
	f, err := elf.Open(kit(t).Library())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.ImportedLibraries()
	if err != nil || !slices.Contains(list, "libc.so.6") {
		t.Fatalf("it needs %q: %v", list, err)
	}
	for _, name := range list {
		if strings.HasPrefix(name, "libpmi") || strings.HasPrefix(name, "libevent") || strings.HasPrefix(name, "libhwloc") {
			t.Errorf("it needs %s", name)
		}
	}
}

// TestManaged has process managers start programs, which find their library's impi-node by
// themselves.
func TestManaged(t *testing.T) {
	t.Run("hydra", func(t *testing.T) {
		// Not return-0: hydra kills the others when a rank ends without MPI_Finalize, and says 0 if
		// it has heard of no other status by then.
		managed(t, []string{skips.ProgramOf(t, "mpiexec.hydra", "mpich")})
	})
	t.Run("mpirun", func(t *testing.T) { // of Open MPI, which speaks PMIx
		words, env := pmixtest.Mpirun(t)
		managed(t, words, env...)
	})
}

// managed has a process manager start programs, and wants what each says and the statuses.
func managed(t *testing.T, start []string, env ...string) {
	t.Helper()
	k := kit(t)
	start = slices.Clip(start)
	for _, source := range []string{"ring.c", "collectives.c", "sessions.c", "children.c"} {
		name, _, _ := strings.Cut(source, ".")
		t.Run(name, func(t *testing.T) {
			succeed(t, append(start, "-n", "4", compiled(t, k, source)), name, env...)
		})
	}
	program := compiled(t, k, "fatal.c")
	for _, tc := range []struct {
		way    string
		status int // -1: any but 0
		says   string
	}{
		{"", 0, "OK fatal"},
		{"abort", 42, "rank 1 on site local called MPI Abort with code 42"},
		{"init-twice", -1, "MPI_Init"},
		{"rank", -1, "MPI_Send"},
		{"exit", -1, ""},
		{"kill", -1, ""},
		{"exit-after", -1, ""},
	} {
		t.Run("way "+tc.way, func(t *testing.T) {
			output, status := run(t, append(start, "-n", "2", program, tc.way), env...)
			if status != tc.status && (tc.status != -1 || status == 0) || !strings.Contains(output, tc.says) {
				t.Errorf("status %d, want %d and %q:\n%s", status, tc.status, tc.says, output)
			}
		})
	}
}

// TestSessionsAlone ends a job whose procs never call MPI_Init, nor anything behind the
// last session.
func TestSessionsAlone(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "sessions.c")
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			succeed(t, s.start(t, k, []string{program}), "sessions")
			succeed(t, s.start(t, k, []string{program, "quick"}), "sessions")
		})
	}
}

// TestMismatch has the members of collective operations compare what they call.
func TestMismatch(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "mismatch.c")
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) { succeed(t, s.start(t, k, []string{program}), "mismatch", "IMPI_CHECK=1") })
	}
}

// TestSignatures compares what is sent with what it is received as, by memory, TCP and agents.
func TestSignatures(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "signatures.c")
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) { succeed(t, s.start(t, k, []string{program}), "signatures", "IMPI_CHECK=1") })
	}
	t.Run("two sites by agents", func(t *testing.T) {
		words := onSites(t, k, []string{program}, `route "*" { direct = false }`)
		succeed(t, words, "signatures", "IMPI_CHECK=1")
	})
}

// TestProfiling puts a library of the program's own before MPI's: it sees the
// calls of the program, and not those that the library makes of itself.
func TestProfiling(t *testing.T) {
	k := kit(t)
	dir := t.TempDir()
	library := filepath.Join(dir, "libprofile.so")
	if err := k.Compile(t.Context(), library, "testdata/profile.c", "-shared", "-fPIC"); err != nil {
		t.Fatal(err)
	}
	count := func(t *testing.T, output string) {
		t.Helper()
		for r := range 4 {
			if want := fmt.Sprintf("profile of rank %d: 2 sends, 2 reductions\n", r); !strings.Contains(output, want) {
				t.Errorf("no %q in\n%s", want, output)
			}
		}
	}
	t.Run("preloaded", func(t *testing.T) {
		program := compiled(t, k, "profiled.c")
		words := []string{k.Command("impiexec"), "-n", "4", "-env", "LD_PRELOAD", library, program}
		count(t, succeed(t, words, "profiled"))
	})
	t.Run("linked", func(t *testing.T) {
		program := compiled(t, k, "profiled.c", "-L"+dir, "-lprofile", "-Wl,-rpath,"+dir)
		count(t, succeed(t, []string{k.Command("impiexec"), "-n", "4", program}, "profiled"))
	})
	t.Run("in the program", func(t *testing.T) {
		program := compiled(t, k, "profiled.c", "testdata/profile.c")
		count(t, succeed(t, []string{k.Command("impiexec"), "-n", "4", program}, "profiled"))
	})
}

// TestEnds runs programs that end badly: the job ends with them, its status is
// theirs, and what is printed names the function.
func TestEnds(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "fatal.c")
	for _, tc := range []struct {
		way    string
		status int // -1: any but 0
		says   string
	}{
		{"", 0, "OK fatal"},
		{"before-init", -1, "MPI_Comm_rank"},
		{"send-before-init", -1, "MPI_Send"},
		{"init-twice", -1, "MPI_Init"},
		{"rank", -1, "MPI_Send"},
		{"null", -1, "MPI_Bcast"},
		{"handle", -1, "MPI_Type_size"},
		{"after-finalize", -1, "MPI_Comm_rank"},
		{"barrier-after-finalize", -1, "MPI_Barrier"},
		{"finalize-twice", -1, "MPI_Finalize"},
		{"abort", 42, "rank 1"},
		{"abort-nothing", 43, "rank 1"},
		{"exit", 7, "rank 1"},
		{"_exit", 8, "rank 1"},
		{"return-0", -1, "rank 1"},
		{"c-abort", 128 + 6, "rank 1"},
		{"kill", 128 + 9, "rank 1"},
		{"exit-after", 9, "rank 1"},
	} {
		t.Run("way "+tc.way, func(t *testing.T) {
			output, status := run(t, []string{k.Command("impiexec"), "-n", "2", program, tc.way})
			if status != tc.status && (tc.status != -1 || status == 0) || !strings.Contains(output, tc.says) {
				t.Errorf("status %d, want %d and %q:\n%s", status, tc.status, tc.says, output)
			}
		})
	}
}

// TestCrash wants a fault of the program itself to end it by its signal, as
// without MPI: a debugger and the shell see what they know.
func TestCrash(t *testing.T) {
	k := kit(t)
	program := compiled(t, k, "fatal.c")
	for _, way := range []string{"segv", "pointer"} {
		t.Run(way, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), runLimit)
			defer cancel()
			output, err := Run(ctx, t.TempDir(), nil, k.Command("impiexec"), "-n", "2", program, way)
			exit := new(exec.ExitError)
			if !errors.As(err, &exit) || exit.ExitCode() != 128+11 || !strings.Contains(output, "rank 1") {
				t.Errorf("%v", err)
			}
		})
	}
}
