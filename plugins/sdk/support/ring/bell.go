package ring

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
)

// bell is the socket between the two sides, by which they wake each other. After close its
// number may belong to another file, so each use holds mu.
type bell struct {
	mu    sync.Mutex
	sock  int        // NoHandle after close
	file  int        // of the region, for Detach; -1 if it was not kept
	bells [1024]byte // memory for bytes that are read and ignored
}

// oneRing wakes a sleeping reader, and plugs fill the socket for a sleeping writer. Their
// bytes have no content.
var (
	oneRing = make([]byte, 1)
	plugs   = make([]byte, 64<<10)
)

const (
	sendFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	// maxPlugs bounds what is sent into a socket that the other side keeps reading.
	maxPlugs = 64
	// maxBells bounds how often the socket is read in a row. All that its buffer can hold
	// must be read, or a sleeping writer of another implementation would not wake; but a
	// peer that writes for ever must not keep us.
	maxBells = 4 << 10
	// sockBuffer is the buffer size of the socket, which carries no data.
	sockBuffer = 4 << 10
)

// ring wakes the other side, if it sleeps on its end.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sock >= 0 && !rung(func() error { return unix.Send(b.sock, oneRing, sendFlags) }) {
		_ = unix.Shutdown(b.sock, unix.SHUT_RDWR)
	}
}

// rung sends until the other side is awake or gone, and reports false if it may sleep on, for ever:
// as the kernel has no memory for the byte. Then only the end of the link can wake it.
func rung(send func() error) bool {
	for {
		switch err := send(); {
		case errors.Is(err, unix.EINTR):
		case err == nil, errors.Is(err, unix.EAGAIN): // a full socket is readable
			return true
		default:
			return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
		}
	}
}

// plug fills the socket, so that it is not writable before the other side has read from it.
func (b *bell) plug() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sock < 0 {
		return
	}
	for range maxPlugs {
		if err := unix.Send(b.sock, plugs, sendFlags); err != nil && !errors.Is(err, unix.EINTR) {
			return // full; or it has ended, which wakes us
		}
	}
}

// drain reads all bytes of the socket, and reports whether the other side has gone.
func (b *bell) drain() (ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sock < 0 {
		return true
	}
	for range maxBells {
		n, err := unix.Read(b.sock, b.bells[:])
		switch {
		case n > 0, errors.Is(err, unix.EINTR): // the end may follow at once, and an edge-triggered poller reports both only once
		case errors.Is(err, unix.EAGAIN):
			return false
		default:
			return true
		}
	}
	return false
}

// Handle returns the socket, or NoHandle after Close.
func (b *bell) Handle() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sock
}

// Alive reports whether the other side still has its end of the socket. Send does not check
// that, so a user that only sends could sleep again and again after the other side has
// died.
func (b *bell) Alive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	fds := []unix.PollFd{{Fd: int32(b.sock)}}
	n, err := unix.Poll(fds, 0)
	return b.sock >= 0 && (n == 0 || err != nil || fds[0].Revents&(unix.POLLHUP|unix.POLLERR) == 0)
}

// give takes both descriptors out of the bell, for the caller.
func (b *bell) give() (file, sock int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	file, sock = b.file, b.sock
	b.file, b.sock = -1, link.NoHandle
	return file, sock
}

func (b *bell) close() {
	file, sock := b.give()
	_ = unix.Close(sock)
	if file >= 0 {
		_ = unix.Close(file)
	}
}
