package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/launch/daemons"
	"github.com/openimpi/impi/internal/launch/slurmtest"
	"github.com/openimpi/impi/internal/launch/sshtest"
	"github.com/openimpi/impi/internal/skips"
)

// fixture is an engine that the suite runs on, and three machines. Another process can make the
// same engine of it.
type fixture struct {
	Slurm    *Slurm
	SSH      *SSH
	PBS      *PBS
	Exec     *Exec
	Machines []Machine
}

func (f fixture) engine() Engine {
	switch {
	case f.Slurm != nil:
		return *f.Slurm
	case f.SSH != nil:
		return *f.SSH
	case f.PBS != nil:
		return *f.PBS
	}
	return *f.Exec
}

// three are machines that are not there.
var three = []Machine{{Name: "alpha", Tasks: 2}, {Name: "beta", Address: "10.0.0.2", Tasks: 2}, {Name: "gamma", Tasks: 2}}

// TestEngines has all engines do what an engine does: Slurm and sshd are real, and kubectl and rsh
// are scripts that pass on what the real ones do.
func TestEngines(t *testing.T) {
	t.Run("local", func(t *testing.T) {
		suite(t, fixture{Exec: &Exec{Machines: three}, Machines: three})
	})
	t.Run("bash", func(t *testing.T) {
		// sh is bash on many machines, which has other habits than Debian's.
		bash := skips.Program(t, "bash")
		dir := openFolder(t)
		if err := os.Symlink(bash, dir+"/sh"); err != nil {
			t.Fatal(err)
		}
		suite(t, fixture{Exec: &Exec{Command: []string{"env", "PATH=" + dir + ":" + os.Getenv("PATH")}, Machines: three}, Machines: three})
	})
	t.Run("kubectl", func(t *testing.T) {
		// As kubectl does, it runs words, in a session of their own, and needs -i for its standard input.
		fake := write(t, "kubectl", `#!/bin/sh
[ "$1" = exec ] && shift
if [ "$1" = -i ]; then shift; else exec </dev/null; fi
case $1 in alpha|10.0.0.2|gamma) shift ;; *) echo "no pod $1" >&2; exit 1 ;; esac
[ "$1" = -- ] && shift
exec "$@"
`)
		suite(t, fixture{Exec: &Exec{Command: []string{fake, "exec", "-i", "{host}", "--"}, Machines: three}, Machines: three})
	})
	t.Run("rsh", func(t *testing.T) {
		// As rsh does, it joins its words for the user's shell there.
		fake := write(t, "rsh", "#!/bin/sh\nshift\nexec bash -c \"echo Welcome; $*\"\n")
		suite(t, fixture{Exec: &Exec{Command: []string{fake, "{name}", "{command}"}, Machines: three, AtOnce: 1}, Machines: three})
	})
	t.Run("ssh", func(t *testing.T) {
		hosts := sshtest.Start(t, 3)
		machines, err := ParseHosts("s1:2,s2:2,s3:2")
		if err != nil {
			t.Fatal(err)
		}
		suite(t, fixture{SSH: &SSH{Options: []string{"-F", hosts.Config}, Machines: machines, AtOnce: 2}, Machines: machines})
	})
	t.Run("pbs", func(t *testing.T) {
		hosts := sshtest.Start(t, 3)
		nodes := write(t, "nodes", "s1\ns1\ns2\ns2\ns3\ns3\n")
		machines := []Machine{{Name: "s1", Tasks: 2}, {Name: "s2", Tasks: 2}, {Name: "s3", Tasks: 2}}
		suite(t, fixture{PBS: &PBS{SSH: SSH{Options: []string{"-F", hosts.Config}}, Environ: []string{"PBS_NODEFILE=" + nodes}}, Machines: machines})
	})
	t.Run("slurm", func(t *testing.T) {
		machines := []Machine{{"n1", "127.0.0.11", "", 2}, {"n2", "127.0.0.12", "", 2}, {"n3", "127.0.0.13", "", 2}}
		environ := slurmtest.Start(t, 3).Allocate(t, "-N3", "-n6")
		suite(t, fixture{Slurm: &Slurm{Environ: environ}, Machines: machines})
	})
}

// write writes a program, or a file, that everybody can use.
func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(openFolder(t), name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// openFolder is a folder that users on machines can use.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// prints collects what programs print.
type prints struct {
	mu    sync.Mutex
	texts map[[2]int]*bytes.Buffer // by machine, and 0 or 1 for stdout and stderr
	grown chan struct{}
}

func newPrints() *prints {
	return &prints{texts: map[[2]int]*bytes.Buffer{}, grown: make(chan struct{})}
}

type printer struct {
	p  *prints
	at [2]int
}

func (w printer) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.p.texts[w.at] == nil {
		w.p.texts[w.at] = &bytes.Buffer{}
	}
	w.p.texts[w.at].Write(b)
	close(w.p.grown)
	w.p.grown = make(chan struct{})
	return len(b), nil
}

func (p *prints) output(machine int) (stdout, stderr io.Writer) {
	return printer{p, [2]int{machine, 0}}, printer{p, [2]int{machine, 1}}
}

func (p *prints) of(machine, which int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.texts[[2]int{machine, which}]; b != nil {
		return b.String()
	}
	return ""
}

// await waits until programs on some machines have printed a text to stdout.
func (p *prints) await(t *testing.T, text string, machines ...int) {
	t.Helper()
	p.awaitOn(t, 0, text, machines...)
}

// awaitOn is await for stdout (0) or stderr (1). By stderr the engine hears that a program runs, so
// that it knows it once the program has printed anything there; of stdout that is not so.
func (p *prints) awaitOn(t *testing.T, which int, text string, machines ...int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), daemons.Patience)
	defer cancel()
	for _, m := range machines {
		for {
			p.mu.Lock()
			grown := p.grown
			p.mu.Unlock()
			if strings.Contains(p.of(m, which), text) {
				break
			}
			select {
			case <-grown:
			case <-ctx.Done():
				t.Fatalf("machine %d has not printed %q, but %q and %q", m, text, p.of(m, 0), p.of(m, 1))
			}
		}
	}
}

// run starts a script of sh on all machines of a fixture.
func (f fixture) run(t *testing.T, p *prints, script string, args ...string) *Started {
	t.Helper()
	s, err := f.engine().Start(t.Context(), f.Machines, f.command(p, script, args...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const sesame = "open-sesame-4711"

func (f fixture) command(p *prints, script string, args ...string) Command {
	c := Command{Args: append([]string{"sh", "-c", script, "program"}, args...), Secret: sesame}
	if p != nil {
		c.Output = p.output
	}
	return c
}

// ends collects all ends.
func ends(t *testing.T, s *Started) []End {
	t.Helper()
	list := make([]End, len(s.machines))
	n := 0
	for e := range s.Ends() {
		list[e.Machine] = e
		n++
	}
	if n != len(list) {
		t.Errorf("%d ends of %d machines", n, len(list))
	}
	return list
}

// witness is a pipe with a name which programs hold, and what they start: its end is theirs.
type witness struct {
	path string
	f    *os.File
}

func newWitness(t *testing.T) witness {
	t.Helper()
	path := openFolder(t) + "/witness"
	err := unix.Mkfifo(path, 0o666)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return witness{path, f}
}

// held begins a script that holds the witness of its first argument, so that its end shows.
const held = "exec 9>\"$1\"; echo held; "

// wantGone waits until nobody holds the witness any more.
func (w witness) wantGone(t *testing.T) {
	t.Helper()
	gone := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, w.f)
		gone <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), daemons.Patience)
	defer cancel()
	select {
	case err := <-gone:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("something is left behind")
	}
}

var all = []int{0, 1, 2}

func suite(t *testing.T, f fixture) {
	for name, test := range map[string]func(*testing.T, fixture){
		"allocation": testAllocation, "programs": testPrograms, "secret": testSecret, "environment": testEnvironment,
		"missing": testMissing, "ends": testEnds, "stop": testStop, "stubborn": testStubborn,
		"leftovers": testLeftovers, "killed launcher": testKilledLauncher, "output": testOutput,
	} {
		t.Run(name, func(t *testing.T) { test(t, f) })
	}
}

func testAllocation(t *testing.T, f fixture) {
	machines, err := f.engine().Allocation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(machines) != fmt.Sprint(f.Machines) {
		t.Errorf("%v, want %v", machines, f.Machines)
	}
}

func testPrograms(t *testing.T, f fixture) {
	p := newPrints()
	words := []string{"it's", "two\nlines", `$HOME "\`, "", "*"}
	s := f.run(t, p, `read secret; printf '%s|' "$IMPI_MACHINE" "$secret" "$@"; echo to stderr >&2; exit $((IMPI_MACHINE_INDEX + 3))`, words...)
	for i, e := range ends(t, s) {
		if (e != End{Machine: i, Status: i + 3}) {
			t.Errorf("%+v, want status %d", e, i+3)
		}
		want := f.Machines[i].Name + "|" + sesame + "|" + strings.Join(words, "|") + "|"
		if got := p.of(i, 0); got != want {
			t.Errorf("machine %d printed %q, want %q", i, got, want)
		}
		if got := p.of(i, 1); got != "to stderr\n" {
			t.Errorf("machine %d printed %q to stderr", i, got)
		}
	}
	if err := s.Stop(); err != nil {
		t.Errorf("Stop after the end: %v", err)
	}
}

func testSecret(t *testing.T, f fixture) {
	p := newPrints()
	s := f.run(t, p, `read secret; grep -lsF -f "$1" /proc/[0-9]*/cmdline /proc/[0-9]*/environ; echo looked; read nothing`, write(t, "secret", sesame))
	p.await(t, "looked", all...)
	here, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range here {
		for _, path := range []string{path, filepath.Dir(path) + "/environ"} {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(sesame)) {
				t.Errorf("the secret is in %s", path)
			}
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for i := range f.Machines {
		if got := p.of(i, 0); got != "looked\n" {
			t.Errorf("on machine %d the secret is %s", i, got)
		}
	}
}

func testEnvironment(t *testing.T, f fixture) {
	p, dir := newPrints(), openFolder(t)
	c := f.command(p, `pwd; echo "$SAID"`)
	c.Env, c.Dir = []string{"SAID=it's $HOME"}, dir
	s, err := f.engine().Start(t.Context(), f.Machines, c)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range ends(t, s) {
		if got, want := p.of(i, 0), dir+"\nit's $HOME\n"; e.Status != 0 || got != want {
			t.Errorf("%+v %q, want %q", e, got, want)
		}
	}
}

func testMissing(t *testing.T, f fixture) {
	for _, c := range []struct {
		command Command
		words   string
	}{
		{Command{Args: []string{"/nowhere/impi-node"}}, "there is no program /nowhere/impi-node"},
		{Command{Args: []string{"true"}, Dir: "/nowhere"}, "the working folder /nowhere cannot be entered"},
	} {
		_, err := f.engine().Start(t.Context(), f.Machines, c.command)
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%v, want %s", err, c.words)
			continue
		}
		named := false
		for _, m := range f.Machines {
			named = named || strings.Contains(err.Error(), m.Name+": ")
		}
		if !named {
			t.Errorf("no machine is named by %q", err)
		}
	}
}

// testEnds: the end of one is told while the others run.
func testEnds(t *testing.T, f fixture) {
	p := newPrints()
	s := f.run(t, p, `read secret; [ $IMPI_MACHINE_INDEX != 1 ] || exit 9; read nothing; exit 4`)
	if e := <-s.Ends(); (e != End{Machine: 1, Status: 9}) {
		t.Errorf("%+v ended first", e)
	}
	go func() { _ = s.Stop() }() // the end of standard input, of which two hear, and SIGTERM
	for e := range s.Ends() {
		if e.Machine == 1 || e.Lost != "" || e.Status != 4 && e.Status != 128+15 {
			t.Errorf("%+v", e)
		}
	}
}

func testStop(t *testing.T, f fixture) {
	p, w := newPrints(), newWitness(t)
	s := f.run(t, p, held+`sleep 1000 & sleep 1000`, w.path)
	p.await(t, "held", all...)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for i, e := range ends(t, s) {
		if (e != End{Machine: i, Status: 128 + 15}) {
			t.Errorf("%+v, want the end by SIGTERM", e)
		}
	}
	w.wantGone(t)
}

// testStubborn: what does not end when it is asked to is killed.
func testStubborn(t *testing.T, f fixture) {
	p, w := newPrints(), newWitness(t)
	c := f.command(p, `trap '' TERM; `+held+`sleep 1000 & while :; do sleep 1000; done`, w.path)
	c.Grace = 1 // below a second is what engines take if nothing is said
	if got := c.grace(); got != defaultGrace {
		t.Errorf("a grace of %v", got)
	}
	c.Grace = 1e9
	s, err := f.engine().Start(t.Context(), f.Machines, c)
	if err != nil {
		t.Fatal(err)
	}
	p.await(t, "held", all...)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for i, e := range ends(t, s) {
		if (e != End{Machine: i, Status: 128 + 9}) {
			t.Errorf("%+v, want the end by SIGKILL", e)
		}
	}
	w.wantGone(t)
}

// testLeftovers: what a program leaves behind ends with it.
func testLeftovers(t *testing.T, f fixture) {
	p, w := newPrints(), newWitness(t)
	s := f.run(t, p, held+`trap '' HUP TERM; sleep 1000 & exit 2`, w.path)
	for i, e := range ends(t, s) {
		if (e != End{Machine: i, Status: 2}) {
			t.Errorf("%+v, want status 2", e)
		}
	}
	w.wantGone(t)
}

// testOutput: much output comes in the order in which it was written, without a byte more.
func testOutput(t *testing.T, f fixture) {
	const lines = 20000
	p := newPrints()
	s := f.run(t, p, `i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; printf 'and a \036 in the last line'`)
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	want.WriteString("and a \036 in the last line")
	ends(t, s)
	for i := range f.Machines {
		if got := p.of(i, 0); got != want.String() {
			t.Errorf("machine %d printed %d bytes, want %d, ending with %q", i, len(got), want.Len(), got[max(0, len(got)-40):])
		}
	}
}

// testKilledLauncher: whatever kills the launcher ends the programs.
func testKilledLauncher(t *testing.T, f fixture) {
	w := newWitness(t)
	described, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLauncher$")
	cmd.Env = append(os.Environ(), launcherVariable+"="+string(described), "WITNESS="+w.path)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, n, text := bufio.NewScanner(stdout), 0, ""
	for n < len(f.Machines) && lines.Scan() {
		n += strings.Count(lines.Text(), "held")
		text += lines.Text() + "\n"
	}
	if n < len(f.Machines) {
		t.Errorf("%d programs ran:\n%s", n, text)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	w.wantGone(t)
}

const launcherVariable = "IMPI_TEST_LAUNCHER"

// TestLauncher is the process that testKilledLauncher kills.
func TestLauncher(t *testing.T) {
	text := os.Getenv(launcherVariable)
	if text == "" {
		return // nothing to be tested by itself
	}
	var f fixture
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	c := f.command(nil, `trap '' HUP; `+held+`sleep 1000 & while :; do sleep 1000; done`, os.Getenv("WITNESS"))
	c.Output = func(int) (stdout, stderr io.Writer) { return os.Stdout, os.Stdout }
	s, err := f.engine().Start(t.Context(), f.Machines, c)
	if err != nil {
		t.Fatal(err)
	}
	for e := range s.Ends() {
		t.Errorf("%+v", e)
	}
}
