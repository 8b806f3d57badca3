package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/openimpi/impi/plugins/sdk/transports"
)

var reasons = []struct {
	errno     syscall.Errno
	code      transports.Code
	retryable bool
	reason    string
}{
	{syscall.ECONNREFUSED, transports.CodeRefused, true, "nobody listens there"},
	{syscall.ECONNRESET, transports.CodeRefused, true, "the other side hung up at once"},
	{syscall.ECONNABORTED, transports.CodeRefused, true, "the other side hung up at once"},
	{syscall.EPIPE, transports.CodeRefused, true, "the other side has hung up: it was gone, or had given up waiting"},
	{syscall.ENOENT, transports.CodeUnreachable, true, "there is no such socket file; the listener is gone or not there yet"},
	{syscall.EHOSTUNREACH, transports.CodeUnreachable, true, "the host cannot be reached"},
	{syscall.ENETUNREACH, transports.CodeUnreachable, true, "there is no route to that network"},
	{syscall.EHOSTDOWN, transports.CodeUnreachable, true, "the host is down"},
	{syscall.ENETDOWN, transports.CodeUnreachable, true, "the network interface is down"},
	{syscall.ETIMEDOUT, transports.CodeTimeout, true, "the host does not answer"},
	{syscall.EADDRNOTAVAIL, transports.CodeAddress, false, "this machine does not have the address to use on its own side"},
	{syscall.ENAMETOOLONG, transports.CodeAddress, false, "the path is too long for a socket"},
	{syscall.EADDRINUSE, transports.CodeResource, true, "the address is in use; choose another port or end the program that has it"},
	{syscall.EACCES, transports.CodeResource, false, "the system does not permit this; check the port number and the permissions of the path"},
	{syscall.EPERM, transports.CodeResource, false, "the system does not permit this; check the firewall and the permissions of the path"},
	{syscall.EMFILE, transports.CodeResource, true, "this process has too many descriptors open; raise ulimit -n"},
	{syscall.ENFILE, transports.CodeResource, true, "the machine has too many descriptors open; raise fs.file-max"},
	{syscall.EAGAIN, transports.CodeResource, true, "the listener's queue is full"},
	{syscall.ENOBUFS, transports.CodeResource, true, "the kernel is out of socket memory"},
	{syscall.ENOMEM, transports.CodeResource, true, "the kernel is out of memory"},
	{syscall.EAFNOSUPPORT, transports.CodeUnsupported, false, "this machine does not have that kind of address"},
}

// Failure converts an error of package net or the kernel to the *transports.Error of the
// contract; op is "listen", "accept" or "dial".
func Failure(transport, op, address string, err error) *transports.Error {
	e := &transports.Error{
		Transport: transport, Op: op, Address: address, Cause: err,
		Code: transports.CodeInternal, Reason: err.Error(),
	}
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		e.Code, e.Retryable, e.Reason = transports.CodeTimeout, true, "the caller gave up waiting"
		return e
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		e.Code, e.Retryable, e.Reason = transports.CodeTimeout, true, "no answer in time"
		return e
	}
	for _, r := range reasons {
		if errors.Is(err, r.errno) {
			e.Code, e.Retryable, e.Reason = r.code, r.retryable, r.reason
			return e
		}
	}
	if errors.As(err, &timeout) && timeout.Timeout() {
		e.Code, e.Retryable, e.Reason = transports.CodeTimeout, true, "no answer in time"
	}
	return e
}

// BadAddress returns the contract's error for an address that is malformed.
func BadAddress(transport, op, address, reason string) *transports.Error {
	return &transports.Error{
		Transport: transport, Op: op, Address: address,
		Code: transports.CodeAddress, Reason: reason,
	}
}
