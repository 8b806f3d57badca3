package socket

import (
	"fmt"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Conn is a connection of package net, as far as FromConn uses it.
type Conn interface {
	syscall.Conn
	io.Closer
}

// NetConn is a connection of package net that has a descriptor, with all its methods: reading,
// writing, addresses and deadlines. *net.TCPConn and *net.UnixConn are some. Each is a Conn.
type NetConn interface {
	net.Conn
	syscall.Conn
}

// FromConn makes a link of a connection that package net has opened, and removes it from
// Go's network poller. It always closes c; the link has a copy of the socket.
func FromConn(c Conn) (*Link, error) {
	fd, err := take(c)
	if err != nil {
		return nil, err
	}
	return New(fd, nil)
}

// take copies the descriptor of c and closes c.
func take(c Conn) (int, error) {
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("connection without descriptor: %w", err)
	}
	fd, dupErr := -1, error(nil)
	err = raw.Control(func(s uintptr) {
		fd, dupErr = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = dupErr
	}
	if err != nil {
		return -1, fmt.Errorf("duplicate the descriptor of a connection: %w", err)
	}
	return fd, nil
}
