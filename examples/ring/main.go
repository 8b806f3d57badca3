// Command ring sends a token round all ranks, again and again. Each rank signs it, so that
// rank 0 can check that it has passed every rank in order.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var errToken = errors.New("the token took a wrong way")

func main() {
	rounds := flag.Int("rounds", 1000, "how often the token goes round")
	progress := flag.Int("progress", 0, "say how far it is every so many `rounds` (default: never)")
	flag.Parse()
	if err := run(*rounds, *progress); err != nil {
		mpi.Abort(1, "ring: "+err.Error())
	}
}

func run(rounds, progress int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	started := mpi.Wtime()
	t, err := turn(world, rounds, progress)
	if err != nil {
		return err
	}
	took := mpi.Wtime() - started
	if world.Rank() == 0 {
		if err := t.check(world.Size(), rounds); err != nil {
			return err
		}
		fmt.Printf("ring: %d ranks, %d rounds: %d hops, path %016x, as it must be\n", world.Size(), rounds, t[hops], t[path])
		fmt.Printf("ring: %.2f us per hop\n", 1e6*took/float64(max(t[hops], 1)))
	}
	return mpi.Finalize()
}

// turn passes the token on, rounds times. Rank 0 has it at the end, and prints progress.
func turn(c *mpi.Comm, rounds, progress int) (t token, err error) {
	next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for round := 1; round <= rounds; round++ {
		if c.Rank() == 0 {
			// A ring of one rank sends to itself, which must not block.
			err = exchange(c, &t, next, before)
		} else if _, err = mpi.Recv(c, t[:], before, 0); err == nil {
			t.sign(c.Rank())
			err = mpi.Send(c, t[:], next, 0)
		}
		if err != nil {
			return t, err
		}
		if c.Rank() == 0 && progress > 0 && round%progress == 0 {
			fmt.Printf("ring: round %d of %d\n", round, rounds)
		}
	}
	return t, nil
}

func exchange(c *mpi.Comm, t *token, next, before int) error {
	out := *t
	if _, err := mpi.Sendrecv(c, out[:], next, 0, t[:], before, 0); err != nil {
		return err
	}
	t.sign(0)
	return nil
}

// token counts its hops and has the signatures of those who passed it on.
type token [2]uint64

const (
	hops = iota
	path
)

// sign depends on all earlier signatures.
func (t *token) sign(rank int) {
	t[hops]++
	t[path] = t[path]*0x9e3779b97f4a7c15 + uint64(rank) + 1
}

func (t *token) check(ranks, rounds int) error {
	var want token
	for range rounds {
		for hop := range ranks {
			want.sign((hop + 1) % ranks)
		}
	}
	if *t != want {
		return fmt.Errorf("%w: %d hops and path %016x, not %d and %016x", errToken, t[hops], t[path], want[hops], want[path])
	}
	return nil
}
