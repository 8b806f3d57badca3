//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/mpi"
)

//export abiIprobe
func abiIprobe(src, tag int32, c, flag, st uintptr) int32 {
	return onComm("Iprobe", 0, c, func(c *commObject) error {
		found, s, err := mpi.Iprobe(c.Comm, int(src), int(tag))
		if err != nil {
			return err
		}
		if found {
			putStatus(st, &s)
		}
		return putFlag("flag", flag, found)
	})
}

func newMessage(m *mpi.Message, c *commObject) uintptr {
	switch {
	case m == nil:
		return messageNull
	case m.NoProc():
		return messageNoProc
	}
	return messages.Add(messageObject{m, &c.object})
}

//export abiImprobe
func abiImprobe(src, tag int32, c, flag, out, st uintptr) int32 {
	return onComm("Improbe", 0, c, func(c *commObject) error {
		to, err := result[uintptr]("message", out)
		if err != nil {
			return err
		}
		m, s, err := mpi.Improbe(c.Comm, int(src), int(tag))
		if err != nil {
			return err
		}
		if m != nil {
			putStatus(st, &s)
			*to = newMessage(m, c)
		}
		return putFlag("flag", flag, m != nil)
	})
}

// onMessage receives the message at p, which cannot be used again.
func onMessage(fn string, which int32, buf uintptr, count int64, t, p uintptr, f func(m messageObject, b mpi.Buffer) error) (code int32) {
	guard()
	defer rescue(fn, which, nil, &code)
	var owner *object
	err := func() error {
		if err := usable(); err != nil {
			return err
		}
		h, err := result[uintptr]("message", p)
		if err != nil {
			return err
		}
		b, err := used(buf, count, t, first)
		if err != nil {
			return err
		}
		m := messageObject{owner: &self.Load().object}
		if *h != messageNoProc {
			found := messages.Get(*h)
			if found == nil {
				return bad(mpi.ErrMessage, "message", *h, messageNull)
			}
			m = *found
			*found = messageObject{}
			messages.Free(*h)
		}
		owner = m.owner
		*h = messageNull
		return f(m, b)
	}()
	if err != nil {
		return fail(fn, which, owner, err)
	}
	return success
}

// nobody is the status of a receive from MPI_PROC_NULL.
var nobody = mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}

//export abiMrecv
func abiMrecv(buf uintptr, count int64, t, message, st uintptr, which int32) int32 {
	return onMessage("Mrecv", which, buf, count, t, message, func(m messageObject, b mpi.Buffer) error {
		s, err := nobody, error(nil)
		if m.Message != nil {
			s, err = m.Recv(b)
		}
		putStatus(st, &s)
		return err
	})
}

//export abiImrecv
func abiImrecv(buf uintptr, count int64, t, message, q uintptr, which int32) int32 {
	return onMessage("Imrecv", which, buf, count, t, message, func(m messageObject, b mpi.Buffer) error {
		if q < firstAddress {
			return missing("request", q)
		}
		var r mpi.Request
		var err error
		if m.Message != nil {
			r, err = m.Irecv(b)
		} else {
			r, err = self.Load().Irecv(b, mpi.ProcNull, mpi.AnyTag)
		}
		if err != nil {
			return err
		}
		return newRequest(m.owner, r, q)
	})
}
