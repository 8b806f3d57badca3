// Command hello has each rank say which it is of how many.
package main

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "hello: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	rank, size := world.Rank(), world.Size()
	fmt.Printf("hello: I am rank %d of %d\n", rank, size)
	// Each rank must be there once.
	sum, squares := []int64{0}, []int64{0}
	r := int64(rank)
	if err := mpi.Reduce(world, []int64{r}, sum, mpi.Sum, 0); err != nil {
		return err
	}
	if err := mpi.Reduce(world, []int64{r * r}, squares, mpi.Sum, 0); err != nil {
		return err
	}
	if n := int64(size); rank == 0 {
		if sum[0] != n*(n-1)/2 || squares[0] != n*(n-1)*(2*n-1)/6 {
			return fmt.Errorf("the ranks of %d add up to %d, and their squares to %d", n, sum[0], squares[0])
		}
		fmt.Printf("hello: all %d are there\n", n)
	}
	return mpi.Finalize()
}
