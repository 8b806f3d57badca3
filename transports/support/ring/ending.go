package ring

import (
	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
)

// Alive tells whether the other side still has its end of the socket. Send does not
// ask, and one who only sends may sleep again and again when it died.
func (l *Link) Alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	fds := []unix.PollFd{{Fd: int32(l.sock)}}
	n, err := unix.Poll(fds, 0)
	return l.sock >= 0 && (n == 0 || err != nil || fds[0].Revents&(unix.POLLHUP|unix.POLLERR) == 0)
}

// CloseSend ends this side's bytes.
func (l *Link) CloseSend() error {
	if l.closed.Load() {
		return link.ErrClosed
	}
	l.end()
	return nil
}

func (l *Link) end() {
	if !l.ended {
		l.ended = true
		l.out.b.ended.Store(1)
		l.wakeReader()
	}
}

// Close ends both directions. The other side still reads what is in its ring,
// and is woken.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.out.b.recalled.Store(1)
	l.out.b.ended.Store(1)
	l.in.b.gone.Store(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = unix.Close(l.sock)
	l.sock = link.NoHandle
	if l.file >= 0 {
		_ = unix.Close(l.file)
	}
	return nil
}

// Break is Close for an owner that has lost bytes: what is in the ring can still be
// read, and then the other side's Recv reports link.ErrBroken instead of io.EOF,
// unless CloseSend came before.
func (l *Link) Break() {
	if l.closed.Swap(true) {
		return
	}
	l.in.b.gone.Store(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = unix.Close(l.sock)
	l.sock = link.NoHandle
	if l.file >= 0 {
		_ = unix.Close(l.file)
	}
}
