// Package socket is a link over a connected kernel stream socket: what tcp and
// unix make, and what procs and agents make of a descriptor that was handed to
// them.
//
// Its calls go to the kernel directly, not through Go's network poller: a
// reader that polls gets its bytes some microseconds earlier than one that the
// poller has to wake. Whoever wants to sleep does so on Handle.
package socket

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/unproved"
)

// ErrInUse is reported by Detach while another goroutine is in Send or Recv.
var ErrInUse = errors.New("link is in use")

// Link is a link over a stream socket. It fulfils transports.Socket.
type Link struct {
	state  atomic.Int32 // calls in progress, and the flags below
	fd     atomic.Int32 // -1 once it is closed or detached
	unread atomic.Bool  // preread is not empty
	prompt atomic.Bool  // what comes is acknowledged at once
	reset  atomic.Pointer[error]

	peer    string
	source  unproved.Source // of the peer
	silence time.Duration   // after which a silent peer is lost; 0: never, or not by us
	limits  link.Limits
	preread []byte // for Recv alone
	send    half   // for Send alone
	recv    half   // for Recv alone
	stage   stage  // for Send alone, but for its received
}

// Flags of Link.state, above the number of calls in progress. While a call is
// in progress nobody closes the descriptor, so its number cannot come to mean
// another file; the last one to leave a closed link closes it.
const (
	closed    = 1 << 30
	sendEnded = 1 << 29
	inUse     = sendEnded - 1
)

// New makes a link of a connected stream socket and of the bytes that were
// already read from it, which Recv delivers first. It owns both from here on:
// after an error the descriptor is closed.
func New(fd int, preread []byte) (*Link, error) {
	l, err := adopt(fd, preread)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	if l.silence > 0 {
		watched.add(l, l.silence)
	}
	return l, nil
}

// hear gives the link up if its peer has been silent for limit (heeded).
func (l *Link) hear(limit time.Duration) {
	if !l.enter(closed) {
		return
	}
	defer l.leave()
	if fallen(int(l.fd.Load()), limit) {
		l.giveUp()
	}
}

// giveUp ends a link whose peer is silent. It says so first: whoever reads finds an end of
// stream as soon as the socket is shut down. The caller has entered the link.
func (l *Link) giveUp() {
	var err error = &link.SilentError{Peer: l.peer, For: l.silence}
	l.reset.CompareAndSwap(nil, &err)
	_ = unix.Shutdown(int(l.fd.Load()), unix.SHUT_RDWR) // fails if the kernel has given it up by now
}

func adopt(fd int, preread []byte) (*Link, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is no socket: %w", fd, err)
	}
	if kind != unix.SOCK_STREAM {
		return nil, fmt.Errorf("descriptor %d is no stream socket: its type is %d", fd, kind)
	}
	far, err := unix.Getpeername(fd)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not connected: %w", fd, err)
	}
	// Both are lost on the way through programs that are not careful: CLOEXEC by
	// recvmsg without MSG_CMSG_CLOEXEC, O_NONBLOCK by any process that shares the
	// open file.
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("descriptor %d cannot be made non-blocking: %w", fd, err)
	}
	l := &Link{peer: describe(fd, far), source: sourceOfPeer(far), preread: preread}
	l.limits.Batch = maxSlices
	// The kernel reports twice what was asked for; one half is its own overhead.
	if size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
		l.limits.Stream = size / 2
	}
	if _, local := far.(*unix.SockaddrUnix); !local {
		l.stage.refused = true
	}
	l.silence = silenceOf(fd)
	l.fd.Store(int32(fd))
	l.unread.Store(len(preread) > 0)
	l.send.header.Iov = &l.send.vec[0]
	l.recv.header.Iov = &l.recv.vec[0]
	return l, nil
}

// Peer describes the other end for messages: its address, or its process.
func (l *Link) Peer() string { return l.peer }

// Handle is the socket, or NoHandle after Close or Detach.
func (l *Link) Handle() int { return int(l.fd.Load()) }

// Arm is true for a reader as long as there are bytes that poll(2) does not
// know of: those that New was given.
func (l *Link) Arm(want link.Interest) bool {
	return want&link.Readable != 0 && l.unread.Load()
}

// AckAtOnce has TCP acknowledge what Recv has taken without the usual delay, in which it
// hopes for an answer that can carry the acknowledgement. It is for peers that write a
// message in pieces and have left Nagle's algorithm on: each would cost 40 ms. Recv makes
// one system call more then. On sockets that are not TCP's it does nothing.
func (l *Link) AckAtOnce() { l.prompt.Store(true) }

// Limits has the socket's send buffer as Stream.
func (l *Link) Limits() link.Limits { return l.limits }

// CloseSend shuts the sending direction down.
func (l *Link) CloseSend() error {
	if !l.enter(closed) {
		return link.ErrClosed
	}
	defer l.leave()
	if l.state.Or(sendEnded)&sendEnded != 0 {
		return nil
	}
	if err := unix.Shutdown(int(l.fd.Load()), unix.SHUT_WR); err != nil {
		return l.broken("shutdown", err)
	}
	return nil
}

// Close closes the socket, at once or when the calls in progress, which do not
// block, have returned. A duplicate in another process keeps the connection.
func (l *Link) Close() error {
	if l.silence > 0 {
		watched.drop(l)
	}
	if l.state.Or(closed)&inUse == 0 {
		l.release()
	}
	return nil
}

// Detach returns the descriptor and the bytes of New that nobody has read to the
// caller. The link is closed then, its socket is not.
func (l *Link) Detach() (fd int, preread []byte, err error) {
	if l.silence > 0 {
		watched.drop(l)
	}
	for {
		s := l.state.Load()
		switch {
		case s&closed != 0:
			return link.NoHandle, nil, link.ErrClosed
		case s&inUse != 0:
			return link.NoHandle, nil, ErrInUse
		}
		if l.state.CompareAndSwap(s, s|closed) {
			break
		}
	}
	preread, l.preread = l.preread, nil
	l.stage.release()
	return int(l.fd.Swap(link.NoHandle)), preread, nil
}

// enter begins a call that needs the descriptor, unless one of flags is set.
func (l *Link) enter(flags int32) bool {
	if l.state.Add(1)&flags == 0 {
		return true
	}
	l.leave()
	return false
}

// leave ends a call that enter began.
func (l *Link) leave() {
	if s := l.state.Add(-1); s&closed != 0 && s&inUse == 0 {
		l.release()
	}
}

// release closes the descriptor, once.
func (l *Link) release() {
	if fd := l.fd.Swap(link.NoHandle); fd >= 0 {
		unix.Close(int(fd))
		l.stage.release()
	}
}
