// Command firstofleft makes, from an intercommunicator, another one with only the first
// member of the left group and all of the right group.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks = errors.New("the left group needs a rank, and the right group too")
	errWrong = errors.New("wrong communicator")
)

func main() {
	left := flag.Int("left", 2, "how many of the ranks are the left group")
	flag.Parse()
	if err := run(*left); err != nil {
		mpi.Abort(1, "firstofleft: "+err.Error())
	}
}

func run(left int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	if left < 1 || world.Size() <= left {
		return fmt.Errorf("%w: %d ranks, %d of them left", errRanks, world.Size(), left)
	}
	isLeft := world.Rank() < left
	side, other := 0, left
	if !isLeft {
		side, other = 1, 0
	}
	own, err := world.Split(side, 0)
	if err != nil {
		return err
	}
	both, err := own.IntercommCreate(0, world, other, 0)
	if err != nil {
		return err
	}
	some, err := choose(both, isLeft)
	if err != nil {
		return err
	}
	if err := use(some, isLeft, own.Rank(), world.Size()-left); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Printf("firstofleft: the first of %d has told all %d of the right group, and heard of them\n", left, world.Size()-left)
	}
	return errors.Join(both.Free(), own.Free(), mpi.Finalize())
}

// choose calls Create with a group of the first member on the left side, and of all members
// on the right side.
func choose(both *mpi.Comm, isLeft bool) (*mpi.Comm, error) {
	group, err := both.Group()
	if err != nil {
		return nil, err
	}
	if isLeft {
		all := group
		if group, err = all.Incl([]int{0}); err != nil {
			return nil, err
		}
		if err := all.Free(); err != nil {
			return nil, err
		}
	}
	some, err := both.Create(group)
	return some, errors.Join(err, group.Free())
}

// use sends a number from the left member to the right group, and the sum of their answers
// back.
func use(c *mpi.Comm, isLeft bool, rank, rights int) error {
	if isLeft && rank > 0 {
		if c != nil {
			return fmt.Errorf("%w: rank %d of the left group is in it", errWrong, rank)
		}
		return nil
	}
	if c == nil {
		return fmt.Errorf("%w: rank %d is not in it", errWrong, rank)
	}
	number, sum := []int{17}, []int{0}
	told, heard := mpi.Root, mpi.Root
	if !isLeft {
		number[0], told, heard = 0, 0, 0
	}
	if err := mpi.Bcast(c, number, told); err != nil {
		return err
	}
	if err := mpi.Reduce(c, []int{number[0] + rank}, sum, mpi.Sum, heard); err != nil {
		return err
	}
	if want := 17*rights + rights*(rights-1)/2; isLeft && sum[0] != want {
		return fmt.Errorf("%w: the sum is %d, want %d", errWrong, sum[0], want)
	}
	return c.Free()
}
