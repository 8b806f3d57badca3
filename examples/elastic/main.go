// Command elastic counts primes with a team of procs that grows and shrinks while it works.
// New procs are spawned and merged with the team; procs that leave are left out by Split,
// and end once all have disconnected from the old team.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

var errCount = errors.New("wrong number of primes")

// plan has the size of the team for each block of numbers. It begins and ends with the
// procs of the job.
var plan = []int{2, 4, 6, 3, 5, 2}

const (
	block  = 20_000
	primes = 11_301 // below len(plan)*block
)

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "elastic: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	team, err := join()
	if err != nil {
		return err
	}
	state := []int64{0, 0} // the next block, and the sum so far; new procs get it from rank 0
	for team != nil {
		if err := mpi.Bcast(team, state, 0); err != nil {
			return err
		}
		if err := count(team, state); err != nil {
			return err
		}
		next := int(state[0])
		if next == len(plan) {
			if err := report(team, state[1]); err != nil {
				return err
			}
			break
		}
		if team, err = resize(team, plan[next]); err != nil {
			return err
		}
	}
	return mpi.Finalize()
}

// join returns the team as this proc enters it: the parents' team with the spawned procs,
// or the world.
func join() (*mpi.Comm, error) {
	if parent := mpi.Parent(); parent != nil {
		return merge(parent, true)
	}
	return mpi.World().Dup()
}

// merge makes one team of the old members, which come first, and the new ones.
func merge(inter *mpi.Comm, newcomer bool) (*mpi.Comm, error) {
	team, err := inter.Merge(newcomer)
	return team, errors.Join(err, inter.Disconnect())
}

// resize returns a team of that size; nil on procs that do not belong to it.
func resize(team *mpi.Comm, size int) (*mpi.Comm, error) {
	switch n := team.Size(); {
	case n < size:
		return grow(team, size-n)
	case n > size:
		return shrink(team, size)
	}
	return team, nil
}

func grow(team *mpi.Comm, n int) (*mpi.Comm, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	newcomers, _, err := team.Spawn(mpi.Command{Path: self, Procs: n}, 0)
	if err != nil {
		return nil, err
	}
	more, err := merge(newcomers, false)
	return more, errors.Join(err, team.Disconnect())
}

func shrink(team *mpi.Comm, size int) (*mpi.Comm, error) {
	color := 0
	if team.Rank() >= size {
		color = mpi.Undefined
	}
	rest, err := team.Split(color, 0)
	return rest, errors.Join(err, team.Disconnect())
}

func count(team *mpi.Comm, state []int64) error {
	n := []int64{0}
	for i := int(state[0])*block + team.Rank(); i < int(state[0]+1)*block; i += team.Size() {
		if prime(i) {
			n[0]++
		}
	}
	sum := []int64{0}
	if err := mpi.Allreduce(team, n, sum, mpi.Sum); err != nil {
		return err
	}
	if team.Rank() == 0 {
		fmt.Printf("elastic: block %d: %d primes, counted by %d ranks\n", state[0], sum[0], team.Size())
	}
	state[0], state[1] = state[0]+1, state[1]+sum[0]
	return nil
}

func prime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

func report(team *mpi.Comm, sum int64) error {
	if sum != primes {
		return fmt.Errorf("%w: %d, want %d", errCount, sum, primes)
	}
	if team.Rank() == 0 {
		fmt.Printf("elastic: %d primes below %d, counted by teams of %v ranks, as it must be\n", sum, len(plan)*block, plan)
	}
	return team.Disconnect()
}
