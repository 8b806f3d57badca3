package socket

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

const (
	// maxSlices is how many slices one system call gets; longer batches take several calls.
	maxSlices = 64

	// large is the size from which Go's scheduler is told of a send. Below it that costs
	// more than it gains: see docs/transports.md. It is never told of receives: their size
	// is that of the room, mostly for a poll that brings nothing.
	large = 64 << 10

	// flags make the calls non-blocking even if another process that shares the open file
	// has cleared O_NONBLOCK, and avoid SIGPIPE.
	flags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
)

type half struct {
	err    error  // returned by all further calls
	moved  uint64 // bytes moved by system calls
	header unix.Msghdr
	vec    [maxSlices]unix.Iovec
}

type call struct {
	name      string
	one, many uintptr
}

var (
	sending   = call{"send", unix.SYS_SENDTO, unix.SYS_SENDMSG}
	receiving = call{"receive", unix.SYS_RECVFROM, unix.SYS_RECVMSG}
)

// Send passes batch to the kernel.
func (l *Link) Send(batch [][]byte) (int, error) {
	if !l.enter(closed | sendEnded) {
		return 0, link.ErrClosed
	}
	var n int
	var err error
	if size := link.Len(batch); l.send.err == nil && l.stage.wants(int(l.fd.Load()), size) {
		n, err = l.sendStaged(batch, size)
	} else {
		n, err = l.transfer(&sending, &l.send, batch, 0)
	}
	l.leave()
	return n, err
}

// sendStaged sends what it can by reference, and the rest of batch by copying.
func (l *Link) sendStaged(batch [][]byte, size int) (int, error) {
	n, more, errno := l.stage.send(int(l.fd.Load()), batch, size)
	if errno != 0 {
		l.send.err = l.outcome(&sending, 0, errno)
	}
	if more || l.send.err != nil && n == 0 {
		return l.transfer(&sending, &l.send, batch, n)
	}
	return n, nil
}

// Recv returns New's preread first, and then what the kernel has.
func (l *Link) Recv(batch [][]byte) (int, error) {
	if !l.enter(closed) {
		return 0, link.ErrClosed
	}
	var n int
	var err error
	if l.unread.Load() {
		n = l.recvPreread(batch)
	} else {
		n, err = l.transfer(&receiving, &l.recv, batch, 0)
		if n >= counted {
			l.stage.received.Add(int64(n))
		}
		if n > 0 && l.prompt.Load() {
			// The kernel resets this after some packets. An error only costs time.
			_ = unix.SetsockoptInt(int(l.fd.Load()), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
		}
	}
	l.leave()
	return n, err
}

func (l *Link) recvPreread(batch [][]byte) int {
	n := 0
	for _, b := range batch {
		k := copy(b, l.preread)
		l.preread = l.preread[k:]
		n += k
	}
	if len(l.preread) == 0 {
		l.preread = nil
		l.unread.Store(false)
	}
	return n
}

// transfer moves batch, of which total bytes were moved already, maxSlices slices at a
// time, until the kernel moves less than it was offered. An error after some bytes is
// returned by the next call.
func (l *Link) transfer(c *call, h *half, batch [][]byte, total int) (int, error) {
	if h.err != nil && (c == &sending || link.Len(batch) > 0) {
		return 0, h.err
	}
	for skip := total; len(batch) > 0; skip = 0 {
		used, slices, size := h.fill(batch, skip)
		if size == 0 {
			return total, nil
		}
		n, errno := l.move(c, h, slices, size)
		for i := range slices {
			h.vec[i].Base = nil // do not keep references to the caller's memory
		}
		if errno == syscall.EAGAIN {
			return total, nil
		}
		if h.err = l.outcome(c, n, errno); h.err != nil {
			if total > 0 {
				return total, nil
			}
			return 0, h.err
		}
		h.moved += uint64(n)
		if total += n; c == &sending {
			l.stage.sent += uint64(n)
		}
		if n < size {
			return total, nil
		}
		batch = batch[used:]
	}
	return total, nil
}

// fill points h.vec at the slices of batch that have bytes after the first skip ones. It
// returns how many slices of batch it has passed, how many it uses, and how many bytes
// these have.
func (h *half) fill(batch [][]byte, skip int) (used, slices, size int) {
	for _, b := range batch {
		if slices == maxSlices {
			break
		}
		used++
		if skip > 0 {
			k := min(skip, len(b))
			b, skip = b[k:], skip-k
		}
		if len(b) > 0 {
			h.vec[slices].Base = unsafe.SliceData(b)
			h.vec[slices].SetLen(len(b))
			slices++
			size += len(b)
		}
	}
	return used, slices, size
}

func (l *Link) move(c *call, h *half, slices, size int) (int, syscall.Errno) {
	fd := uintptr(l.fd.Load())
	for {
		var n uintptr
		var errno syscall.Errno
		announce := size >= large && c == &sending
		switch {
		case slices == 1 && !announce:
			n, _, errno = syscall.RawSyscall6(c.one, fd, uintptr(unsafe.Pointer(h.vec[0].Base)), uintptr(size), flags, 0, 0)
		case slices == 1:
			n, _, errno = syscall.Syscall6(c.one, fd, uintptr(unsafe.Pointer(h.vec[0].Base)), uintptr(size), flags, 0, 0)
		case !announce:
			h.header.SetIovlen(slices)
			n, _, errno = syscall.RawSyscall(c.many, fd, uintptr(unsafe.Pointer(&h.header)), flags)
		default:
			h.header.SetIovlen(slices)
			n, _, errno = syscall.Syscall(c.many, fd, uintptr(unsafe.Pointer(&h.header)), flags)
		}
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

func (l *Link) outcome(c *call, n int, errno syscall.Errno) error {
	switch {
	case errno != 0:
		err := l.broken(c.name, errno)
		if !errors.Is(errno, syscall.EPIPE) {
			l.reset.CompareAndSwap(nil, &err)
		} else if said := l.reset.Load(); said != nil && errors.Is(*said, link.ErrSilent) {
			return *said // we have ended the link
		}
		return err
	case n == 0 && c == &receiving:
		// The kernel reports a reset once, to the direction that asks first, and an end of
		// stream to the other one, which the peer did not send. (EPIPE is different: then
		// the peer had ended its stream before.)
		if err := l.reset.Load(); err != nil {
			return *err
		}
		return io.EOF
	}
	return nil
}

func (l *Link) broken(doing string, cause error) error {
	if silent(cause) {
		return &link.SilentError{Peer: l.peer, For: l.silence}
	}
	return fmt.Errorf("%w: %s with %s: %w", link.ErrBroken, doing, l.peer, cause)
}
