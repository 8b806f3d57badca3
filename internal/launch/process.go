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
	// promptDelay is how long an unfinished line is held back: a program that asks
	// its user something waits for the answer behind it.
	promptDelay = 150 * time.Millisecond

	// drainDelay is how long the output of a process that is gone may pause until
	// nothing more is expected. Only a descendant that left its process group can
	// make use of it.
	drainDelay = time.Second
)

// Spec says what to start.
type Spec struct {
	Path string   // absolute
	Args []string // with the program's name first
	Dir  string
	Env  []string // all of it: nothing is inherited

	CPUs *unix.CPUSet // that it may run on; nil: those of its starter

	Stdin *os.File   // nil: /dev/null
	Files []*os.File // become descriptors 3, 4, ...

	// Stdout and Stderr are each a *Stream, which is closed at the end, or an
	// *os.File, which the process writes to itself. Nil: /dev/null.
	Stdout, Stderr io.Writer
}

// Process is a process that leads a group of its own, so that a terminal's
// Ctrl-C reaches its starter only, and that dies with its starter.
type Process struct {
	os     *os.Process
	pipes  []*pipe
	exited chan struct{}
	done   chan struct{}
	exit   Exit

	mu     sync.Mutex // held while the process's number is used
	reaped bool       // and is not ours any more
}

// Start starts a process.
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

// cause leaves out of a PathError what the caller says better.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// attach returns the file that becomes the process's stdout or stderr, and
// whether it was made for that.
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

// PID is the process's id, and its group's.
func (p *Process) PID() int { return p.os.Pid }

// Exited is closed when the process has ended; Exit is known then.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Done is closed after Exited, when all that the process printed was written.
func (p *Process) Done() <-chan struct{} { return p.done }

// Over reports whether the process has ended.
func (p *Process) Over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Exit says how the process ended. It waits until it has.
func (p *Process) Exit() Exit {
	<-p.exited
	return p.exit
}

// Signal sends a signal to the process and its descendants that stayed in its
// group. A process that has ended is no error.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := unix.Kill(-p.os.Pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s to process group %d: %w", SignalName(s), p.os.Pid, err)
	}
	return nil
}

// Tell sends a signal to the process and to nothing that it has started. A process that has
// ended is no error.
func (p *Process) Tell(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := unix.Kill(p.os.Pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s to process %d: %w", SignalName(s), p.os.Pid, err)
	}
	return nil
}

// watch follows the process to its end. While it is a zombie its number cannot
// be given to another process, so that is when the rest of its group is ended.
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
	p.reaped = true
	_ = unix.Kill(-p.os.Pid, unix.SIGKILL) // there may be nobody left in it
	p.exit = Exit{Code: 255}
	if st, err := p.os.Wait(); err == nil { // else somebody else waited for our child
		p.exit = exitOf(st.Sys().(syscall.WaitStatus))
	}
}
