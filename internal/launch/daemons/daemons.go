// Package daemons runs programs of a cluster, such as slurmctld or sshd, for tests. They run in
// process and mount namespaces of their own, so that whatever they start ends with the test,
// however that ends; what they print is collected.
package daemons

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/skips"
)

// TB is the part of testing.TB that is needed here and by the packages that start daemons.
type TB interface {
	skips.TB
	Cleanup(f func())
	Context() context.Context
	Failed() bool
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Patience is the maximum time that tests wait for something. It is far more than a loaded machine
// needs.
const Patience = 2 * time.Minute

// Group is the first process of the namespaces, a shell, and the daemons that it starts.
type Group struct {
	Dir string // for files; anybody may read it. It is removed with the test.

	tb      TB
	process *launch.Process
	stdin   *os.File

	mu    sync.Mutex
	log   bytes.Buffer
	grown chan struct{} // closed when log has grown
}

// New makes namespaces with nothing in them but a shell. The folder's path is short, since the path
// of a socket has at most 107 bytes. The test is skipped unless it runs as root, which making
// namespaces needs.
func New(tb TB, name string) *Group {
	tb.Helper()
	if os.Getuid() != 0 {
		skips.NotRun(tb, "namespaces for "+name+" are made by root", "run go test as root")
	}
	unshare, bash := skips.Program(tb, "unshare"), skips.Program(tb, "bash")
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		tb.Fatal(err)
	}
	g := &Group{Dir: dir, tb: tb, grown: make(chan struct{})}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // daemons of other users read it
		tb.Fatal(err)
	}
	stdin, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	g.stdin = w
	launcher := launch.New()
	output := launch.NewOutput(g, nil)
	g.process, err = launcher.Start(launch.Spec{
		Path: unshare,
		Args: []string{
			"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
			bash, "-c", `while IFS= read -r line; do eval "$line"; done`,
		},
		Dir: dir, Env: append(os.Environ(), "LC_ALL=C"), Stdin: stdin,
		Stdout: output.Stream(nil), Stderr: output.Stream(nil),
	})
	_ = stdin.Close()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		g.close()
		launcher.Close()
	})
	return g
}

func (g *Group) close() {
	_ = g.process.Signal(9) // unshare, and with it the first process of the namespace and all others
	<-g.process.Done()
	_ = g.stdin.Close()
	if g.tb.Failed() {
		g.tb.Logf("what the daemons printed:\n%s", g.Log())
	}
}

// Write adds to the log.
func (g *Group) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log.Write(p)
	close(g.grown)
	g.grown = make(chan struct{})
	return len(p), nil
}

// Log returns what the daemons have printed so far.
func (g *Group) Log() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.String()
}

// Do makes the shell run a line of bash. It does not wait until that has ended.
func (g *Group) Do(line string) {
	g.tb.Helper()
	if _, err := io.WriteString(g.stdin, line+"\n"); err != nil {
		g.tb.Fatalf("the shell of the daemons does not take %q: %v\n%s", line, err, g.Log())
	}
}

// Machine makes the shell start a daemon as if it were alone on a machine of that name: it does not
// see other processes, and the machine's name is that of the host.
func (g *Group) Machine(name, daemon string) {
	g.tb.Helper()
	g.Do(fmt.Sprintf(`unshare --mount --pid --uts --ipc --fork --kill-child --mount-proc bash -c 'hostname %s; %s & wait' & machine_%[1]s=$!`, name, daemon))
}

// Lose kills everything that runs on a machine by SIGKILL.
func (g *Group) Lose(name string) {
	g.tb.Helper()
	g.Do("kill -KILL $machine_" + name)
}

// Await waits until the daemons have printed text the given number of times.
func (g *Group) Await(text string, times int) {
	g.tb.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		g.mu.Lock()
		n, grown := strings.Count(g.log.String(), text), g.grown
		g.mu.Unlock()
		if n >= times {
			return
		}
		select {
		case <-grown:
		case <-g.process.Exited():
			g.tb.Fatalf("the daemons are gone, before %q was printed %d times:\n%s", text, times, g.Log())
		case <-late.C:
			g.tb.Fatalf("%q was printed %d times only, of %d:\n%s", text, n, times, g.Log())
		}
	}
}

// File writes a file in the folder, and returns its path.
func (g *Group) File(name, content string, mode os.FileMode) string {
	g.tb.Helper()
	path := g.Dir + "/" + name
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		g.tb.Fatal(err)
	}
	return path
}

// Run runs a program outside of the namespaces to its end, and returns what it printed.
func Run(tb TB, env []string, name string, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatal(fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out))
	}
	return string(out)
}
