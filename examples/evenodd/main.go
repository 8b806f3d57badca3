// Command evenodd has each even rank send to the odd one after it. If the number
// of ranks is odd the last one has no partner.
package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

var errData = errors.New("wrong data")

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "evenodd: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	served, err := exchange(world)
	if err != nil {
		return err
	}
	pairs := []int{0}
	if err := mpi.Reduce(world, []int{served}, pairs, mpi.Sum, 0); err != nil {
		return err
	}
	if world.Rank() == 0 {
		if pairs[0] != world.Size()/2 {
			return fmt.Errorf("%w: %d pairs of %d ranks", errData, pairs[0], world.Size())
		}
		fmt.Printf("evenodd: %d ranks, %d pairs, %d alone\n", world.Size(), pairs[0], world.Size()%2)
	}
	return mpi.Finalize()
}

func exchange(c *mpi.Comm) (served int, err error) {
	me := c.Rank()
	if me%2 == 0 {
		if me+1 < c.Size() {
			err = mpi.Send(c, letter(me), me+1, 0)
		}
		return 0, err
	}
	got := make([]int32, 100)
	if _, err := mpi.Recv(c, got, me-1, 0); err != nil {
		return 0, err
	}
	if !slices.Equal(got, letter(me-1)) {
		return 0, fmt.Errorf("%w from rank %d: %v", errData, me-1, got)
	}
	return 1, nil
}

func letter(rank int) []int32 {
	s := make([]int32, 100)
	for i := range s {
		s[i] = int32(rank*1000 + i)
	}
	return s
}
