package main

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var errShift = errors.New("wrong block from the left")

// library is one instance of a parallel library: it moves blocks round a ring. It has a
// communicator of its own, so that its messages never match those of others.
type library struct {
	c       *mpi.Comm
	in      []float64
	pending []mpi.Request
}

// newLibrary is called by all members of c.
func newLibrary(c *mpi.Comm) (*library, error) {
	own, err := c.Dup()
	return &library{c: own}, err
}

// start begins to send a block to the right; the block must not change until end.
func (l *library) start(block []float64) error {
	me, n := l.c.Rank(), l.c.Size()
	l.in = make([]float64, len(block))
	in, err := mpi.Irecv(l.c, l.in, mpi.AnySource, mpi.AnyTag)
	if err != nil {
		return err
	}
	out, err := mpi.Isend(l.c, block, (me+1)%n, 0)
	l.pending = []mpi.Request{in, out}
	return err
}

func (l *library) end() ([]float64, error) {
	statuses := make([]mpi.Status, len(l.pending))
	if err := mpi.Waitall(l.pending, statuses); err != nil {
		return nil, err
	}
	if left := (l.c.Rank() + l.c.Size() - 1) % l.c.Size(); statuses[0].Source != left {
		return nil, fmt.Errorf("%w: it is of rank %d", errShift, statuses[0].Source)
	}
	return l.in, nil
}

// free frees the instance; all members call it.
func (l *library) free() error { return l.c.Free() }
