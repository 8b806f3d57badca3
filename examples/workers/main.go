// Command workers makes a communicator of all ranks but the first. The workers reduce among
// themselves while rank 0 is already in a Reduce of the world: the two do not interfere.
package main

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks = errors.New("at least three ranks are needed")
	errSum   = errors.New("wrong sum")
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "workers: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	n := int64(world.Size())
	if n < 3 {
		return fmt.Errorf("%w, there are %d", errRanks, n)
	}
	workers, err := hire(world)
	if err != nil {
		return err
	}
	if workers != nil { // rank 0 is no worker, and has nothing to free
		if err := work(workers); err != nil {
			return err
		}
	}
	all := []int64{0}
	if err := mpi.Reduce(world, []int64{1}, all, mpi.Sum, 0); err != nil {
		return err
	}
	if world.Rank() == 0 {
		if all[0] != n {
			return fmt.Errorf("%w of all: %d, want %d", errSum, all[0], n)
		}
		fmt.Printf("workers: %d ranks, %d of them workers, both sums as they must be\n", n, n-1)
	}
	return mpi.Finalize()
}

func hire(world *mpi.Comm) (*mpi.Comm, error) {
	everybody, err := world.Group()
	if err != nil {
		return nil, err
	}
	group, err := everybody.Excl([]int{0})
	if err != nil {
		return nil, err
	}
	workers, err := world.Create(group)
	return workers, errors.Join(err, group.Free(), everybody.Free())
}

// work adds up the squares of the workers' numbers at the second worker.
func work(workers *mpi.Comm) error {
	const root = 1
	k := int64(workers.Rank() + 1)
	sum := []int64{0}
	if err := mpi.Reduce(workers, []int64{k * k}, sum, mpi.Sum, root); err != nil {
		return err
	}
	n := int64(workers.Size())
	if want := n * (n + 1) * (2*n + 1) / 6; workers.Rank() == root && sum[0] != want {
		return fmt.Errorf("%w of the workers: %d, want %d", errSum, sum[0], want)
	}
	return workers.Free()
}
