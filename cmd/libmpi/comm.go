//go:build cgo && !386 && !arm

package main

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

// construct makes a communicator from another and stores its handle.
func construct(fn string, h, out uintptr, f func(c *commObject) (*mpi.Comm, error)) int32 {
	return onComm(fn, 0, h, func(c *commObject) error {
		to, err := result[uintptr]("newcomm", out)
		if err != nil {
			return err
		}
		*to = commNull // unless it can be made
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
