// Command pipeline3 divides the ranks among three groups that form a pipeline: the
// first produces numbers, the second multiplies them, the third gets the sums.
// Intercommunicators join the first with the second and the second with the third.
package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks = errors.New("at least three ranks are needed")
	errSums  = errors.New("wrong sums at the end of the pipeline")
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "pipeline3: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	if world.Size() < 3 {
		return fmt.Errorf("%w, there are %d", errRanks, world.Size())
	}
	stage := world.Rank() % 3 // the leader of group k has rank k in the world
	own, err := world.Split(stage, world.Rank())
	if err != nil {
		return err
	}
	if err := [...]func(own, world *mpi.Comm) error{produce, multiply, collect}[stage](own, world); err != nil {
		return err
	}
	if err := own.Free(); err != nil {
		return err
	}
	return mpi.Finalize()
}

// The tags with which the groups meet.
const (
	tagFirst  = 1
	tagSecond = 12
)

func numbers() []int64 {
	s := make([]int64, 16)
	for i := range s {
		s[i] = int64(i*i + 1)
	}
	return s
}

func produce(own, world *mpi.Comm) error {
	next, err := own.IntercommCreate(0, world, 1, tagFirst)
	if err != nil {
		return err
	}
	root := mpi.ProcNull
	if own.Rank() == 0 {
		root = mpi.Root
	}
	return errors.Join(mpi.Bcast(next, numbers(), root), next.Free())
}

// multiply makes each member multiply the numbers by its own number, counted from one, and
// sends the sums of all on.
func multiply(own, world *mpi.Comm) error {
	before, err := own.IntercommCreate(0, world, 0, tagFirst)
	if err != nil {
		return err
	}
	next, err := own.IntercommCreate(0, world, 2, tagSecond)
	if err != nil {
		return err
	}
	s := make([]int64, len(numbers()))
	if err := mpi.Bcast(before, s, 0); err != nil {
		return err
	}
	for i := range s {
		s[i] *= int64(own.Rank() + 1)
	}
	return errors.Join(mpi.Reduce(next, s, nil, mpi.Sum, 0), before.Free(), next.Free())
}

func collect(own, world *mpi.Comm) error {
	before, err := own.IntercommCreate(0, world, 1, tagSecond)
	if err != nil {
		return err
	}
	root := mpi.ProcNull
	if own.Rank() == 0 {
		root = mpi.Root
	}
	sums := make([]int64, len(numbers()))
	if err := mpi.Reduce(before, nil, sums, mpi.Sum, root); err != nil {
		return err
	}
	if own.Rank() == 0 {
		members, err := before.RemoteSize()
		if err != nil {
			return err
		}
		if err := check(sums, members); err != nil {
			return err
		}
		fmt.Printf("pipeline3: %d numbers through three groups of %d ranks, as they must be\n", len(sums), world.Size())
	}
	return before.Free()
}

func check(sums []int64, members int) error {
	want := numbers()
	for i := range want {
		want[i] *= int64(members * (members + 1) / 2)
	}
	if !slices.Equal(sums, want) {
		return fmt.Errorf("%w: %v, want %v", errSums, sums, want)
	}
	return nil
}
