//go:build cgo && !386 && !arm

package main

import "C"

import (
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
)

func withBuffer(fn string, which int32, buf uintptr, count int64, t uintptr, u use, c uintptr, f func(c *commObject, b mpi.Buffer) error) int32 {
	return onComm(fn, which, c, func(c *commObject) error {
		b, err := used(buf, count, t, u)
		if err != nil {
			return err
		}
		return f(c, b)
	})
}

// Bsend is Comm.Bsend, with the buffer of the session from which the communicator was made.
func (c *commObject) Bsend(b mpi.Buffer, dst, tag int) error {
	if err := c.served(); err != nil {
		return err
	}
	return c.Comm.Bsend(b, dst, tag)
}

// Ibsend is Bsend without waiting.
func (c *commObject) Ibsend(b mpi.Buffer, dst, tag int) (mpi.Request, error) {
	if err := c.served(); err != nil {
		return mpi.Request{}, err
	}
	return c.Comm.Ibsend(b, dst, tag)
}

// BsendInit makes the persistent form of Bsend.
func (c *commObject) BsendInit(b mpi.Buffer, dst, tag int) (mpi.Request, error) {
	if err := c.served(); err != nil {
		return mpi.Request{}, err
	}
	return c.Comm.BsendInit(b, dst, tag)
}

func (c *commObject) sendReceive(st uintptr, b mpi.Buffer, dst, stag, src, rtag int) error {
	s, err := c.SendrecvReplace(b, dst, stag, src, rtag)
	putStatus(st, &s)
	return err
}

//export abiSend
func abiSend(buf uintptr, count int64, t uintptr, dst, tag int32, c uintptr, which int32) int32 {
	return withBuffer("Send", which, buf, count, t, sends(dst), c, func(c *commObject, b mpi.Buffer) error {
		err := c.Send(b, int(dst), int(tag))
		if err == nil && dst != mpi.ProcNull { // the buffer was read
			learn(c, buf, count*fastBoxWidth(t), false)
		}
		return err
	})
}

//export abiRecv
func abiRecv(buf uintptr, count int64, t uintptr, src, tag int32, c, st uintptr, which int32) int32 {
	return withBuffer("Recv", which, buf, count, t, receives(src), c, func(c *commObject, b mpi.Buffer) error {
		s, err := c.Recv(b, int(src), int(tag))
		putStatus(st, &s)
		if err == nil && fastBoxWidth(t) > 0 {
			learn(c, buf, s.Bytes(), true)
			learnMemory(st, int64(unsafe.Sizeof(status{})), true)
		}
		return err
	})
}

//export abiSendrecv
func abiSendrecv(sbuf uintptr, scount int64, stype uintptr, dst, stag int32, rbuf uintptr, rcount int64, rtype uintptr, src, rtag int32, c, st uintptr, which int32) int32 {
	return onComm("Sendrecv", which, c, func(c *commObject) error {
		out, in, err := buffers(sbuf, scount, stype, sends(dst), rbuf, rcount, rtype, receives(src))
		if err != nil {
			return err
		}
		s, err := c.Sendrecv(out, int(dst), int(stag), in, int(src), int(rtag))
		putStatus(st, &s)
		if err == nil && dst != mpi.ProcNull {
			learn(c, sbuf, scount*fastBoxWidth(stype), false)
		}
		if err == nil && src != mpi.ProcNull && fastBoxWidth(rtype) > 0 {
			learn(c, rbuf, s.Bytes(), true)
			learnMemory(st, int64(unsafe.Sizeof(status{})), true)
		}
		return err
	})
}

// buffers returns two buffers, neither of which may be MPI_IN_PLACE.
func buffers(sbuf uintptr, scount int64, stype uintptr, out use, rbuf uintptr, rcount int64, rtype uintptr, in use) (a, b mpi.Buffer, err error) {
	if a, err = used(sbuf, scount, stype, out); err == nil {
		b, err = used(rbuf, rcount, rtype, in)
	}
	return a, b, err
}

func begin(fn string, which int32, c, out uintptr, f func(c *commObject) (mpi.Request, error)) int32 {
	return onComm(fn, which, c, func(c *commObject) error {
		if out < firstAddress {
			return missing("request", out)
		}
		q, err := f(c)
		if err != nil {
			return err
		}
		return newRequest(&c.object, q, out)
	})
}

func beginOn(fn string, which int32, buf uintptr, count int64, t uintptr, u use, c, out uintptr, f func(c *commObject, b mpi.Buffer) (mpi.Request, error)) int32 {
	return begin(fn, which, c, out, func(c *commObject) (mpi.Request, error) {
		b, err := used(buf, count, t, u)
		if err != nil {
			return mpi.Request{}, err
		}
		return f(c, b)
	})
}

//export abiIsend
func abiIsend(buf uintptr, count int64, t uintptr, dst, tag int32, c, q uintptr, which int32) int32 {
	code := beginOn("Isend", which, buf, count, t, sends(dst), c, q, func(c *commObject, b mpi.Buffer) (mpi.Request, error) {
		return c.Isend(b, int(dst), int(tag))
	})
	if code == success && fastBoxWidth(t) > 0 && dst != mpi.ProcNull {
		learn(commOf(c), buf, count*fastBoxWidth(t), false)
		learnMemory(q, int64(unsafe.Sizeof(q)), true)
	}
	return code
}

//export abiIrecv
func abiIrecv(buf uintptr, count int64, t uintptr, src, tag int32, c, q uintptr, which int32) int32 {
	n := count * fastBoxWidth(t)
	if src == mpi.ProcNull {
		n = 0
	}
	code := beginOn("Irecv", which, buf, count, t, receives(src), c, q, func(c *commObject, b mpi.Buffer) (mpi.Request, error) {
		if n > 0 {
			tryWriting(buf)
		}
		return c.Irecv(b, int(src), int(tag))
	})
	if code == success && n > 0 {
		learn(commOf(c), buf, 1, true)
		learnMemory(q, int64(unsafe.Sizeof(q)), true)
	}
	return code
}
