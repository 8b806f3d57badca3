// Command ring3 divides the ranks among three groups that intercommunicators join to a
// ring. Each group makes its two intercommunicators in an order that avoids deadlock. A
// number is sent round the ring; each group adds its size to it.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var (
	errRanks  = errors.New("at least three ranks are needed")
	errNumber = errors.New("wrong number after the last round")
)

func main() {
	rounds := flag.Int("rounds", 20, "how often the number goes round")
	flag.Parse()
	if err := run(*rounds); err != nil {
		mpi.Abort(1, "ring3: "+err.Error())
	}
}

func run(rounds int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	if world.Size() < 3 {
		return fmt.Errorf("%w, there are %d", errRanks, world.Size())
	}
	mine := world.Rank() % 3 // the leader of group k has rank k in the world
	own, err := world.Split(mine, world.Rank())
	if err != nil {
		return err
	}
	var others [3]*mpi.Comm
	for other := range 3 { // ascending: 0 with 1, then 0 with 2, then 1 with 2
		if other == mine {
			continue
		}
		if others[other], err = own.IntercommCreate(0, world, other, tag(mine, other)); err != nil {
			return err
		}
	}
	number, err := turn(own, others[(mine+2)%3], others[(mine+1)%3], mine == 0, rounds)
	if err != nil {
		return err
	}
	if world.Rank() == 0 {
		if want := rounds * world.Size(); number != want {
			return fmt.Errorf("%w: %d, want %d", errNumber, number, want)
		}
		fmt.Printf("ring3: %d rounds through three groups of %d ranks: %d, as it must be\n", rounds, world.Size(), number)
	}
	return errors.Join(others[(mine+1)%3].Free(), others[(mine+2)%3].Free(), own.Free(), mpi.Finalize())
}

func tag(a, b int) int {
	switch min(a, b)*10 + max(a, b) {
	case 1:
		return 1
	case 2:
		return 2
	default:
		return 12
	}
}

// turn passes the number on, rounds times. The first group begins, and has the
// result.
func turn(own, before, next *mpi.Comm, begins bool, rounds int) (int, error) {
	number := []int{0}
	send := func() error {
		number[0] += own.Size()
		root := mpi.ProcNull
		if own.Rank() == 0 {
			root = mpi.Root
		}
		return mpi.Bcast(next, number, root)
	}
	for range rounds {
		if begins {
			if err := send(); err != nil {
				return 0, err
			}
		}
		if err := mpi.Bcast(before, number, 0); err != nil {
			return 0, err
		}
		if !begins {
			if err := send(); err != nil {
				return 0, err
			}
		}
	}
	return number[0], nil
}
