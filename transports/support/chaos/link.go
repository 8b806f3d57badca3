package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// connOf makes a connection of a link, which it owns even after an error.
func connOf(l link.Link) (transports.Conn, error) {
	if p, ok := l.(transports.Piped); ok {
		return p.Detach()
	}
	c, err := newBlocking(l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return c, nil
}

// blocking is a link as a connection with blocking calls, which wait in Go's network
// poller.
type blocking struct {
	l    link.Link
	bell *os.File // a copy of the link's handle
	raw  syscall.RawConn

	reading, writing sync.Mutex // held during calls of l
}

func newBlocking(l link.Link) (*blocking, error) {
	if l.Handle() == link.NoHandle {
		return nil, errors.New("the link has no handle to wait for")
	}
	fd, err := unix.FcntlInt(uintptr(l.Handle()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicate the handle of a link: %w", err)
	}
	b := &blocking{l: l, bell: os.NewFile(uintptr(fd), "link")}
	if b.raw, err = b.bell.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for a link: %w", err), b.bell.Close())
	}
	return b, nil
}

// Read waits for bytes, the end or the deadline.
func (b *blocking) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	// Look for bytes only after the poller was asked, since asking makes it forget earlier
	// events.
	wait := b.raw.Read(func(fd uintptr) bool {
		b.reading.Lock()
		defer b.reading.Unlock()
		for {
			n, err = b.l.Recv([][]byte{p})
			if n > 0 || err != nil {
				return true
			}
			if !b.l.Arm(link.Readable) && !holds(fd, unix.POLLIN) {
				return false
			}
		}
	})
	if err == nil && n == 0 {
		err = waitError(wait)
	}
	return n, err
}

// Write waits until all of p is taken.
func (b *blocking) Write(p []byte) (n int, err error) {
	wait := b.raw.Write(func(fd uintptr) bool {
		b.writing.Lock()
		defer b.writing.Unlock()
		for n < len(p) {
			var m int
			if m, err = b.l.Send([][]byte{p[n:]}); err != nil {
				return true
			}
			if n += m; m == 0 && !b.l.Arm(link.Writable) && !holds(fd, unix.POLLOUT) {
				return false
			}
		}
		return true
	})
	if err == nil && n < len(p) {
		err = waitError(wait)
	}
	return n, err
}

// holds reports whether poll(2) would return at once, which is what Arm is about. The
// poller reports only changes, and may have merged several, such as a doorbell and the end
// of the peer.
func holds(fd uintptr, events int16) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 0)
	return n > 0 && err == nil
}

func waitError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded
	case errors.Is(err, os.ErrClosed) || err == nil:
		return net.ErrClosed
	}
	return fmt.Errorf("wait for the link: %w", err)
}

// CloseWrite ends this side's bytes.
func (b *blocking) CloseWrite() error {
	b.writing.Lock()
	defer b.writing.Unlock()
	return b.l.CloseSend()
}

func (b *blocking) Close() error {
	return errors.Join(b.l.Close(), b.bell.Close())
}

// Break closes the link so that the peer sees a failure, if the link supports that: TCP by
// a reset, a ring by its control block. For other links the stream just ends.
func (b *blocking) Break() {
	_ = b.bell.Close() // wakes waiting goroutines
	b.reading.Lock()
	defer b.reading.Unlock()
	b.writing.Lock()
	defer b.writing.Unlock()
	switch x := b.l.(type) {
	case interface{ Break() }:
		x.Break()
	case transports.Socket:
		fd, _, err := x.Detach()
		if err != nil {
			break
		}
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // not every socket supports it
		_ = unix.Close(fd)
	}
	_ = b.l.Close()
}

func (b *blocking) LocalAddr() net.Addr { return address{} }

func (b *blocking) RemoteAddr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "link" }
func (address) String() string  { return "link" }

// SetDeadline bounds reads and writes.
func (b *blocking) SetDeadline(t time.Time) error { return b.bell.SetDeadline(t) }

// SetReadDeadline bounds reads, also one that waits.
func (b *blocking) SetReadDeadline(t time.Time) error { return b.bell.SetReadDeadline(t) }

// SetWriteDeadline bounds writes, also one that waits.
func (b *blocking) SetWriteDeadline(t time.Time) error { return b.bell.SetWriteDeadline(t) }
