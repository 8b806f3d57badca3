package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketSide is a socket whose other end the user has, and a pipe. Before the peer's end of
// stream it writes a byte into the pipe: without that the user could not distinguish the
// end from the death of this process.
type socketSide struct {
	*net.UnixConn
	raw syscall.RawConn

	mu   sync.Mutex
	tail *os.File // nil: closed
}

// NearSocket makes a Near. The user makes the link (package relay) from the two
// descriptors, a socket and the reading end of the pipe, which the caller owns.
func NearSocket() (near Near, sock, tail int, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, -1, -1, fmt.Errorf("pipe: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, -1, -1, errors.Join(fmt.Errorf("socket pair: %w", err), unix.Close(pipe[0]), unix.Close(pipe[1]))
	}
	s := &socketSide{tail: os.NewFile(uintptr(pipe[1]), "tail")}
	f := os.NewFile(uintptr(pair[0]), "near")
	c, err := net.FileConn(f) // makes a copy
	if err == nil {
		s.UnixConn = c.(*net.UnixConn)
		s.raw, err = s.UnixConn.SyscallConn()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, -1, -1, errors.Join(err, s.tail.Close(), unix.Close(pair[1]), unix.Close(pipe[0]))
	}
	return s, pair[1], pipe[0], nil
}

// Outward copies what the user sends to w.
func (s *socketSide) Outward(w io.Writer) error { return pass(w, s.UnixConn) }

// Inward copies from r to the user.
func (s *socketSide) Inward(r io.Reader) error { return pass(toUser{s.UnixConn}, r) }

// toUser marks errors of writing to the user.
type toUser struct{ c *net.UnixConn }

// Write writes b; its error wraps ErrGone.
func (w toUser) Write(b []byte) (int, error) {
	n, err := w.c.Write(b)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrGone, err)
	}
	return n, err
}

// pass copies until the end of from. It hides the types of both, since io.Copy would use
// splice(2), which has more latency and needs two system calls for each move.
func pass(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, piece))
	return err
}

// CloseWrite writes the byte into the pipe, and ends the stream.
func (s *socketSide) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail == nil {
		return net.ErrClosed
	}
	if _, err := s.tail.Write([]byte{0}); err != nil {
		return err
	}
	return s.UnixConn.CloseWrite()
}

// Gone waits until the user's end is closed; the user has ended its stream already.
func (s *socketSide) Gone() error { return s.raw.Read(gone) }

// Alive reports whether the user's end is open.
func (s *socketSide) Alive() bool {
	closed := true
	err := s.raw.Control(func(fd uintptr) { closed = gone(fd) })
	return err == nil && !closed
}

// gone reports whether a socket's other end is closed.
func gone(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// Break closes the socket without writing into the pipe.
func (s *socketSide) Break() { _ = s.Close() }

// Close closes both descriptors.
func (s *socketSide) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.UnixConn.Close()
	if s.tail != nil {
		err = errors.Join(err, s.tail.Close())
		s.tail = nil
	}
	return err
}
