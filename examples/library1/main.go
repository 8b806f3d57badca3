// Command library1 uses two instances of a parallel library at the same time, while the
// program itself communicates too. Each instance has a duplicate of the communicator that
// it was given, so that no message is received by the wrong one.
package main

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "library1: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	sum, err := use(world)
	if err != nil {
		return err
	}
	if n := world.Size(); world.Rank() == 0 {
		if sum != n*(n-1)/2 {
			return fmt.Errorf("the ranks of %d add up to %d", n, sum)
		}
		fmt.Printf("library1: two instances beside a Reduce on %d ranks, all blocks as they must be\n", n)
	}
	return mpi.Finalize()
}

// use runs both instances, started and ended in an interleaved order, during a Reduce.
func use(world *mpi.Comm) (sum int, err error) {
	var libs [2]*library
	for i := range libs {
		if libs[i], err = newLibrary(world); err != nil {
			return 0, err
		}
		if err := libs[i].start(block(i, world.Rank())); err != nil {
			return 0, err
		}
	}
	total := []int{0}
	if err := mpi.Reduce(world, []int{world.Rank()}, total, mpi.Sum, 0); err != nil {
		return 0, err
	}
	left := (world.Rank() + world.Size() - 1) % world.Size()
	for i := len(libs) - 1; i >= 0; i-- {
		got, err := libs[i].end()
		if err != nil {
			return 0, err
		}
		if want := block(i, left); !slices.Equal(got, want) {
			return 0, fmt.Errorf("%w: instance %d has %v, want %v", errShift, i, got[:3], want[:3])
		}
		if err := libs[i].free(); err != nil {
			return 0, err
		}
	}
	return total[0], nil
}

func block(instance, rank int) []float64 {
	b := make([]float64, 1000*(instance+1))
	for i := range b {
		b[i] = float64(instance+1)*1e6 + float64(rank)*1e3 + float64(i)/8
	}
	return b
}
