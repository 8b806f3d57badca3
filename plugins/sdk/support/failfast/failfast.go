// Package failfast has connections for gRPC that end when a write on them fails.
//
// gRPC keeps a connection whose write has failed and expects its reader to find the same error.
// That is so when the other end is gone. It is not when the kernel had no memory for what was to be
// written, for example: then nothing is written any more, nobody reads an error, and calls wait
// until their limits.
package failfast

import (
	"errors"
	"net"
	"syscall"
)

// Conn returns a connection that writes to c and closes it if that fails, unless the other end is
// gone: then a read finds that, too, after the bytes that the other end has sent before.
func Conn(c net.Conn) net.Conn { return conn{c} }

type conn struct{ net.Conn }

func (c conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if Ends(err) {
		_ = c.Close() // err says what went wrong
	}
	return n, err
}

// Ends reports whether a connection is to be closed after a write that has returned err.
func Ends(err error) bool {
	return err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET)
}

// Listener returns a listener whose connections are those of l, wrapped by Conn.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Conn(c), nil
}
