// Command nameserver makes rank 0 bring together groups of the other ranks that know only a
// common name. It uses an attribute, which keeps the service with the communicator, and
// intercommunicators.
package main

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks = errors.New("at least five ranks are needed")
	errSum   = errors.New("wrong sum of the other group")
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "nameserver: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	if world.Size() < 5 {
		return fmt.Errorf("%w, there are %d", errRanks, world.Size())
	}
	// The world cannot be freed, but the communicator of the service must be.
	c, err := world.Dup()
	if err != nil {
		return err
	}
	if err := newService(c); err != nil {
		return err
	}
	if err := play(c); err != nil {
		return err
	}
	if err := c.Free(); err != nil { // frees the service, too
		return err
	}
	if err := mpi.FreeKeyval(&key); err != nil {
		return err
	}
	return mpi.Finalize()
}

// names are those under which the two groups meet, one after the other.
var names = []int{42, 7, 42}

func play(c *mpi.Comm) error {
	s, err := serviceOf(c)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		none, err := c.Split(mpi.Undefined, 0)
		if err != nil || none != nil {
			return errors.Join(errKey, err)
		}
		pairs, err := s.serve()
		if err == nil {
			fmt.Printf("nameserver: %d times two groups met, of %d ranks\n", pairs, c.Size()-1)
		}
		return err
	}
	group, err := c.Split(c.Rank()%2, 0)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := greet(s, group, name); err != nil {
			return err
		}
	}
	// The other group may still be at work, but the server has done its part.
	if c.Rank() == 1 {
		if err := s.end(); err != nil {
			return err
		}
	}
	return group.Free()
}

func greet(s *service, group *mpi.Comm, name int) error {
	other, err := s.meet(group, name)
	if err != nil {
		return err
	}
	sum := []int{0}
	if err := mpi.Allreduce(other, []int{group.Rank() + 1}, sum, mpi.Sum); err != nil {
		return err
	}
	n, err := other.RemoteSize()
	if err != nil {
		return err
	}
	if want := n * (n + 1) / 2; sum[0] != want {
		return fmt.Errorf("%w: %d, want %d", errSum, sum[0], want)
	}
	return other.Free()
}
