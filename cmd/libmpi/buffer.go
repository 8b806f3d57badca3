//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"sync/atomic"

	"github.com/openimpi/impi/core/mpi"
)

// bufferAutomatic is MPI_BUFFER_AUTOMATIC: there is memory for all messages.
const bufferAutomatic = 2

// attachment is the memory that the program has attached for buffered sends. The library never uses
// it; the program gets its address back when it detaches it.
type attachment struct{ addr atomic.Uintptr }

// The types of calls that attach, detach and flush buffers.
type (
	attacher func(size int) error
	detacher func() (size int, err error)
)

func (a *attachment) attach(f attacher, buf uintptr, size int64) error {
	switch {
	case buf == bufferAutomatic:
		size = mpi.Unlimited
	case buf < firstAddress && (buf != 0 || size > 0):
		return fmt.Errorf("%w: argument buffer is %#x, which is no address", mpi.ErrBuffer, buf)
	}
	err := f(int(size))
	if err == nil {
		a.addr.Store(buf)
	}
	return err
}

func (a *attachment) detach(f detacher, buf, size uintptr, which int32) error {
	to, err := result[uintptr]("buffer_addr", buf)
	if err != nil {
		return err
	}
	if _, err := result[int32]("size", size); err != nil {
		return err
	}
	n, err := f()
	if err != nil {
		return err
	}
	if *to = a.addr.Swap(0); *to == bufferAutomatic {
		n = 0
	}
	return putWide("size", size, which, int64(n))
}

var attached attachment

// served makes a session's communicator use the session's buffer for buffered sends. The first
// buffered send calls it, since a communicator of Comm_idup does not exist before.
func (c *commObject) served() error {
	if c.session == nil || c.serves.Load() {
		return nil
	}
	err := c.session.buffer.Serve(c.Comm)
	c.serves.Store(err == nil)
	return err
}

func sendBuffer(c *commObject) (*mpi.SendBuffer, error) { return c.SendBuffer() }
