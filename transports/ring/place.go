package ring

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/link"
)

// Bytes gives what can be read, where it lies in the ring: for whom a Recv would
// be a copy too many. There is nothing when first is empty. The slices hold until
// Skip, and the other side can change what is in them. Bytes, Skip and Recv are for
// one goroutine; errors are those of Recv.
func (l *Link) Bytes() (first, second []byte, err error) {
	switch {
	case l.closed.Load():
		return nil, nil, link.ErrClosed
	case l.recvErr != nil:
		return nil, nil, l.recvErr
	}
	n, err := l.in.waiting()
	if err != nil {
		l.recvErr = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return nil, nil, l.recvErr
	}
	if n == 0 {
		if l.idle++; l.idle < lookEvery && l.in.b.ended.Load() == 0 && !l.dead {
			return nil, nil, nil
		}
		return nil, nil, l.atEnd()
	}
	first, second = window(l.in.data, l.in.tail&l.in.mask, n)
	return first, second, nil
}

// Skip takes the first n bytes of what Bytes gave out of the ring.
func (l *Link) Skip(n int) {
	l.in.tail += uint64(n)
	l.idle = 0
	l.free()
}

// Space gives the room in the ring, to be filled in place. There is none when first
// is empty. Space, Fill and Send are for one goroutine; errors are those of Send.
func (l *Link) Space() (first, second []byte, err error) {
	if _, err := l.Send(nil); err != nil {
		return nil, nil, err
	}
	n, err := l.out.room(l.out.mask/4 + 1)
	if err != nil {
		l.sendErr = fmt.Errorf("%w: %w", link.ErrBroken, err)
		return nil, nil, l.sendErr
	}
	first, second = window(l.out.data, l.out.head&l.out.mask, n)
	return first, second, nil
}

// Fill sends the first n bytes of Space.
func (l *Link) Fill(n int) {
	l.out.head += uint64(n)
	l.out.b.head.Store(l.out.head)
	if n > 0 && l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
}

// window is n bytes of a ring from an offset on.
func window(data []byte, at, n uint64) (first, second []byte) {
	first = data[at:]
	if uint64(len(first)) >= n {
		return first[:n], nil
	}
	return first, data[:n-uint64(len(first))]
}

// Alive tells whether the other side still has its end of the socket. Send does not
// ask, and one who only sends may sleep again and again when it died.
func (l *Link) Alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	fds := []unix.PollFd{{Fd: int32(l.sock)}}
	n, err := unix.Poll(fds, 0)
	return l.sock >= 0 && (n == 0 || err != nil || fds[0].Revents&(unix.POLLHUP|unix.POLLERR) == 0)
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
