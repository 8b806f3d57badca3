// Command library2 calls a library whose first rank receives messages from anybody, in
// three ways: (a) with one sender for each communicator, which is safe; (b) with two, where
// a call can receive messages of the next; (c) with two and a barrier at the end of each
// call, which is safe again. For (b) it forces the failure, by a schedule that MPI allows.
package main

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks  = errors.New("at least four ranks are needed")
	errMasked = errors.New("a call took a message of another")
	errSafe   = errors.New("no call took a message of another, in spite of the schedule")
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "library2: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	if world.Size() < 4 {
		return fmt.Errorf("%w, there are %d", errRanks, world.Size())
	}
	for _, v := range variants {
		masked, err := v.try(world)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", v.name, err)
		case masked && !v.unsafe:
			return fmt.Errorf("%s: %w", v.name, errMasked)
		case !masked && v.unsafe && world.Rank() == 0:
			return fmt.Errorf("%s: %w", v.name, errSafe)
		}
		if world.Rank() == 0 {
			fmt.Printf("library2: %s: %s\n", v.name, map[bool]string{
				false: "each call has its own messages", true: "the first call took a message of the second, as it may"}[masked])
		}
	}
	return mpi.Finalize()
}

// variant is one way to use the library: on ranks 0 and 1, and twice on the ranks of
// second.
type variant struct {
	name    string
	second  []int
	barrier bool
	unsafe  bool
}

var variants = []variant{
	{name: "a", second: []int{0, 2}},
	{name: "b", second: []int{0, 2, 3}, unsafe: true},
	{name: "c", second: []int{0, 2, 3}, barrier: true},
}

// try returns, at rank 0, whether a call has received a message of another one.
func (v *variant) try(world *mpi.Comm) (masked bool, err error) {
	news, err := world.Dup() // for the messages that force the schedule
	if err != nil {
		return false, err
	}
	a, err := choose(world, []int{0, 1})
	if err != nil {
		return false, err
	}
	b, err := choose(world, v.second)
	if err != nil {
		return false, err
	}
	if a != nil {
		if masked, err = call(a, 0, v.barrier); err != nil {
			return false, errors.Join(err, a.Free())
		}
		if err := a.Free(); err != nil {
			return false, err
		}
	}
	if b != nil {
		if masked, err = v.twice(b, news, masked); err != nil {
			return false, err
		}
		if err := b.Free(); err != nil {
			return false, err
		}
	}
	return masked, news.Free()
}

// twice calls the library twice. In the unsafe variant rank 3 is late: it makes its first
// call when rank 0 has returned from its own.
func (v *variant) twice(b, news *mpi.Comm, masked bool) (bool, error) {
	word := []int{0}
	if v.unsafe && news.Rank() == 3 {
		if _, err := mpi.Recv(news, word, 0, 0); err != nil {
			return false, err
		}
	}
	for k := 1; k <= 2; k++ {
		m, err := call(b, k, v.barrier)
		if err != nil {
			return false, err
		}
		masked = masked || m
		if v.unsafe && k == 1 && news.Rank() == 0 {
			if err := mpi.Send(news, word, 3, 0); err != nil {
				return false, err
			}
		}
	}
	return masked, nil
}

// call is the library: rank 0 receives a message of each other rank, or so it believes.
// number says which call it is.
func call(c *mpi.Comm, number int, barrier bool) (masked bool, err error) {
	if c.Rank() != 0 {
		err = mpi.Send(c, []int{number}, 0, 7)
	} else {
		for range c.Size() - 1 {
			got := []int{-1}
			if _, err := mpi.Recv(c, got, mpi.AnySource, mpi.AnyTag); err != nil {
				return false, err
			}
			masked = masked || got[0] != number
		}
	}
	if err == nil && barrier {
		err = mpi.Barrier(c)
	}
	return masked, err
}

// choose makes a communicator of some ranks; the others get nil.
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
