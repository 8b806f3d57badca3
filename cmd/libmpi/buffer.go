//go:build cgo && !386 && !arm

package main

import "C"

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

//export abiBufferAttach
func abiBufferAttach(buf uintptr, size int64, which int32) int32 {
	return on("Buffer_attach", which, func() error { return attached.attach(mpi.BufferAttach, buf, size) })
}

//export abiBufferDetach
func abiBufferDetach(buf, size uintptr, which int32) int32 {
	return on("Buffer_detach", which, func() error { return attached.detach(mpi.BufferDetach, buf, size, which) })
}

//export abiBufferFlush
func abiBufferFlush() int32 { return on("Buffer_flush", 0, mpi.BufferFlush) }

//export abiBufferIflush
func abiBufferIflush(q uintptr) int32 {
	return on("Buffer_iflush", 0, func() error {
		if q < firstAddress {
			return missing("request", q)
		}
		r, err := mpi.BufferIflush()
		if err != nil {
			return err
		}
		return newRequest(nil, r, q)
	})
}

// onCommBuffer is a call on the memory of a communicator.
func onCommBuffer(fn string, which int32, h uintptr, f func(c *commObject, b *mpi.SendBuffer) error) int32 {
	return onComm(fn, which, h, func(c *commObject) error {
		b, err := c.SendBuffer()
		if err != nil {
			return err
		}
		return f(c, b)
	})
}

//export abiCommAttachBuffer
func abiCommAttachBuffer(c, buf uintptr, size int64, which int32) int32 {
	return onCommBuffer("Comm_attach_buffer", which, c, func(c *commObject, b *mpi.SendBuffer) error {
		return c.attached.attach(b.Attach, buf, size)
	})
}

//export abiCommDetachBuffer
func abiCommDetachBuffer(c, buf, size uintptr, which int32) int32 {
	return onCommBuffer("Comm_detach_buffer", which, c, func(c *commObject, b *mpi.SendBuffer) error {
		return c.attached.detach(b.Detach, buf, size, which)
	})
}

//export abiCommFlushBuffer
func abiCommFlushBuffer(c uintptr) int32 {
	return onCommBuffer("Comm_flush_buffer", 0, c, func(_ *commObject, b *mpi.SendBuffer) error { return b.Flush() })
}

//export abiCommIflushBuffer
func abiCommIflushBuffer(c, q uintptr) int32 {
	return begin("Comm_iflush_buffer", 0, c, q, func(c *commObject) (mpi.Request, error) {
		b, err := c.SendBuffer()
		if err != nil {
			return mpi.Request{}, err
		}
		return b.Iflush(), nil
	})
}

//export abiSessionAttachBuffer
func abiSessionAttachBuffer(h, buf uintptr, size int64, which int32) int32 {
	return onSession("Session_attach_buffer", which, h, func(s *sessionObject) error {
		return s.attached.attach(s.buffer.Attach, buf, size)
	})
}

//export abiSessionDetachBuffer
func abiSessionDetachBuffer(h, buf, size uintptr, which int32) int32 {
	return onSession("Session_detach_buffer", which, h, func(s *sessionObject) error {
		return s.attached.detach(s.buffer.Detach, buf, size, which)
	})
}

//export abiSessionFlushBuffer
func abiSessionFlushBuffer(h uintptr) int32 {
	return onSession("Session_flush_buffer", 0, h, func(s *sessionObject) error { return s.buffer.Flush() })
}

//export abiSessionIflushBuffer
func abiSessionIflushBuffer(h, q uintptr) int32 {
	return onSession("Session_iflush_buffer", 0, h, func(s *sessionObject) error {
		if q < firstAddress {
			return missing("request", q)
		}
		return newRequest(&s.object, s.buffer.Iflush(), q)
	})
}

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
