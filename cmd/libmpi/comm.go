//go:build cgo && !386 && !arm

package main

import "C"

import (
	"strings"
	"sync"

	"github.com/openimpi/impi/core/mpi"
)

// comparisons are the values of MPI_IDENT and its like in C.
var comparisons = map[mpi.Comparison]int{mpi.Identical: 201, mpi.Congruent: 202, mpi.Similar: 203, mpi.Unequal: 204}

func putComparison(name string, p uintptr, c mpi.Comparison) error {
	return putInt(name, p, comparisons[c])
}

func construct(fn string, h, out uintptr, f func(c *commObject) (*mpi.Comm, error)) int32 {
	return onComm(fn, 0, h, func(c *commObject) error {
		to, err := result[uintptr]("newcomm", out)
		if err != nil {
			return err
		}
		*to = commNull // result after an error
		n, err := f(c)
		if err == nil {
			*to = newComm(n, c)
		}
		return err
	})
}

// intercomm is IntercommCreate, in which only the local leader looks at peer.
func (c *commObject) intercomm(leader int, peer uintptr, remote, tag int) (*mpi.Comm, error) {
	var p *mpi.Comm
	if leader == c.Rank() {
		o, err := takeComm("peer_comm", peer)
		if err != nil {
			return nil, err
		}
		p = o.Comm
	}
	return c.IntercommCreate(leader, p, remote, tag)
}

// end frees the communicator at p by f, and stores MPI_COMM_NULL.
func end(fn string, p uintptr, f func(c *mpi.Comm) error) int32 {
	return onHandle(fn, "comm", p, nil, func(h *uintptr) int32 {
		return onComm(fn, 0, *h, func(c *commObject) error {
			if err := f(c.Comm); err != nil {
				return err
			}
			commHandles.Delete(c.Comm)
			comms.Free(*h)
			*h = commNull
			return nil
		})
	})
}

// objectName returns the name at p, cut to the length that names of objects have.
func objectName(name string, p uintptr) (string, error) {
	s, err := text(name, p, maxText)
	return strings.Clone(s[:min(len(s), maxObjectName-1)]), err
}

// dimensions returns the number of dimensions of a Cartesian topology, 0 if there is none.
func (c *commObject) dimensions() int {
	n, _ := c.CartdimGet()
	return n
}

// meet makes an intercommunicator at a port; the port's name is read at the root only.
func (c *commObject) meet(f func(c *mpi.Comm, port string, i *mpi.Info, root int) (*mpi.Comm, error), name, info uintptr, root int) (*mpi.Comm, error) {
	if root != c.Rank() {
		return f(c.Comm, "", nil, root)
	}
	port, err := text("port_name", name, maxPortName)
	if err != nil {
		return nil, err
	}
	i, err := infoOf(info)
	if err != nil {
		return nil, err
	}
	return f(c.Comm, port, i, root)
}

// parent is the handle of the communicator with the procs that have spawned this one.
var parent struct {
	sync.Once
	handle uintptr
}

// parentHandle returns the handle of the intercommunicator with the parents, MPI_COMM_NULL if there
// is none any more.
func parentHandle() uintptr {
	parent.Do(func() { parent.handle = newComm(mpi.Parent(), nil) })
	if commOf(parent.handle) == nil {
		return commNull
	}
	return parent.handle
}

// commName is MPI_Comm_get_name, which has an answer for MPI_COMM_NULL, too (MPI-4.1, 7.8).
func commName(fn string, h, name, length uintptr) int32 {
	if h == commNull {
		return on(fn, 0, func() error { return putSizedText("comm_name", name, maxObjectName, length, "MPI_COMM_NULL") })
	}
	return onComm(fn, 0, h, func(o *commObject) error {
		return putSizedText("comm_name", name, maxObjectName, length, o.Name())
	})
}

// The functions declared in mpi-ext.h, for survive.c.

//export extCommRevoke
func extCommRevoke(comm uintptr) int32 {
	return onComm("X_Comm_revoke", 0, comm, func(o *commObject) error { return o.Revoke() })
}

//export extCommIsRevoked
func extCommIsRevoked(comm, flag uintptr) int32 {
	return onComm("X_Comm_is_revoked", 0, comm, func(o *commObject) error {
		revoked, err := o.IsRevoked()
		if err != nil {
			return err
		}
		return putFlag("flag", flag, revoked)
	})
}

//export extCommShrink
func extCommShrink(comm, newcomm uintptr) int32 {
	return onComm("X_Comm_shrink", 0, comm, func(o *commObject) error {
		to, err := result[uintptr]("newcomm", newcomm)
		if err != nil {
			return err
		}
		*to = commNull // result after an error
		c, err := o.Shrink()
		if err != nil {
			return err
		}
		*to = newComm(c, o)
		return nil
	})
}

//export extCommIshrink
func extCommIshrink(comm, newcomm, request uintptr) int32 {
	return onComm("X_Comm_ishrink", 0, comm, func(o *commObject) error {
		to, err := result[uintptr]("newcomm", newcomm)
		if err != nil {
			return err
		}
		*to = commNull // result after an error
		if _, err := result[uintptr]("request", request); err != nil {
			return err
		}
		c, q, err := o.Ishrink()
		if err != nil {
			return err
		}
		*to = newComm(c, o)
		return newRequest(&o.object, q, request)
	})
}

//export extCommAgree
func extCommAgree(comm, flag uintptr) int32 {
	return onComm("X_Comm_agree", 0, comm, func(o *commObject) error {
		to, err := result[int32]("flag", flag)
		if err != nil {
			return err
		}
		*to, err = o.Agree(*to)
		return err
	})
}

//export extCommIagree
func extCommIagree(comm, flag, request uintptr) int32 {
	return onComm("X_Comm_iagree", 0, comm, func(o *commObject) error {
		to, err := result[int32]("flag", flag)
		if err != nil {
			return err
		}
		if _, err := result[uintptr]("request", request); err != nil {
			return err
		}
		q, err := o.Iagree(to)
		if err != nil {
			return err
		}
		return newRequest(&o.object, q, request)
	})
}

//export extCommFailureAck
func extCommFailureAck(comm uintptr) int32 {
	return onComm("X_Comm_failure_ack", 0, comm, func(o *commObject) error { return o.FailureAck() })
}

//export extCommFailureGetAcked
func extCommFailureGetAcked(comm, group uintptr) int32 {
	return onComm("X_Comm_failure_get_acked", 0, comm, func(o *commObject) error { return putGroup(o, group, o.FailureGetAcked) })
}

//export extCommGetFailed
func extCommGetFailed(comm, group uintptr) int32 {
	return onComm("X_Comm_get_failed", 0, comm, func(o *commObject) error { return putGroup(o, group, o.GetFailed) })
}

func putGroup(o *commObject, group uintptr, get func() (*mpi.Group, error)) error {
	to, err := result[uintptr]("failedgrp", group)
	if err != nil {
		return err
	}
	g, err := get()
	if err != nil {
		return err
	}
	*to = newGroup(g, o.session)
	return nil
}

//export extCommAckFailed
func extCommAckFailed(comm uintptr, most int32, acked uintptr) int32 {
	return onComm("X_Comm_ack_failed", 0, comm, func(o *commObject) error {
		to, err := result[int32]("num_acked", acked)
		if err != nil {
			return err
		}
		n, err := o.AckFailed(int(most))
		if err == nil {
			*to = int32(n)
		}
		return err
	})
}
