package play

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type process struct {
	t     *T
	name  string
	cmd   *exec.Cmd
	lines chan string // of standard output, for readers
	ended chan struct{}
	words atomic.Int32 // lines that it has printed
	trap  atomic.Bool  // a line shows that a Go program has crashed
	err   error        // after ended
}

func (t *T) run(name string, cmd *exec.Cmd) *process {
	p := &process{t: t, name: name, cmd: cmd, lines: make(chan string, 1000), ended: make(chan struct{})}
	cmd.SysProcAttr = cmp.Or(cmd.SysProcAttr, &syscall.SysProcAttr{})
	cmd.SysProcAttr.Setpgid = true
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, caseVariable+"="+t.dir)
	out, err := cmd.StdoutPipe()
	t.must(err)
	diagnostics, err := cmd.StderrPipe()
	t.must(err)
	t.trace.add("## %s: %v", name, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s cannot be started: %v", name, err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.show(out, p.lines); close(p.lines) })
	reading.Go(func() { p.show(diagnostics, nil) })
	go func() {
		reading.Wait()
		p.err = cmd.Wait()
		t.trace.add("## %s: ended, %v", name, cmd.ProcessState)
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	return p
}

// caseVariable is in the environment of everything that a case starts; its value is the case's
// directory.
const caseVariable = "IMPI_CONFORM_CASE"

// sweep kills what a case has left behind: daemons and the like, which have left the
// group of the process that was started. Where there is no /proc it does nothing.
func sweep(dir string) {
	mark := []byte(caseVariable + "=" + dir + "\x00")
	for found := true; found; {
		found = false
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, f := range files {
			if b, err := os.ReadFile(f); err != nil || !bytes.Contains(b, mark) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && pid != os.Getpid() {
				found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
			}
		}
	}
}

func (p *process) show(r io.Reader, lines chan<- string) {
	in := bufio.NewScanner(r)
	for in.Scan() {
		p.t.trace.add("## %s prints: %s", p.name, in.Text())
		p.words.Add(1)
		if goroutine.MatchString(in.Text()) {
			p.trap.Store(true)
		}
		if lines != nil {
			select {
			case lines <- in.Text():
			default: // drop lines that are not read
			}
		}
	}
	_, _ = io.Copy(io.Discard, r) // after a line that is too long
}

// goroutine matches a line in the last words of a Go program that has crashed on its own data. Such
// a program ends with an ordinary status, where others are ended by a signal.
var goroutine = regexp.MustCompile(`(^| )goroutine \d+( .*)? \[running.*\]:$`)

func (p *process) kill() {
	if !p.running() {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	if !closes(p.ended, 2*time.Second) {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		closes(p.ended, 2*time.Second) // a descendant that left the group may hold its output
	}
}

func (p *process) running() bool { return !isClosed(p.ended) }

// isClosed reports whether a channel has been closed, closes whether it is within a time.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func closes(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(d):
		return false
	}
}

// begins is how long a program of the IUT may take to begin, as a multiple of the patience: on a
// busy machine it may be slow, and no rule speaks of that.
const begins = 8

func (p *process) line(what string) string {
	select {
	case s, ok := <-p.lines:
		if ok {
			return s
		}
		<-p.ended
		p.t.Fatalf("%s ended (%v) before it printed %s", p.name, p.cmd.ProcessState, what)
	case <-time.After(begins * p.t.patience):
		p.t.Fatalf("%s has not printed %s within %v", p.name, what, begins*p.t.patience)
	}
	return ""
}

// status waits for the end and returns the exit status, which is 128 or more for signals and for
// what amounts to one.
func (p *process) status() int {
	if !closes(p.ended, p.t.patience) {
		p.t.Fatalf("%s still runs after %v", p.name, p.t.patience)
	}
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return 128 + int(s.Signal())
		}
		if p.trap.Load() {
			return 128 + int(syscall.SIGABRT)
		}
		return exit.ExitCode()
	}
	p.t.must(p.err)
	return 0
}

func (p *process) succeeds() {
	if s := p.status(); s != 0 {
		p.t.Fatalf("%s ended with status %d", p.name, s)
	}
}

// fails waits for an end that the process has chosen, with a status that is not 0.
func (p *process) fails(why string) {
	if s := p.status(); s == 0 || s >= 128 {
		p.t.Fatalf("%s ended with status %d: %s", p.name, s, why)
	}
}

// survives fails the case if the process was killed by a signal (a status from 128 on). To go on
// and to exit are both allowed. It is called when a connection was closed, which may be the first
// sign of an exit, and waits a moment for one.
func (p *process) survives(why string) {
	if closes(p.ended, p.t.patience/4) && p.status() >= 128 {
		p.t.Fatalf("%s died with status %d: %s", p.name, p.status(), why)
	}
}

func (p *process) alive(why string) {
	if !p.running() {
		p.t.Fatalf("%s has ended (%v): %s", p.name, p.cmd.ProcessState, why)
	}
}
