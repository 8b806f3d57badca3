package launch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/transcript"
)

// The test binary is also the program that the tests start: the word in
// IMPI_TEST_ROLE says which.
func TestMain(m *testing.M) {
	if role := os.Getenv("IMPI_TEST_ROLE"); role != "" {
		roles[role]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var roles = map[string]func(){
	"cat":    func() { _, _ = io.Copy(os.Stdout, os.Stdin) },
	"status": func() { os.Exit(7) },
	"block":  func() { fmt.Println("ready"); forever() },
	"flood": func() {
		w := bufio.NewWriter(os.Stdout)
		for i := range 20000 {
			fmt.Fprintf(w, "line %d\n", i)
		}
		w.Flush()
	},
	"prompt": func() {
		fmt.Print("name? ")
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Println("hello " + strings.TrimSpace(line))
	},
	"cpus": func() {
		var allowed unix.CPUSet
		if err := unix.SchedGetaffinity(0, &allowed); err != nil {
			fmt.Println(err)
		}
		fmt.Println(allowed)
	},
	"env": func() { fmt.Println(strings.Join(os.Environ(), " ")) },
	"file": func() {
		b, err := io.ReadAll(os.NewFile(3, ""))
		fmt.Println(string(b), err)
	},
	"deaf": func() {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		forever()
	},
	// A starter whose child, and the child's child, are still there when it is killed.
	"starter": func() {
		l := New()
		p, err := l.Start(spec("block", os.Stdout))
		if err != nil {
			panic(err)
		}
		fmt.Println("child", p.PID())
		forever()
	},
	"family": func() {
		s := spec("block", nil)
		p, err := os.StartProcess(s.Path, s.Args, &os.ProcAttr{Env: s.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
		if err != nil {
			panic(err)
		}
		fmt.Println("grandchild", p.Pid)
		forever()
	},
	// Leaves a child in another process group that holds stdout open.
	"daemon": func() {
		s := spec("block", nil)
		p, err := os.StartProcess(s.Path, s.Args, &os.ProcAttr{Env: s.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			panic(err)
		}
		fmt.Println("daemon", p.Pid)
	},
}

// forever waits to be killed. Go ends a program in which nothing can ever happen.
func forever() {
	for {
		_ = unix.Pause()
	}
}

func spec(role string, out io.Writer) Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{Path: self, Args: []string{role}, Env: []string{"IMPI_TEST_ROLE=" + role}, Stdout: out}
}

func start(t *testing.T, s Spec) *Process {
	t.Helper()
	l := New()
	p, err := l.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Signal(syscall.SIGKILL)
		<-p.Done()
		l.Close()
	})
	return p
}

func TestExitStatus(t *testing.T) {
	p := start(t, spec("status", nil))
	if e := p.Exit(); e.Code != 7 || e.Status() != 7 || e.OK() || e.String() != "exited with status 7" {
		t.Errorf("%+v: %v", e, e)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signal after the end: %v", err)
	}
}

func TestKilled(t *testing.T) {
	out := &transcript.Writer{}
	p := start(t, spec("deaf", NewOutput(out, nil).Stream(nil)))
	out.Await("ready\n", 1)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if e := p.Exit(); e.Status() != 137 || e.String() != "was killed by SIGKILL" {
		t.Errorf("%+v: %v", e, e)
	}
}

func TestNothingIsInherited(t *testing.T) {
	t.Setenv("IMPI_TEST_SECRET", "x")
	out := &transcript.Writer{}
	<-start(t, spec("env", NewOutput(out, nil).Stream(nil))).Done()
	if got := out.String(); got != "IMPI_TEST_ROLE=env\n" {
		t.Errorf("environment: %q", got)
	}
}

func TestExtraFileIsDescriptorThree(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "handed over")
	w.Close()
	defer r.Close()
	out := &transcript.Writer{}
	s := spec("file", NewOutput(out, nil).Stream(nil))
	s.Files = []*os.File{r}
	<-start(t, s).Done()
	if got := out.String(); got != "handed over <nil>\n" {
		t.Errorf("%q", got)
	}
}

func TestNoOutputIsLostAtExit(t *testing.T) {
	out := &transcript.Writer{}
	<-start(t, spec("flood", NewOutput(out, nil).Stream(func() string { return "[3] " }))).Done()
	lines := strings.SplitAfter(out.String(), "\n")
	if len(lines) != 20001 || lines[19999] != "[3] line 19999\n" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-2])
	}
}

func TestPromptIsShown(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := &transcript.Writer{}
	s := spec("prompt", NewOutput(out, nil).Stream(func() string { return "[0] " }))
	if s.Stdin, err = Stdin(r); err != nil || s.Stdin != r {
		t.Fatal("a pipe can be read by the process itself", err)
	}
	p := start(t, s)
	out.Await("[0] name? ", 1) // the program waits for us now
	fmt.Fprintln(w, "bob")
	w.Close()
	<-p.Done()
	if got := out.String(); got != "[0] name? hello bob\n" {
		t.Errorf("%q", got)
	}
}

func TestChildrenDieWithTheirStarter(t *testing.T) {
	out := &transcript.Writer{}
	p := start(t, spec("starter", NewOutput(out, nil).Stream(nil)))
	child := launchtest.Pidfd(t, out.Number(t, "child "))
	out.Await("ready\n", 1)
	if err := p.os.Kill(); err != nil { // not its group
		t.Fatal(err)
	}
	launchtest.AwaitEnd(t, child)
}

func TestDescendantsDieWithTheProcess(t *testing.T) {
	out := &transcript.Writer{}
	p := start(t, spec("family", NewOutput(out, nil).Stream(nil)))
	child := launchtest.Pidfd(t, out.Number(t, "grandchild "))
	out.Await("ready\n", 1)
	if err := p.os.Kill(); err != nil {
		t.Fatal(err)
	}
	launchtest.AwaitEnd(t, child)
}

func TestEscapedDescendantDoesNotHoldTheEnd(t *testing.T) {
	out := &transcript.Writer{}
	p := start(t, spec("daemon", NewOutput(out, nil).Stream(nil)))
	pid := out.Number(t, "daemon ")
	<-p.Done()
	_ = unix.Kill(pid, unix.SIGKILL)
}

func TestCannotStart(t *testing.T) {
	l := New()
	defer l.Close()
	dir := t.TempDir()
	for want, s := range map[string]Spec{
		"no such file or directory": {Path: filepath.Join(dir, "prog")},
		"is not there":              {Path: "/bin/true", Dir: filepath.Join(dir, "work")},
		"permission denied":         {Path: dir},
		"cannot go to":              {Path: "/bin/true", Stdout: &bytes.Buffer{}},
	} {
		if _, err := l.Start(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	l.Close()
	if _, err := l.Start(Spec{Path: "/bin/true"}); err == nil || !strings.Contains(err.Error(), ErrStopped.Error()) {
		t.Errorf("after Close: %v", err)
	}
}
