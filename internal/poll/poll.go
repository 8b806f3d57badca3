// Package poll waits for descriptors without the Go runtime's poller, which needs a thread
// switch to wake a goroutine, more than a message costs. A Set is an epoll descriptor, a
// Waker an eventfd for it.
package poll

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// Event says what has happened to a descriptor.
type Event struct {
	Key      uint32 // as given to Add
	Readable bool   // data, end of data, or an error that reading reports
	Writable bool
}

// Set is a set of descriptors. Wait is for one goroutine at a time; the other
// methods may be called while it sleeps.
type Set struct {
	fd     int
	raw    [64]unix.EpollEvent
	events [64]Event
}

// NewSet makes a set without descriptors. It uses one itself, until Close.
func NewSet() (*Set, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &Set{fd: fd}, nil
}

func mask(want link.Interest) uint32 {
	var m uint32
	if want&link.Readable != 0 {
		m |= unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if want&link.Writable != 0 {
		m |= unix.EPOLLOUT
	}
	return m
}

func (s *Set) control(op, fd int, key uint32, want link.Interest) error {
	ev := unix.EpollEvent{Events: mask(want), Fd: int32(key)}
	if err := unix.EpollCtl(s.fd, op, fd, &ev); err != nil {
		return fmt.Errorf("epoll: descriptor %d: %w", fd, err)
	}
	return nil
}

// Add adds a descriptor. Its events carry key.
func (s *Set) Add(fd int, key uint32, want link.Interest) error {
	return s.control(unix.EPOLL_CTL_ADD, fd, key, want)
}

// Modify changes what is waited for.
func (s *Set) Modify(fd int, key uint32, want link.Interest) error {
	return s.control(unix.EPOLL_CTL_MOD, fd, key, want)
}

// Remove removes a descriptor, which must still be open.
func (s *Set) Remove(fd int) error { return s.control(unix.EPOLL_CTL_DEL, fd, 0, 0) }

// Wait returns what is ready, waiting for up to timeout; a negative one means without limit. A
// timeout below a millisecond may take a whole one before Linux 5.11. With 0 Wait is a system call
// that the scheduler does not see. The slice is reused by the next Wait.
func (s *Set) Wait(timeout time.Duration) ([]Event, error) {
	n, errno := s.wait(timeout)
	if errno != 0 {
		if errno == unix.EINTR {
			return nil, nil
		}
		return nil, fmt.Errorf("epoll: %w", errno)
	}
	for i, r := range s.raw[:n] {
		s.events[i] = Event{
			Key:      uint32(r.Fd),
			Readable: r.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0,
			Writable: r.Events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0,
		}
	}
	return s.events[:n], nil
}

func (s *Set) wait(timeout time.Duration) (int, unix.Errno) {
	p := uintptr(unsafe.Pointer(&s.raw[0]))
	if timeout == 0 {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.fd), p, uintptr(len(s.raw)), 0, 0, 0)
		return int(n), errno
	}
	ms := -1
	if timeout > 0 && timeout < time.Millisecond {
		ts := unix.NsecToTimespec(int64(timeout))
		n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(s.fd), p, uintptr(len(s.raw)), uintptr(unsafe.Pointer(&ts)), 0, 0)
		if errno != unix.ENOSYS {
			return int(n), errno
		}
	}
	if timeout > 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.fd), p, uintptr(len(s.raw)), uintptr(ms), 0, 0)
	return int(n), errno
}

// Close releases the set, not the descriptors in it.
func (s *Set) Close() error { return unix.Close(s.fd) }

// Waker ends the Wait of another thread.
type Waker struct {
	fd   int
	last [8]byte // what Clear has read
}

// one is what Wake writes.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// NewWaker makes a Waker; put its FD into a Set.
func NewWaker() (*Waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &Waker{fd: fd}, nil
}

// FD returns the descriptor, which is readable from Wake until Clear.
func (w *Waker) FD() int { return w.fd }

// Wake makes FD readable. Any goroutine may call it, any number of times.
func (w *Waker) Wake() {
	_, _ = unix.Write(w.fd, one) // fails only if the counter is full, and then FD is readable
}

// Clear makes FD unreadable again. One goroutine at a time may call it.
func (w *Waker) Clear() {
	_, _ = unix.Read(w.fd, w.last[:]) // EAGAIN: it was clear
}

// Close releases the descriptor.
func (w *Waker) Close() error { return unix.Close(w.fd) }

// WakerOf makes a Waker of an existing eventfd, which it owns from then on.
func WakerOf(fd int) *Waker { return &Waker{fd: fd} }
