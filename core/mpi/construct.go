package mpi

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/comm"
)

// Dup makes a communicator of the same members and topology, whose messages are
// kept apart from c's. All members of c call it. Constructors of different
// communicators may run in several goroutines at a time, unless some member of
// them runs another MPI library: then that is ErrContextRace at best.
func (c *Comm) Dup() (*Comm, error) {
	d, err := c.dup()
	return d, c.failed("Dup", err)
}

// dup copies the attributes first, so that no member gets a communicator where
// one member's copying fails.
func (c *Comm) dup() (*Comm, error) {
	if c == nil {
		return nil, noComm()
	}
	copies, bad := c.copyAttrs()
	d, err := c.derive(comm.Spec{Group: c.Group(), Masters: c.Masters(), Cart: c.Cart()}, bad)
	if err != nil {
		c.dropAttrs(copies)
		return nil, err
	}
	d.attrs = copies
	return d, nil
}

// Split makes one communicator for each colour that members give, of those that
// give it, ordered by key and then by rank in c. All members of c call it. The
// colour Undefined gives nil.
func (c *Comm) Split(color, key int) (*Comm, error) {
	d, err := c.split(color, key)
	return d, c.failed("Split", err)
}

func (c *Comm) split(color, key int) (*Comm, error) {
	switch {
	case c == nil:
		return nil, noComm()
	case color < 0 && color != Undefined || color != int(int32(color)):
		return nil, fmt.Errorf("%w: colour %d", ErrArg, color)
	case key != int(int32(key)):
		return nil, fmt.Errorf("%w: key %d", ErrArg, key)
	}
	// IMPI ch.4, Comm_split: (colour, key) as two MPI_INT; no colour is -1.
	all := make([]int32, 2*c.Size())
	all[2*c.Rank()], all[2*c.Rank()+1] = int32(max(color, -1)), int32(key)
	if err := allgather(c, nil, all); err != nil {
		return nil, err
	}
	var ranks []int
	for r := range c.Size() {
		if color >= 0 && all[2*r] == int32(color) {
			ranks = append(ranks, r)
		}
	}
	if color < 0 {
		return c.derive(comm.Spec{}, nil)
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
	group, err := c.Group().Incl(ranks)
	if err != nil {
		return nil, err
	}
	return c.derive(comm.Spec{Group: group}, nil)
}
