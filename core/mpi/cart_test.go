package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpierr"
)

// A 2x3 grid of seven procs: one finds no place. Each row and column works as a
// communicator, and halos go round the periodic dimension only.
func TestCart(t *testing.T) {
	layout{procs: 7, client: func(r int) int { return r % 2 }}.run(t, func(t *testing.T, c *Comm) error {
		dims := []int{0, 0}
		if err := first(DimsCreate(6, dims), same("DimsCreate", dims, []int{3, 2})); err != nil {
			return err
		}
		g, err := c.CartCreate([]int{2, 3}, []bool{false, true}, false)
		if err != nil {
			return err
		}
		if c.Rank() == 6 {
			if g != nil {
				return errors.New("a place for the seventh")
			}
			return nil
		}
		return grid(g)
	})
}

func grid(g *Comm) error {
	dims, periodic, coords, err := g.CartGet()
	if err != nil {
		return err
	}
	row, column := g.Rank()/3, g.Rank()%3
	back, err := g.CartRank([]int{row, column - 3})
	if err := first(err, same("dims", dims, []int{2, 3}), same("periods", periodic, []bool{false, true}),
		same("coordinates", coords, []int{row, column}), expect("rank", back, g.Rank())); err != nil {
		return err
	}
	for dim, want := range []int{1 - row, (column + 2) % 3} {
		if err := shift(g, dim, want); err != nil {
			return err
		}
	}
	rows, err := g.CartSub([]bool{false, true})
	if err != nil {
		return err
	}
	sum := []int{g.Rank()}
	return first(Allreduce(rows, nil, sum, Sum), expect("sum of the row", sum[0], 9*row+3),
		expect("place in the row", rows.Rank(), column), expect("places", rows.Cart().Size(), 3))
}

// shift sends the own coordinate upwards along dim. want is what comes.
func shift(g *Comm, dim, want int) error {
	source, dest, err := g.CartShift(dim, 1)
	if err != nil {
		return err
	}
	_, _, coords, _ := g.CartGet()
	in := []int{-1}
	if _, err := Sendrecv(g, []int{coords[dim]}, dest, 0, in, source, 0); err != nil {
		return err
	}
	if source == ProcNull {
		want = -1
	}
	return expect(fmt.Sprintf("along %d", dim), in[0], want)
}

func TestCartFaults(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		_, tooLarge := c.CartCreate([]int{3}, []bool{false}, false)
		_, periods := c.CartCreate([]int{2}, nil, false)
		_, _, _, get := c.CartGet()
		_, rank := c.CartRank([]int{0})
		_, coords := c.CartCoords(0)
		_, _, shift := c.CartShift(0, 1)
		_, sub := c.CartSub([]bool{true})
		for name, f := range map[string]struct {
			err  error
			want error
		}{
			"too large": {tooLarge, comm.ErrDims}, "periods": {periods, comm.ErrDims},
			"get": {get, comm.ErrTopology}, "rank": {rank, comm.ErrTopology}, "coords": {coords, comm.ErrTopology},
			"shift": {shift, comm.ErrTopology}, "sub": {sub, comm.ErrTopology},
		} {
			if !errors.Is(f.err, f.want) || ErrorClass(f.err) != mpierr.Of(f.want) {
				return fmt.Errorf("%s: %v", name, f.err)
			}
		}
		return nil
	})
}

// The topology goes with a duplicate, and with nothing else.
func TestCartDup(t *testing.T) {
	layout{procs: 4}.run(t, func(t *testing.T, c *Comm) error {
		g, err := c.CartCreate([]int{2, 2}, []bool{true, true}, false)
		if err != nil {
			return err
		}
		d, err := g.Dup()
		if err != nil {
			return err
		}
		s, err := g.Split(0, 0)
		if err != nil {
			return err
		}
		coords, err := d.CartCoords(3)
		if s.Cart() != nil {
			return errors.New("a topology after Split")
		}
		return first(err, same("coordinates", coords, []int{1, 1}))
	})
}

// The sites' ranks are dealt out by turns. With reorder the members of each have
// rows of the grid of their own; the one who finds no place is the last of the last.
func TestCartReorder(t *testing.T) {
	twoSites(7).run(t, func(t *testing.T, c *Comm) error {
		mapped, err := c.CartMap([]int{2, 3}, []bool{false, false})
		if err != nil {
			return err
		}
		want := []int{0, 4, 1, 5, 2, Undefined, 3}[c.Rank()]
		g, err := c.CartCreate([]int{2, 3}, []bool{false, false}, true)
		if err != nil || g == nil {
			return first(err, expect("mapped", mapped, want), expect("rank", Undefined, want))
		}
		kept, err := g.CartCreate([]int{6}, []bool{false}, false)
		if err != nil {
			return err
		}
		n, err := g.CartdimGet()
		return first(err, expect("mapped", mapped, want), expect("rank", g.Rank(), want), expect("rank kept", kept.Rank(), want),
			expect("dimensions", n, 2), totals(g))
	})
}

// A grid of no dimensions has one place; so has each slice that keeps none.
func TestCartWithoutDimensions(t *testing.T) {
	twoSites(2).run(t, func(t *testing.T, c *Comm) error {
		g, err := c.CartCreate(nil, nil, false)
		if err != nil {
			return err
		}
		if (g != nil) != (c.Rank() == 0) {
			return fmt.Errorf("rank %d gets %v", c.Rank(), g)
		}
		line, err := c.CartCreate([]int{2}, []bool{true}, false)
		if err != nil {
			return err
		}
		point, err := line.CartSub([]bool{false})
		if err != nil {
			return err
		}
		for _, g := range []*Comm{g, point} {
			if g == nil {
				continue
			}
			n, err := g.CartdimGet()
			place, err2 := g.CartRank(nil)
			in := []int{}
			if err := first(err, err2, expect("size", g.Size(), 1), expect("dimensions", n, 0), expect("place", place, 0),
				NeighborAllgather(g, []int{1}, in)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestDimsCreateFaults(t *testing.T) {
	for name, dims := range map[string][]int{"negative": {-1, 0}, "indivisible": {4, 0}, "too few": {2, 2}} {
		if class := ErrorClass(DimsCreate(6, dims)); class != mpierr.Dims {
			t.Errorf("%s: class %v", name, class)
		}
	}
}
