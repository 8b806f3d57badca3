// Command safety has point-to-point messages pending on a communicator, with receives from
// any source and with any tag, while 50 Reduces run on the same communicator: neither
// receives the other's messages.
package main

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks = errors.New("at least nine ranks are needed")
	errMixed = errors.New("messages got mixed up")
)

const (
	tag    = 4711
	rounds = 50
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "safety: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	if world.Size() < 9 {
		return fmt.Errorf("%w, there are %d", errRanks, world.Size())
	}
	even, err := choose(world, []int{2, 4, 6, 8})
	if err != nil {
		return err
	}
	if even != nil {
		if err := work(even); err != nil {
			return err
		}
	}
	if err := mpi.Barrier(world); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Printf("safety: %d reductions beside pending messages, nothing mixed up\n", rounds)
	}
	return mpi.Finalize()
}

// choose makes a communicator of some ranks; others get nil.
func choose(world *mpi.Comm, ranks []int) (*mpi.Comm, error) {
	everybody, err := world.Group()
	if err != nil {
		return nil, err
	}
	group, err := everybody.Incl(ranks)
	if err != nil {
		return nil, err
	}
	c, err := world.Create(group)
	return c, errors.Join(err, group.Free(), everybody.Free())
}

// work sends messages round a ring, and reduces before they are waited for.
func work(c *mpi.Comm) error {
	me, n := c.Rank(), c.Size()
	got := []int{-1}
	in, err := mpi.Irecv(c, got, mpi.AnySource, mpi.AnyTag)
	if err != nil {
		return err
	}
	out, err := mpi.Isend(c, []int{100 + me}, (me+1)%n, tag)
	if err != nil {
		return err
	}
	for i := range rounds {
		if err := reduce(c, i); err != nil {
			return err
		}
	}
	st, err := in.Wait()
	if err != nil {
		return err
	}
	if _, err := out.Wait(); err != nil {
		return err
	}
	if left := (me + n - 1) % n; st.Source != left || st.Tag != tag || got[0] != 100+left {
		return fmt.Errorf("%w: %d of rank %d with tag %d", errMixed, got[0], st.Source, st.Tag)
	}
	return c.Free()
}

func reduce(c *mpi.Comm, round int) error {
	sum := []int{0}
	if err := mpi.Reduce(c, []int{round + c.Rank()}, sum, mpi.Sum, 0); err != nil {
		return err
	}
	n := c.Size()
	if want := n*round + n*(n-1)/2; c.Rank() == 0 && sum[0] != want {
		return fmt.Errorf("%w: sum %d of reduction %d, want %d", errMixed, sum[0], round, want)
	}
	return nil
}
