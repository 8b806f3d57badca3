package launch

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// adopted has the state of a Process that another process has started.
type adopted struct {
	pidfd *os.File
	fd    int       // descriptor of pidfd, while the Process is not reaped
	once  sync.Once // guards against a second end
}

// Adopt follows a process that another one has started and will wait for. It can be seen that it
// ends, but not how. Signals are sent to it alone, as it does not lead its group.
func Adopt(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("process %d cannot be followed: pidfd_open: %w", pid, err)
	}
	p := &Process{
		os: &os.Process{Pid: pid}, adopted: &adopted{pidfd: os.NewFile(uintptr(fd), "pidfd"), fd: fd},
		exited: make(chan struct{}), done: make(chan struct{}),
	}
	go p.await()
	return p, nil
}

// await waits for the end of an adopted process.
func (p *Process) await() {
	raw, err := p.adopted.pidfd.SyscallConn()
	if err != nil {
		return // Release was called
	}
	ended := false
	err = raw.Read(func(fd uintptr) bool {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ended = ready > 0 && err == nil
		return ended
	})
	if err == nil && ended {
		p.over(Exit{Unseen: true})
	}
}

// Adopted reports whether the process was started by another one.
func (p *Process) Adopted() bool { return p.adopted != nil }

// Release makes an adopted process count as ended in order; the process that has started it is
// responsible for it from then on. It does nothing to other processes.
func (p *Process) Release() {
	if p.Adopted() {
		p.over(Exit{})
	}
}

func (p *Process) over(e Exit) {
	p.adopted.once.Do(func() {
		p.mu.Lock()
		p.reaped = true
		p.mu.Unlock()
		p.exit = e
		_ = p.adopted.pidfd.Close() // so that await returns
		close(p.exited)
		close(p.done)
	})
}

// kill sends a signal to the process or, with group, to all of its group.
func (p *Process) kill(s unix.Signal, group bool) error {
	switch {
	case p.Adopted():
		return unix.PidfdSendSignal(p.adopted.fd, s, nil, 0)
	case group:
		return unix.Kill(-p.os.Pid, s)
	}
	return unix.Kill(p.os.Pid, s)
}
