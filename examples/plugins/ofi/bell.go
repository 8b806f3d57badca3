package main

import (
	"syscall"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// bell is a pair of sockets by which a node wakes the user of a link: one is readable when there is
// a byte from the other, and writable when the other has taken what fills it. A nil bell does
// nothing.
type bell struct{ user, node int }

func newBell() (*bell, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	_ = syscall.SetsockoptInt(fds[0], syscall.SOL_SOCKET, syscall.SO_SNDBUF, 4096) // otherwise it takes longer to fill
	return &bell{fds[0], fds[1]}, nil
}

func (b *bell) handle() int {
	if b == nil {
		return link.NoHandle
	}
	return b.user
}

var filling [4096]byte

// set drains the user's socket, so that it is not readable, and if writability is wanted fills it,
// so that it is not writable.
func (b *bell) set(want link.Interest) {
	if b == nil {
		return
	}
	drain(b.user)
	for want&link.Writable != 0 {
		if n, err := syscall.Write(b.user, filling[:]); n <= 0 && err != syscall.EINTR {
			return // the socket's buffer is full
		}
	}
}

// ring makes the user's socket readable or writable.
func (b *bell) ring(what link.Interest) {
	switch {
	case b == nil:
	case what == link.Readable:
		_, _ = syscall.Write(b.node, filling[:1]) // a full buffer is readable already
	default:
		drain(b.node)
	}
}

func drain(fd int) {
	var b [4096]byte
	for {
		if n, err := syscall.Read(fd, b[:]); n <= 0 && err != syscall.EINTR {
			return
		}
	}
}

func (b *bell) close() {
	if b != nil {
		_, _ = syscall.Close(b.user), syscall.Close(b.node)
	}
}
