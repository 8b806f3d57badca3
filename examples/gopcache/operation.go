package main

import (
	"github.com/openimpi/impi/core/mpi"
)

// plan is what the operation computes once for a communicator and all its duplicates.
type plan struct {
	references int
	left       int // the rank to receive from
	right      int // the rank to send to
}

// How many plans were made in this process, and how many exist.
var built, alive int

var key = mpi.KeyvalInvalid

// ringSum is a collective operation: it adds up a number of each member. It keeps
// its plan with the communicator.
func ringSum(c *mpi.Comm, number int) (sum int, err error) {
	p, err := planOf(c)
	if err != nil {
		return 0, err
	}
	pass, in := []int{number}, []int{0}
	for range c.Size() {
		if _, err := mpi.Sendrecv(c, pass, p.right, 0, in, p.left, 0); err != nil {
			return 0, err
		}
		sum += in[0]
		pass[0] = in[0]
	}
	return sum, nil
}

// planOf returns the plan of c, which it makes if there is none.
func planOf(c *mpi.Comm) (*plan, error) {
	if key == mpi.KeyvalInvalid {
		var err error
		if key, err = mpi.CreateKeyval(share, drop, nil); err != nil {
			return nil, err
		}
	}
	value, ok, err := c.Attr(key)
	if err != nil {
		return nil, err
	}
	if ok {
		return value.(*plan), nil
	}
	me, n := c.Rank(), c.Size()
	p := &plan{references: 1, left: (me + n - 1) % n, right: (me + 1) % n}
	built++
	alive++
	return p, c.SetAttr(key, p)
}

// share is the copy callback: a duplicate gets the same plan.
func share(_ *mpi.Comm, _ mpi.Keyval, _, value any) (copied any, keep bool, err error) {
	p := value.(*plan)
	p.references++
	return p, true, nil
}

// drop is called when a communicator that has the plan is freed.
func drop(_ *mpi.Comm, _ mpi.Keyval, value, _ any) error {
	p := value.(*plan)
	if p.references--; p.references == 0 {
		alive--
	}
	return nil
}
