package launch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessWatcher follows processes that another process has started and will wait for. It cannot
// see how they end, only that they do, and which of them first.
type ProcessWatcher struct {
	file *os.File // epoll instance that reports processes in the order of their ends
	epfd int
	done chan struct{}

	mu  sync.Mutex
	all map[int]*Process // by the descriptor that follows it
}

type adopted struct {
	by   *ProcessWatcher
	fd   int // follows the process until it is reaped
	once sync.Once
}

// NewProcessWatcher makes a ProcessWatcher that follows no process yet. It uses a descriptor and a
// goroutine until Close.
func NewProcessWatcher() (*ProcessWatcher, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	_ = unix.SetNonblock(fd, true) // lets Go's runtime poll the file; the descriptor is our own
	a := &ProcessWatcher{file: os.NewFile(uintptr(fd), "adopted"), epfd: fd, done: make(chan struct{}), all: make(map[int]*Process)}
	go a.await()
	return a, nil
}

// Close ends the watch. Processes that still run are not followed any more.
func (a *ProcessWatcher) Close() {
	_ = a.file.Close() // makes await return
	<-a.done
	for _, p := range a.followed() {
		p.over(Exit{Unseen: true})
	}
}

func (a *ProcessWatcher) followed() (list []*Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.all))
}

// Watch follows a process. Signals go to it alone, as its group is not its own.
func (a *ProcessWatcher) Watch(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("process %d cannot be followed: pidfd_open: %w", pid, err)
	}
	p := &Process{
		os: &os.Process{Pid: pid}, adopted: &adopted{by: a, fd: fd},
		exited: make(chan struct{}), done: make(chan struct{}),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[fd] = p
	if err := unix.EpollCtl(a.epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		delete(a.all, fd)
		return nil, errors.Join(fmt.Errorf("process %d cannot be followed: epoll_ctl: %w", pid, err), unix.Close(fd))
	}
	return p, nil
}

// await waits for the ends of processes. The kernel reports them in their order.
func (a *ProcessWatcher) await() {
	defer close(a.done)
	raw, err := a.file.SyscallConn()
	if err != nil {
		return // it was closed
	}
	for err == nil {
		var ended []*Process
		err = raw.Read(func(fd uintptr) bool {
			var events [16]unix.EpollEvent
			a.mu.Lock() // so that no descriptor is reused for another process meanwhile
			defer a.mu.Unlock()
			n, err := unix.EpollWait(int(fd), events[:], 0)
			for i := range max(n, 0) {
				if p := a.all[int(events[i].Fd)]; p != nil {
					ended = append(ended, p)
				}
			}
			return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
		})
		for _, p := range ended {
			p.over(Exit{Unseen: true})
		}
	}
}

// Watched reports whether the process comes from a ProcessWatcher: another process has started it.
func (p *Process) Watched() bool { return p.adopted != nil }

// Release makes an adopted process count as one that has ended in order: what it does from then on
// concerns only the process that has started it. It does nothing to processes that are not adopted.
func (p *Process) Release() {
	if p.Watched() {
		p.over(Exit{})
	}
}

func (p *Process) over(e Exit) {
	p.adopted.once.Do(func() {
		a := p.adopted.by
		a.mu.Lock()
		delete(a.all, p.adopted.fd)
		a.mu.Unlock()
		p.mu.Lock()
		p.reaped = true
		_ = unix.Close(p.adopted.fd) // this removes it from the epoll instance
		p.mu.Unlock()
		p.exit, p.at = e, time.Now()
		close(p.exited)
		close(p.done)
	})
}

func (p *Process) kill(s unix.Signal, group bool) error {
	switch {
	case p.Watched():
		return unix.PidfdSendSignal(p.adopted.fd, s, nil, 0)
	case group:
		return unix.Kill(-p.os.Pid, s)
	}
	return unix.Kill(p.os.Pid, s)
}
