package relay

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/rdma"
	"github.com/openimpi/impi/plugins/sdk/support/ring"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

type ringEnd struct{ *ring.Link }

func (e ringEnd) alive() bool { return e.Alive() }
func (e ringEnd) whole() bool { return true } // a ring shows the end of the stream by itself

func (e ringEnd) detach() ([]int, int, error) {
	region, sock, side, err := e.Detach()
	if err != nil {
		return nil, 0, err
	}
	return []int{region, sock}, side, nil
}

type rdmaEnd struct{ *rdma.Link }

func (e rdmaEnd) alive() bool { return e.Alive() }
func (e rdmaEnd) whole() bool { return true } // a control region shows the end by itself

func (e rdmaEnd) detach() ([]int, int, error) {
	region, sock, channel, err := e.Detach()
	if err != nil {
		return nil, 0, err
	}
	return []int{region, sock, channel}, 0, nil
}

// streamEnd is a socket, and the pipe that shows how its stream has ended.
type streamEnd struct {
	*socket.Link

	mu    sync.Mutex
	tail  int  // -1: closed
	asked bool // whole has read the pipe
	meant bool // the pipe had a byte
}

func newStreamEnd(sock, tail int) (*streamEnd, error) {
	l, err := socket.New(sock, nil)
	if err != nil {
		return nil, errors.Join(err, unix.Close(tail))
	}
	unix.CloseOnExec(tail)
	if err := checkTail(tail); err != nil {
		return nil, errors.Join(err, unix.Close(tail), l.Close())
	}
	return &streamEnd{Link: l, tail: tail}, nil
}

// checkTail returns an error unless tail is a pipe: only that can be read without waiting
// for ever, and the plugin chose the descriptor.
func checkTail(tail int) error {
	var st unix.Stat_t
	if err := unix.Fstat(tail, &st); err != nil {
		return fmt.Errorf("descriptor %d: %w", tail, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return fmt.Errorf("descriptor %d, which comes with a socket, is no pipe: its mode is %#o", tail, st.Mode)
	}
	return unix.SetNonblock(tail, true)
}

func (e *streamEnd) alive() bool { return true } // Send gets an error from the kernel

// whole reports whether the pipe has the byte that shows an intended end of the stream. It reads
// the pipe only once.
func (e *streamEnd) whole() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.asked && e.tail >= 0 {
		var b [1]byte
		n, err := unix.Read(e.tail, b[:])
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Read(e.tail, b[:])
		}
		e.asked, e.meant = true, n == 1
	}
	return e.meant
}

// Close closes both descriptors.
func (e *streamEnd) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tail >= 0 {
		_ = unix.Close(e.tail)
		e.tail = -1
	}
	return e.Link.Close()
}

func (e *streamEnd) detach() ([]int, int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fd, _, err := e.Detach() // nothing was read ahead
	if err != nil {
		return nil, 0, err
	}
	tail := e.tail
	e.tail = link.NoHandle
	return []int{fd, tail}, 0, nil
}
