// Command tasks counts primes. No rank hands out the work: each one takes the next block of
// numbers from a counter in a window of rank 0, and adds its results to tables in the
// windows of all ranks, which take no part in that. The ranks of one machine also add up
// how much they have done, in memory that they share.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var errCount = errors.New("the primes were counted wrong")

func main() {
	limit := flag.Int("limit", 200_000, "count the primes below `n`")
	block := flag.Int("block", 500, "how many numbers a rank takes at a time")
	flag.Parse()
	if err := run(*limit, *block); err != nil {
		mpi.Abort(1, "tasks: "+err.Error())
	}
}

func run(limit, block int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	c := mpi.World()
	t, err := newTables(c)
	if err != nil {
		return err
	}
	mine, err := t.work(limit, block)
	if err != nil {
		return err
	}
	machine, err := together(c, int64(mine))
	if err != nil {
		return err
	}
	if err := t.report(limit, block, machine); err != nil {
		return err
	}
	if err := t.w.Free(); err != nil {
		return err
	}
	return mpi.Finalize()
}

// digits is how many tables there are: one for each last digit of a prime.
const digits = 10

// tables is a window: the number of the next block at rank 0, and at rank r the
// counts of the digits that are r modulo the number of ranks.
type tables struct {
	c   *mpi.Comm
	w   *mpi.Win
	mem []int64 // the next block, and a count for each digit
}

func newTables(c *mpi.Comm) (*tables, error) {
	t := &tables{c: c, mem: make([]int64, 1+digits)}
	var err error
	t.w, err = mpi.WinCreate(c, t.mem, nil)
	return t, err
}

func (t *tables) work(limit, block int) (blocks int, err error) {
	if err := t.w.LockAll(0); err != nil {
		return 0, err
	}
	for ; ; blocks++ {
		next := int64(0)
		if err := errors.Join(mpi.FetchAndOp(t.w, 1, &next, 0, 0, mpi.Sum), t.w.Flush(0)); err != nil {
			return blocks, err
		}
		first := int(next) * block
		if first >= limit {
			return blocks, t.w.UnlockAll()
		}
		if err := t.add(primes(first, min(first+block, limit))); err != nil {
			return blocks, err
		}
	}
}

// add adds counts to the tables. The operations are complete once UnlockAll has returned.
func (t *tables) add(found [digits]int64) error {
	for digit, n := range found {
		if n == 0 {
			continue
		}
		if err := mpi.Accumulate(t.w, []int64{n}, digit%t.c.Size(), int64(1+digit), mpi.Sum); err != nil {
			return err
		}
	}
	return t.w.FlushLocalAll()
}

func (t *tables) report(limit, block int, machine int64) error {
	var all [digits]int64
	if err := t.w.Fence(mpi.NoPrecede); err != nil {
		return err
	}
	if t.c.Rank() == 0 {
		for digit := range all {
			if err := mpi.Get(t.w, all[digit:digit+1], digit%t.c.Size(), int64(1+digit)); err != nil {
				return err
			}
		}
	}
	if err := t.w.Fence(mpi.NoSucceed); err != nil {
		return err
	}
	if t.c.Rank() != 0 {
		return nil
	}
	if want := primes(0, limit); all != want {
		return fmt.Errorf("%w: %v, not %v", errCount, all, want)
	}
	sum := int64(0)
	for _, n := range all {
		sum += n
	}
	fmt.Printf("tasks: %d primes below %d, counted by %d ranks in %d blocks, as it must be\n", sum, limit, t.c.Size(), (limit+block-1)/block)
	fmt.Printf("tasks: %d blocks on the machine of rank 0\n", machine)
	return nil
}

// together adds up one number of each rank on this machine, in shared memory.
func together(c *mpi.Comm, mine int64) (sum int64, err error) {
	near, err := c.SplitType(mpi.CommTypeShared, 0, nil)
	if err != nil {
		return 0, err
	}
	w, err := near.WinAllocateShared(8, 8, nil)
	if err != nil {
		return 0, err
	}
	if err := w.Fence(0); err != nil {
		return 0, err
	}
	store(w.Memory(), mine)
	if err := w.Fence(0); err != nil { // all have stored
		return 0, err
	}
	for rank := range near.Size() {
		mem, _, err := w.SharedQuery(rank)
		if err != nil {
			return 0, err
		}
		sum += load(mem)
	}
	return sum, errors.Join(w.Fence(mpi.NoSucceed), w.Free(), near.Free())
}
