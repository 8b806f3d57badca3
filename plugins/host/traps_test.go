package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// The traps of go-plugin and of Go that others fell into, a test for each.

// nodes are mains of nodes that get killed.
var nodes = map[string]func(){
	"listening": func() {
		p, err := Start(context.Background(), Config{
			Name: "unix", Builtin: true, RunDir: os.Getenv("RUN"), Env: []string{envMode + "=" + os.Getenv(envMode)},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		l, err := p.Transport().Listen(context.Background(), transports.ListenSpec{Dir: os.Getenv("RUN"), Name: "here"})
		fmt.Println(p.Status().PID, l, err)
		select {}
	},
	"starting": func() {
		_, err := Start(context.Background(), Config{Name: "slow", Path: os.Getenv("PLUGIN"), Env: []string{"FIFO=" + os.Getenv("FIFO")}})
		fmt.Println(err)
	},
}

// node runs one of them.
func node(t *testing.T, name string, env ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(launchtest.Self(t))
	cmd.Env = append(append(os.Environ(), envNode+"="+name), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	over := make(chan struct{})
	if err := startProcess(cmd, func() error { return nil }, over); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); close(over) })
	return cmd, bufio.NewReader(out)
}

func files(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path != dir && err == nil {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTrapOrphanAfterNodeKilled(t *testing.T) {
	for _, mode := range []string{"", "stubborn"} {
		t.Run("mode="+mode, func(t *testing.T) {
			dir := privateDir(t)
			cmd, out := node(t, "listening", "RUN="+dir, envMode+"="+mode)
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.Fields(line)[0])
			if err != nil {
				t.Fatal(line)
			}
			if len(files(t, dir)) == 0 {
				t.Error("the listener has no file: the test proves nothing")
			}
			cmd.Process.Kill()
			waitGone(t, pid)
			if left := files(t, dir); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A plugin that knows nothing of the descriptor channel, and a node that is
// killed before it has seen a handshake.
func TestTrapOrphanWithoutSDK(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	path := script(t, dir, "slow", "#!/bin/sh\ntrap '' TERM INT HUP\necho $$ >$FIFO\nwhile :; do sleep 1000; done\n")
	cmd, _ := node(t, "starting", "PLUGIN="+path, "FIFO="+fifo)
	text, err := os.ReadFile(fifo)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	waitGone(t, pid)
}

// The parent-death signal is sent when the forking thread ends.
func TestTrapParentDeathOfThread(t *testing.T) {
	w := builtin("tcp", "")
	tid := make(chan int)
	started := make(chan *Plugin)
	onThreadThatEnds(func() {
		tid <- unix.Gettid()
		p, err := Start(context.Background(), w.Config)
		if err != nil {
			t.Error(err)
		}
		started <- p
	})
	thread := <-tid
	p := <-started
	if p == nil {
		return
	}
	t.Cleanup(func() { p.Close() })
	for end := farOff(); ; {
		if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the runtime keeps the thread")
		}
		runtime.Gosched()
	}
	pid := p.Status().PID
	a, b := pair(t, p, listen(t, p))
	exchange(t, a, b)
	if got := p.Status().PID; got != pid {
		t.Errorf("the plugin died with the thread: %d, then %d", pid, got)
	}
}

// onThreadThatEnds runs f in a goroutine whose thread ends with it: not the first one of the
// process, which the runtime keeps.
func onThreadThatEnds(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		began := make(chan struct{})
		onThreadThatEnds(func() { // on another one, as this goroutine has this one
			close(began)
			f()
		})
		<-began
	}()
}

func TestTrapSocketFilesAndLongTMPDIR(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	t.Setenv("XDG_RUNTIME_DIR", long)
	w := builtin("tcp", "")
	p := w.start(t) // makes its own directory somewhere else
	a, b := pair(t, p, listen(t, p))
	exchange(t, a, b)
	if left := files(t, long); len(left) != 0 {
		t.Errorf("files in TMPDIR: %v", left)
	}
	w.RunDir = long
	if _, err := Start(soon(t), w.Config); !errors.Is(err, ErrRunDir) || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a run directory with a long name: %v", err)
	}
}

// A cleaner of temporary files cannot cut off a plugin that runs for weeks, as there is no
// socket file.
func TestTrapSocketFileCleaned(t *testing.T) {
	w := builtin("tcp", "")
	w.RunDir = privateDir(t)
	p := w.start(t)
	if left := files(t, w.RunDir); len(left) != 0 {
		t.Errorf("files in the run directory of a running plugin: %v", left)
	}
	if err := os.Remove(w.RunDir); err != nil {
		t.Fatal(err)
	}
	a, b := pair(t, p, listen(t, p))
	exchange(t, a, b)
}

func TestTrapSkipHostEnv(t *testing.T) {
	t.Setenv("IMPI_TEST_SECRET", "of the host")
	t.Setenv("IMPI_TEST_BOTH", "host")
	t.Setenv("LANG", "host")
	t.Setenv("PLUGIN_UNIX_SOCKET_DIR", "/nonexistent")
	w := builtin("tcp", "env")
	w.Env = append(w.Env, "IMPI_TEST_BOTH=plugin", "LANG=plugin")
	p := w.start(t)
	schema := p.Transport().Schema()
	env := "\n" + schema[len(schema)-1].Doc + "\n"
	for _, want := range []string{"IMPI_TEST_BOTH=plugin", "LANG=plugin", "PATH=" + os.Getenv("PATH")} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("no %s in %s", want, env)
		}
	}
	for _, bad := range []string{"IMPI_TEST_SECRET", "=host", "/nonexistent"} {
		if strings.Contains(env, bad) {
			t.Errorf("%s in %s", bad, env)
		}
	}
}

func TestTrapStrayStdout(t *testing.T) {
	w := builtin("tcp", "print")
	w.start(t)
	w.log.wait(t, "hello from main")
	w.log.wait(t, "hello from C")
	w.log.wait(t, "hello from Configure")
}

func TestTrapLostLogLevels(t *testing.T) {
	w := builtin("tcp", "levels")
	w.start(t)
	for word, level := range map[string]string{
		"t-line": "trace", "d-line": "debug", "i-line": "info", "w-line": "warn", "e-line": "error",
		"std-line": "warn", "err-line": "debug",
	} {
		w.log.wait(t, `"@level":"`+level+`"`, word, `"@module":"tcp"`)
	}
	w.log.wait(t, "i-line", `"key":"value"`)
}

// O_NONBLOCK belongs to the open file, which a careless plugin has shared.
func TestTrapBlockingDescriptor(t *testing.T) {
	p := builtin("tcp", "blocking").start(t)
	a, b := pair(t, p, listen(t, p))
	if flags, err := unix.FcntlInt(uintptr(a.Handle()), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	if n, err := a.Recv([][]byte{make([]byte, 1)}); n != 0 || err != nil {
		t.Errorf("Recv of nothing: %d, %v", n, err)
	}
	exchange(t, a, b)
}

// The peer sees the end when the node closes, while both plugins still run.
func TestTrapDescriptorOwnership(t *testing.T) {
	p := builtin("tcp", "").start(t)
	for _, closer := range []string{"dialled", "accepted"} {
		a, b := pair(t, p, listen(t, p))
		if closer == "accepted" {
			a, b = b, a
		}
		a.Close()
		if n, err := (stream{t, b}).Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s side closed, the other reads %d, %v", closer, n, err)
		}
	}
	if s := p.Status(); s.Starts != 1 || s.State != StateHealthy {
		t.Errorf("the plugin has died meanwhile: %+v", s)
	}
}

func TestTrapCloseOnExec(t *testing.T) {
	p := builtin("tcp", "").start(t)
	a, b := pair(t, p, listen(t, p))
	for _, l := range []link.Link{a, b} {
		if flags, err := unix.FcntlInt(uintptr(l.Handle()), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x, %v", flags, err)
		}
	}
}

// A child of the plugin does not inherit the descriptor channel, so the node notices the
// plugin's death although the child lives; nor does anything wait because the child still
// has the log open.
func TestTrapChildOfPlugin(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	child := childOf(t, p, "daemon")
	defer syscall.Kill(child, syscall.SIGKILL)
	strike(t, p, syscall.SIGKILL)
	w.reach(t, StateBackoff)
	a, b := pair(t, p, listen(t, p))
	exchange(t, a, b)
	if err := syscall.Kill(child, 0); err != nil {
		t.Errorf("the child has died too, which proves nothing: %v", err)
	}
}

// childOf has the plugin start a process.
func childOf(t *testing.T, p *Plugin, kind string) (pid int) {
	t.Helper()
	_, err := p.Transport().Dial(soon(t), transports.DialSpec{Address: kind})
	var te *transports.Error
	if !errors.As(err, &te) {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(te.Reason, "child %d", &pid); err != nil {
		t.Fatal(te.Reason, err)
	}
	return pid
}

// A child that is no daemon ends with the plugin, however that ends.
func TestTrapOrphanOfPlugin(t *testing.T) {
	for name, end := range map[string]func(*Plugin){
		"killed": func(p *Plugin) { strike(t, p, syscall.SIGKILL) },
		"closed": func(p *Plugin) { p.Close() },
		"reload": func(p *Plugin) { p.Reload(soon(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := builtin("tcp", "").start(t)
			child := childOf(t, p, "exec")
			end(p)
			waitGone(t, child)
		})
	}
}

// The node is out of descriptors: the link is lost, with the reason, and nothing
// else. (A message with too many descriptors is tested in handover.)
func TestTrapTruncatedAncillaryData(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	l := listen(t, p)
	pair(t, p, l)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	next, err := unix.Dup(0) // the lowest free number
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next), Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	_, err = p.Transport().Dial(soon(t), transports.DialSpec{Address: l.Address()})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	var te *transports.Error
	if !errors.As(err, &te) || te.Code != transports.CodeResource || !te.Retryable || !strings.Contains(te.Reason, "ulimit -n") {
		t.Errorf("got %v", err)
	}
	if s := p.Status(); s.State != StateHealthy || s.Starts != 1 {
		t.Errorf("status %+v", s)
	}
}

// Bytes that the plugin has read already come first.
func TestTrapForgottenPreread(t *testing.T) {
	p := builtin("tcp", "preread").start(t)
	a, b := pair(t, p, listen(t, p))
	if _, err := (stream{t, b}).Write([]byte("and the rest")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("already read:and the rest"))
	if _, err := io.ReadFull(stream{t, a}, got); err != nil || string(got) != "already read:and the rest" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Descriptors for links that nobody opens are closed, and are given to no other link.
func TestTrapConfusedDelivery(t *testing.T) {
	w := builtin("tcp", "rogue")
	p := w.start(t)
	l := listen(t, p)
	a, b := pair(t, p, l)
	exchange(t, a, b)
	before := descriptors(t)
	c, d := pair(t, p, l)
	exchange(t, c, d)
	if after := descriptors(t); after > before+4 {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
	w.log.wait(t, `"@level":"warn"`, "is not being opened", `"link":1000`)
}

func descriptors(t *testing.T) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

// The file is swapped between check and start: the one that was checked runs.
func TestTrapSecureConfigPathSwap(t *testing.T) {
	dir := t.TempDir()
	path := install(t, dir, "tcp", launchtest.Self(t))
	sum, err := Digest(path)
	if err != nil {
		t.Fatal(err)
	}
	w := builtin("tcp", "")
	w.Builtin, w.Path, w.SHA256 = false, path, sum
	exe, err := verify(&w.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer exe.file.Close()
	evil := script(t, t.TempDir(), "tcp", "#!/bin/sh\necho evil\n")
	if err := os.Rename(evil, path); err != nil {
		t.Fatal(err)
	}
	inherit := exe.inherits()
	run, release, err := exe.execPath(inherit)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var out bytes.Buffer
	cmd := exec.Cmd{Path: run, Args: []string{path, "-test.run=^$"}, ExtraFiles: inherit, Stdout: &out, Stderr: &out}
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "PASS") {
		t.Errorf("it was not the verified file that ran: %q, %v", out.String(), err)
	}
	if _, err := Start(soon(t), w.Config); !errors.Is(err, ErrChecksum) {
		t.Errorf("the next start: %v", err)
	}
}

// A go-plugin client starts once: each process has its own, and nothing of the old ones
// stays.
func TestTrapClientStartsOnce(t *testing.T) {
	w := builtin("tcp", "")
	w.Restart.Attempts = 100
	p := w.start(t)
	l := listen(t, p)
	w.reach(t, StateHealthy)
	for range 3 { // let what is allocated once be allocated
		strike(t, p, syscall.SIGKILL)
		w.reach(t, StateHealthy)
	}
	before := descriptors(t)
	for range 5 {
		strike(t, p, syscall.SIGKILL)
		w.reach(t, StateHealthy)
	}
	for end := farOff(); ; runtime.Gosched() { // gRPC closes a connection that its peer has ended when it gets round to it
		after := descriptors(t)
		if after <= before {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d descriptors after five restarts, %d before", after, before)
		}
	}
	a, b := pair(t, p, l)
	exchange(t, a, b)
}

func TestTrapConfigurationTooLarge(t *testing.T) {
	w := builtin("tcp", "settings")
	w.Settings = map[string]any{"path": strings.Repeat("x", 1<<20), "speed": 1}
	_, err := Start(soon(t), w.Config)
	var se *transports.SettingError
	if !errors.Is(err, ErrSettings) || !errors.As(err, &se) || se.Name != "path" || !strings.Contains(se.Problem, "1048576") {
		t.Errorf("got %v", err)
	}
}

// IsPlugin reports false for processes that are not plugins.
func TestIsNoPlugin(t *testing.T) {
	if sdk.IsPlugin() {
		t.Error("the test believes that it is a plugin")
	}
}

// A Ctrl-C in a terminal goes to the node's whole process group. The node needs
// its plugins to end the job in order.
func TestTrapSignalToTheGroup(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	group, err := unix.Getpgid(p.Status().PID)
	if err != nil {
		t.Fatal(err)
	}
	if group == unix.Getpgrp() {
		t.Errorf("the plugin is in our process group, %d", group)
	}
}

// A process that was started through a descriptor goes by its number in ps.
func TestTrapNamelessProcess(t *testing.T) {
	w := builtin("tcp", "")
	p := w.start(t)
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.Status().PID))
	if err != nil || strings.TrimSpace(string(name)) != "impi-tcp" {
		t.Errorf("ps shows it as %q, %v", name, err)
	}
}
