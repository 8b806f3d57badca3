package mpi

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/coll"
)

// Members of one host that call different constructors hear of it there and then, without
// IMPI_CHECK, and go on.
func TestDifferentConstructorsOnTheBoard(t *testing.T) {
	onlyBoards(t)
	layout{procs: 3}.run(t, func(t *testing.T, c *Comm) error {
		calls := []func() (*Comm, error){c.Dup, func() (*Comm, error) { return c.Split(0, 0) }, func() (*Comm, error) { return c.Split(0, -c.Rank()) }}
		for odd := range c.Size() {
			for a := range calls {
				for b := range calls {
					call := calls[a]
					if c.Rank() == odd {
						call = calls[b]
					}
					d, err := call()
					if differ := (a == 0) != (b == 0); errors.Is(err, coll.ErrMismatch) != differ || !differ && err != nil {
						return fmt.Errorf("rank %d calls %d, the others %d: %v", odd, b, a, err)
					}
					if err != nil {
						continue
					}
					if err := d.Free(); err != nil {
						return err
					}
				}
			}
		}
		d, err := c.Split(0, -c.Rank())
		return first(err, talks(c, d, 2, 1, 0))
	})
}

// Members of one host get each other's choices from the board, a wrong argument of one is an error
// of all, and messages in the new communicators are apart from those in the old one.
func TestSplitOnTheBoard(t *testing.T) {
	onlyBoards(t)
	const n = 6
	layout{procs: n}.run(t, func(t *testing.T, c *Comm) error {
		for round := range 20 {
			colors, keys := make([]int, n), make([]int, n)
			for r := range n {
				colors[r], keys[r] = (r*5+round)%3, (r*r+round*7)%4-2
			}
			colors[round%n] = Undefined
			d, err := c.Split(colors[c.Rank()], keys[c.Rank()])
			if err != nil {
				return err
			}
			var want []int
			for r := range n {
				if colors[r] >= 0 && colors[r] == colors[c.Rank()] {
					want = append(want, r)
				}
			}
			slices.SortStableFunc(want, func(a, b int) int { return keys[a] - keys[b] })
			if d != nil || len(want) > 0 {
				if err := errors.Join(talks(c, d, want...), d.Free()); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			color := 0
			if c.Rank() == round%n {
				color = math.MinInt32
			}
			if _, err := c.Split(color, 0); err == nil {
				return fmt.Errorf("round %d: no error for colour %d of rank %d", round, math.MinInt32, round%n)
			}
		}
		return nil
	})
}

// Constructors on the board take little memory besides that of the communicators.
func TestConstructorsAllocateLittle(t *testing.T) {
	onlyBoards(t)
	const warm, rounds = 20, 200
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) (err error) {
		for _, x := range []struct {
			name string
			make func() (*Comm, error)
			most float64 // of both procs
		}{
			{"Dup", c.Dup, 4},
			{"Split", func() (*Comm, error) { return c.Split(c.Rank(), 0) }, 8},
		} {
			once := func() {
				d, e := x.make()
				err = first(err, e, d.Free())
			}
			for range warm {
				once()
			}
			if c.Rank() == 1 {
				for range rounds + 1 { // AllocsPerRun calls it once more
					once()
				}
			} else if n := testing.AllocsPerRun(rounds, once); n > x.most {
				t.Errorf("%s: %v allocations, at most %v are expected", x.name, n, x.most)
			}
		}
		return err
	})
}
