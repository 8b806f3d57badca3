// Command gopcache calls a collective operation that caches its plan as an
// attribute of the communicator: it is made at the first call, duplicates share
// it, and it ends with the last of them.
package main

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errSum  = errors.New("wrong sum")
	errPlan = errors.New("wrong number of plans")
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "gopcache: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	calls, err := family(world)
	if err != nil {
		return err
	}
	if err := mpi.FreeKeyval(&key); err != nil {
		return err
	}
	plans := []int{0}
	if err := mpi.Reduce(world, []int{built}, plans, mpi.Max, 0); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Printf("gopcache: %d calls on four communicators, %d plans, all gone\n", calls, plans[0])
	}
	return mpi.Finalize()
}

// family calls the operation on a communicator, on a duplicate, on a duplicate of that, and
// on an unrelated communicator; it frees the first one first.
func family(world *mpi.Comm) (calls int, err error) {
	a, err := world.Dup()
	if err != nil {
		return 0, err
	}
	sum := func(c *mpi.Comm) error {
		calls++
		return checkedSum(c)
	}
	for range 3 {
		if err := sum(a); err != nil {
			return calls, err
		}
	}
	b, err := a.Dup()
	if err != nil {
		return calls, err
	}
	c, err := b.Dup()
	if err != nil {
		return calls, err
	}
	if err := errors.Join(a.Free(), sum(b), sum(c), count(1, 1)); err != nil {
		return calls, err
	}
	other, err := world.Split(world.Rank()%2, 0)
	if err != nil {
		return calls, err
	}
	if err := errors.Join(sum(other), sum(other), count(2, 2)); err != nil {
		return calls, err
	}
	return calls, errors.Join(b.Free(), count(2, 2), c.Free(), count(2, 1), other.Free(), count(2, 0))
}

func count(wantBuilt, wantAlive int) error {
	if built != wantBuilt || alive != wantAlive {
		return fmt.Errorf("%w: %d made and %d alive, want %d and %d", errPlan, built, alive, wantBuilt, wantAlive)
	}
	return nil
}

func checkedSum(c *mpi.Comm) error {
	n := c.Size()
	got, err := ringSum(c, c.Rank())
	if want := n * (n - 1) / 2; err == nil && got != want {
		return fmt.Errorf("%w: %d, want %d", errSum, got, want)
	}
	return err
}
