package transporttest

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

var socketCases = []Case{
	{"T-FD-01", "detach", "Detach gives a descriptor that goes on where the link was", detach},
	{"T-FD-02", "detach-closed", "Detach of a closed link is ErrClosed, and a detached link is closed", detachClosed},
}

// sockets makes a link between sockets, or skips the case.
func (e *env) sockets() (a link.Link, b transports.Socket) {
	a, accepted := e.pair()
	b, ok := accepted.(transports.Socket)
	if !ok {
		e.Skipf("the transport's links are no sockets")
	}
	return a, b
}

func detach(e *env) {
	a, b := e.sockets()
	const total = 100000
	out, in := pattern{seed: 3}, pattern{seed: 3}
	sent := make([]byte, total)
	out.next(sent)
	got := make([]byte, total)
	at := 1000
	e.must(e.send(a, sent[:2000]))
	e.must(e.recv(b, got[:at]))

	fd, preread, err := b.Detach()
	e.must(err)
	defer func() { unix.Close(fd) }()
	at += copy(got[at:], preread)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		e.Fatalf("the descriptor %d would be inherited by programs: %v", fd, err)
	}
	e.must(b.Close()) // does not touch the descriptor
	e.together(
		func() error { return e.send(a, sent[2000:]) },
		func() error { return e.readAll(fd, got[at:]) },
	)
	e.must(in.check(got))
	if _, err := unix.Write(fd, []byte("bye")); err != nil {
		e.Fatalf("write to the descriptor: %v", err)
	}
	e.must(e.recv(a, make([]byte, 3)))
	e.must(unix.Shutdown(fd, unix.SHUT_WR))
	e.must(e.eof(a))
}

func (e *env) readAll(fd int, b []byte) error {
	for deadline := time.Now().Add(e.h.Patience); len(b) > 0; {
		n, err := unix.Read(fd, b)
		switch {
		case err == unix.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, slice) // a failure shows in Read
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		default:
			b = b[n:]
		}
		if time.Now().After(deadline) {
			return errStuck
		}
	}
	return nil
}

func detachClosed(e *env) {
	a, b := e.sockets()
	fd, _, err := b.Detach()
	e.must(err)
	e.Cleanup(func() { unix.Close(fd) })
	if _, err := b.Recv([][]byte{make([]byte, 1)}); !errors.Is(err, link.ErrClosed) {
		e.Fatalf("Recv after Detach reports %v", err)
	}
	if _, err := b.Send([][]byte{{1}}); !errors.Is(err, link.ErrClosed) {
		e.Fatalf("Send after Detach reports %v", err)
	}
	if again, _, err := b.Detach(); !errors.Is(err, link.ErrClosed) {
		e.Fatalf("Detach again gives %d, %v", again, err)
	}
	a.Close()
	if s, ok := a.(transports.Socket); ok {
		if fd, _, err := s.Detach(); !errors.Is(err, link.ErrClosed) {
			e.Fatalf("Detach after Close gives %d, %v", fd, err)
		}
	}
}
