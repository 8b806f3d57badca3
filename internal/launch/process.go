package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// promptDelay is how long an incomplete line is held back: it may be a question to the user,
	// and the program waits for the answer.
	promptDelay = 150 * time.Millisecond

	// drainDelay is how long the output has to pause, after the process has ended, until no more is
	// expected. Only a descendant that left the process group can still write.
	drainDelay = time.Second
)

// Spec describes what to start.
type Spec struct {
	Path string   // absolute
	Args []string // beginning with the program's name
	Dir  string
	Env  []string // complete: nothing is inherited

	CPUs *unix.CPUSet // on which it may run; nil: those of this process

	Stdin *os.File   // nil: /dev/null
	Files []*os.File // become descriptors 3, 4, ...

	// Stdout and Stderr are each a *Stream, which is closed at the end, or an *os.File, to which
	// the process writes directly. Nil: /dev/null.
	Stdout, Stderr io.Writer
}

// Process is a process that leads a process group of its own, so that a terminal's Ctrl-C does not
// reach it, and that dies with its starter.
type Process struct {
	os      *os.Process
	adopted *adopted // nil: this process has started it
	pipes   []*pipe
	exited  chan struct{}
	done    chan struct{}
	exit    Exit
	at      time.Time // of the end

	mu     sync.Mutex // held while the pid is in use
	reaped bool       // the pid does not belong to it any more
}

// Start starts a process. The error is for one that does not run at all; how one ends is in Exit.
func (l *Launcher) Start(s Spec) (*Process, error) {
	p := &Process{exited: make(chan struct{}), done: make(chan struct{})}
	if err := p.start(l, s); err != nil {
		p.closePipes()
		return nil, fmt.Errorf("cannot start %s: %w", s.Path, err)
	}
	go p.watch()
	return p, nil
}

func (p *Process) start(l *Launcher, s Spec) error {
	if st, err := os.Stat(s.Dir); s.Dir != "" && (err != nil || !st.IsDir()) {
		return fmt.Errorf("its working folder %s is not there", s.Dir)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []*os.File{s.Stdin, nil, nil}
	for i, w := range []io.Writer{s.Stdout, s.Stderr} {
		f, ours, err := p.attach(w)
		if err != nil {
			return err
		}
		if ours {
			defer f.Close() // the process has its own copy
		}
		files[i+1] = f
	}
	for i, f := range files {
		if f == nil {
			files[i] = null
		}
	}
	attr := &os.ProcAttr{
		Dir: s.Dir, Env: append([]string{}, s.Env...), Files: append(files, s.Files...),
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	var serr error
	if err := l.do(func() {
		serr = bound(s.CPUs, func() (err error) {
			p.os, err = os.StartProcess(s.Path, s.Args, attr)
			return err
		})
	}); err != nil {
		return err
	}
	return cause(serr)
}

// cause removes from a PathError the path, which the caller's message has already.
func cause(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// attach returns the file that becomes the process's stdout or stderr, and whether it is a pipe
// that was made for that.
func (p *Process) attach(w io.Writer) (f *os.File, ours bool, err error) {
	switch w := w.(type) {
	case nil:
		return nil, false, nil
	case *os.File:
		return w, false, nil
	case *Stream:
		r, f, err := os.Pipe()
		if err != nil {
			return nil, false, err
		}
		p.pipes = append(p.pipes, newPipe(r, w))
		return f, true, nil
	}
	return nil, false, fmt.Errorf("output cannot go to a %T", w)
}

func (p *Process) closePipes() {
	for _, q := range p.pipes {
		_ = q.r.Close()
	}
}

// PID returns the process's ID, which is also that of its group.
func (p *Process) PID() int { return p.os.Pid }

// Exited returns a channel that is closed when the process has ended; Exit is known then.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Done returns a channel that is closed after Exited, when everything that the process has printed
// was written.
func (p *Process) Done() <-chan struct{} { return p.done }

// Over reports whether the process has ended, without waiting for it.
func (p *Process) Over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Exit returns how the process ended. It waits until it has.
func (p *Process) Exit() Exit {
	<-p.exited
	return p.exit
}

// EndedAt returns when the end of the process was seen. It waits until then.
func (p *Process) EndedAt() time.Time {
	<-p.exited
	return p.at
}

// Signal sends a signal to the process and those of its descendants that are in its group. It is
// not an error if the process has ended.
func (p *Process) Signal(s syscall.Signal) error { return p.send(s, true, "process group") }

// SignalProcess sends a signal to the process only. It is not an error if the process has ended.
func (p *Process) SignalProcess(s syscall.Signal) error { return p.send(s, false, "process") }

func (p *Process) send(s syscall.Signal, group bool, to string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := p.kill(s, group); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s to %s %d: %w", SignalName(s), to, p.os.Pid, err)
	}
	return nil
}

// watch waits for the end of the process. Then it kills the rest of the group, while the process is
// a zombie and its pid cannot be reused.
func (p *Process) watch() {
	for _, q := range p.pipes {
		go q.copy()
	}
	for unix.Waitid(unix.P_PID, p.os.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.reap()
	close(p.exited)
	for _, q := range p.pipes {
		q.drain()
	}
	for _, q := range p.pipes {
		<-q.done
	}
	close(p.done)
}

func (p *Process) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped, p.at = true, time.Now()
	_ = unix.Kill(-p.os.Pid, unix.SIGKILL) // the group may have no other process
	p.exit = Exit{Code: 255}
	if st, err := p.os.Wait(); err == nil { // fails only if other code has waited for our child
		p.exit = exitOf(st.Sys().(syscall.WaitStatus))
	}
}
