package construct

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
)

// CartCreate makes a communicator with a Cartesian topology (MPI-4.1, 8.5.1). Members that the grid
// has no room for get nil.
func CartCreate(c *proc.Comm, dims []int, periodic []bool, reorder bool) (*proc.Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	cart, err := comm.NewCart(dims, periodic, c.Size())
	if err != nil {
		return nil, err
	}
	return arrange(c, cart, cart.Size(), reorder)
}

func arrange(c *proc.Comm, t comm.Topology, n int, reorder bool) (*proc.Comm, error) {
	group, err := placed(c, n, reorder)
	if err != nil {
		return nil, err
	}
	var s comm.Spec
	if _, ok := group.Rank(c.Self()); ok {
		s.Group, s.Topology = group, t
	}
	return Derive(c, s, nil)
}

// placed returns the n members of c that get a place, in order. With reorder the members of one
// site follow each other, if all run this library.
func placed(c *proc.Comm, n int, reorder bool) (*comm.Group, error) {
	ranks, m := comm.NewGroup(0, c.Size()), c.Masters()
	if reorder && m.Count() > 1 && AllRunImpi(c) {
		ranks = comm.Empty
		for i := range m.Count() {
			ranks = ranks.Union(m.Locals(i))
		}
	}
	if n == 0 {
		return comm.Empty, nil
	}
	ranks, err := ranks.RangeIncl([]comm.Range{{First: 0, Last: n - 1, Stride: 1}})
	if err != nil {
		return nil, err
	}
	return c.Comm.Group().Select(ranks)
}

// CartMap returns the rank that this member would have in such a grid, or Undefined (MPI-4.1,
// 8.5.8).
func CartMap(c *proc.Comm, dims []int, periodic []bool) (int, error) {
	if err := CheckIntra(c); err != nil {
		return proc.Undefined, err
	}
	cart, err := comm.NewCart(dims, periodic, c.Size())
	if err != nil {
		return proc.Undefined, err
	}
	return place(c, cart.Size(), true)
}

func place(c *proc.Comm, n int, reorder bool) (int, error) {
	group, err := placed(c, n, reorder)
	if err != nil {
		return proc.Undefined, err
	}
	if rank, ok := group.Rank(c.Self()); ok {
		return rank, nil
	}
	return proc.Undefined, nil
}

func grid(c *proc.Comm) (*comm.Cart, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	if c.Cart() == nil {
		return nil, fmt.Errorf("%w: the communicator is not Cartesian", comm.ErrTopology)
	}
	return c.Cart(), nil
}

func CartGet(c *proc.Comm) (dims []int, periodic []bool, coords []int, err error) {
	g, err := grid(c)
	if err != nil {
		return nil, nil, nil, err
	}
	coords, err = g.Coords(c.Rank())
	return g.Dims(), g.Periodic(), coords, err
}

func CartdimGet(c *proc.Comm) (int, error) {
	g, err := grid(c)
	if err != nil {
		return 0, err
	}
	return len(g.Dims()), nil
}

func CartCoords(c *proc.Comm, rank int) ([]int, error) {
	g, err := grid(c)
	if err != nil {
		return nil, err
	}
	return g.Coords(rank)
}

func CartRank(c *proc.Comm, coords []int) (int, error) {
	g, err := grid(c)
	if err != nil {
		return 0, err
	}
	return g.Rank(coords)
}

// CartShift returns the ranks to receive from and to send to for a shift by disp; ProcNull is
// beyond the border of a dimension that is not periodic (MPI-4.1, 8.5.6).
func CartShift(c *proc.Comm, dim, disp int) (source, dest int, err error) {
	g, err := grid(c)
	if err != nil {
		return 0, 0, err
	}
	return g.Shift(c.Rank(), dim, disp)
}

// CartSub makes a communicator of the part of the grid that this member is in, with the dimensions
// to keep (MPI-4.1, 8.5.7).
func CartSub(c *proc.Comm, keep []bool) (*proc.Comm, error) {
	g, err := grid(c)
	if err != nil {
		return nil, err
	}
	sub, mine, _, err := g.Sub(c.Rank(), keep)
	if err != nil {
		return nil, err
	}
	ranks := make([]int, 0, sub.Size()) // ascending ranks are ascending places
	for r := range g.Size() {
		if _, color, _, err := g.Sub(r, keep); err != nil {
			return nil, err
		} else if color == mine {
			ranks = append(ranks, r)
		}
	}
	group, err := c.Comm.Group().Incl(ranks)
	if err != nil {
		return nil, err
	}
	return Derive(c, comm.Spec{Group: group, Topology: sub}, nil)
}
