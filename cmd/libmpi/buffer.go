//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"sync/atomic"

	"github.com/openimpi/impi/core/mpi"
)

// bufferAutomatic is MPI_BUFFER_AUTOMATIC: there is memory for all messages.
const bufferAutomatic = 2

// attachment is the memory that the program has attached for buffered sends. It is
// told where it was when it detaches it, and the library never uses it.
type attachment struct{ addr atomic.Uintptr }

// The calls on what memory can be attached to.
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

// attached is of the process.
var attached attachment

// served has the buffered sends of a communicator of a session take from the session's
// memory. It is so from the first one on: what Comm_idup makes cannot be told before.
func (c *commObject) served() error {
	if c.session == nil || c.serves.Load() {
		return nil
	}
	err := c.session.buffer.Serve(c.Comm)
	c.serves.Store(err == nil)
	return err
}

// sendBuffer is the memory of a communicator.
func sendBuffer(c *commObject) (*mpi.SendBuffer, error) { return c.SendBuffer() }
