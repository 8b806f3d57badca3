// Package socket is a link over a connected kernel stream socket: the links of tcp and
// unix, and those that procs and agents make of a descriptor that was handed to them.
//
// It calls the kernel directly, not through Go's network poller: a reader that polls gets
// its bytes some microseconds earlier than one that the poller has to wake. To sleep, wait
// on Handle.
package socket

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
)

// ErrInUse is returned by Detach while another goroutine is in Send or Recv.
var ErrInUse = errors.New("link is in use")

// Link is a link over a stream socket. It implements transports.Socket.
type Link struct {
	state  atomic.Int32 // calls in progress, and the flags below
	fd     atomic.Int32 // -1 once it is closed or detached
	unread atomic.Bool  // preread is not empty
	prompt atomic.Bool  // received bytes are acknowledged at once
	reset  atomic.Pointer[error]

	peer    string
	source  unproved.Source // of the peer
	silence time.Duration   // time after which a silent peer is lost; 0: never, or another process checks
	limits  link.Limits
	preread []byte // used by Recv only
	send    half   // used by Send only
	recv    half   // used by Recv only
	stage   stage  // used by Send only, except for its field received
	counted *Retransmits
}

// Flags of Link.state, above the number of calls in progress. The descriptor is not closed
// while a call is in progress, so its number cannot mean another file meanwhile; the last
// call to leave a closed link closes it.
const (
	closed    = 1 << 30
	sendEnded = 1 << 29
	inUse     = sendEnded - 1
)

// New makes a link of a connected stream socket and of the bytes that were already read
// from it, which Recv returns first. It owns both: after an error it has closed the
// descriptor.
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

// hear gives the link up if its peer has been silent for limit (see heeded).
func (l *Link) hear(limit time.Duration) {
	if !l.enter(closed) {
		return
	}
	defer l.leave()
	if fallen(int(l.fd.Load()), limit) {
		l.giveUp()
	}
}

// giveUp ends a link whose peer is silent. It sets the error first, since a reader finds an
// end of stream as soon as the socket is shut down. The caller has entered the link.
func (l *Link) giveUp() {
	var err error = &link.SilentError{Peer: l.peer, For: l.silence}
	l.reset.CompareAndSwap(nil, &err)
	_ = unix.Shutdown(int(l.fd.Load()), unix.SHUT_RDWR) // fails if the kernel has already given up the connection
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
	// Careless programs lose both flags: CLOEXEC by recvmsg without MSG_CMSG_CLOEXEC,
	// O_NONBLOCK in any process that shares the open file.
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("descriptor %d cannot be made non-blocking: %w", fd, err)
	}
	l := &Link{peer: describe(fd, far), source: sourceOfPeer(far), preread: preread}
	l.limits.Batch = maxSlices
	// The kernel returns twice the size that was requested; half of it is overhead.
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

// Handle returns the socket, or NoHandle after Close or Detach.
func (l *Link) Handle() int { return int(l.fd.Load()) }

// Arm returns true for a reader as long as there are bytes that poll(2) does not report: the
// preread bytes of New.
func (l *Link) Arm(want link.Interest) bool {
	return want&link.Readable != 0 && l.unread.Load()
}

// AckAtOnce makes TCP acknowledge at once what Recv has taken, without the usual delay in which it
// waits for an answer that can carry the acknowledgement. It is for peers that write a message in
// pieces with Nagle's algorithm on: each message would cost 40 ms. Recv then makes one more system
// call. On other sockets it has no effect.
func (l *Link) AckAtOnce() { l.prompt.Store(true) }

// Limits returns the socket's send buffer as Stream.
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

// SetLinger sets what happens to bytes that the kernel has not sent when the socket is closed, also
// by the death of the process: with 0 they are dropped, and the peer of a TCP connection sees a
// reset and no end of stream; with -1 they are still sent.
func (l *Link) SetLinger(seconds int) error {
	if !l.enter(closed) {
		return link.ErrClosed
	}
	defer l.leave()
	o := unix.Linger{Linger: int32(max(seconds, 0))}
	if seconds >= 0 {
		o.Onoff = 1
	}
	return unix.SetsockoptLinger(int(l.fd.Load()), unix.SOL_SOCKET, unix.SO_LINGER, &o)
}

// Detach gives up the descriptor and the bytes of New that were not read. The link is
// closed then, but its socket is not.
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
	if l.counted != nil {
		l.counted.ends(l, l.Handle())
	}
	return int(l.fd.Swap(link.NoHandle)), preread, nil
}

// enter begins a call that uses the descriptor. It returns false if one of flags is set.
func (l *Link) enter(flags int32) bool {
	if l.state.Add(1)&flags == 0 {
		return true
	}
	l.leave()
	return false
}

func (l *Link) leave() {
	if s := l.state.Add(-1); s&closed != 0 && s&inUse == 0 {
		l.release()
	}
}

func (l *Link) release() {
	if fd := l.fd.Swap(link.NoHandle); fd >= 0 {
		if l.counted != nil {
			l.counted.ends(l, int(fd))
		}
		unix.Close(int(fd))
		l.stage.release()
	}
}
