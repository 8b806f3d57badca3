package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
)

// DimsCreate replaces the zeros of dims by factors, largest first and as close
// to each other as can be, so that the product of all is n.
func DimsCreate(n int, dims []int) error {
	return failed("DimsCreate", comm.DimsCreate(n, dims))
}

// CartCreate makes a communicator whose ranks are places of a grid: dims are its
// sizes, periodic says which dimensions close to a ring. Ranks go in row-major
// order. All members of c call it; those that find no place get nil. reorder
// allows ranks to change: members of one site then follow each other, so that
// they get slabs of the grid, and few neighbours are of different sites.
func (c *Comm) CartCreate(dims []int, periodic []bool, reorder bool) (*Comm, error) {
	d, err := c.cartCreate(dims, periodic, reorder)
	return d, c.failed("CartCreate", err)
}

func (c *Comm) cartCreate(dims []int, periodic []bool, reorder bool) (*Comm, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	cart, err := comm.NewCart(dims, periodic, c.Size())
	if err != nil {
		return nil, err
	}
	return c.arrange(cart, cart.Size(), reorder)
}

// arrange makes a communicator of n members of c, with a topology.
func (c *Comm) arrange(t comm.Topology, n int, reorder bool) (*Comm, error) {
	group, err := c.placed(n, reorder)
	if err != nil {
		return nil, err
	}
	var s comm.Spec
	if _, ok := group.Rank(c.Self()); ok {
		s.Group, s.Topology = group, t
	}
	return c.derive(s, nil)
}

// placed gives the n members of c that find a place, in order. With reorder those
// of one site follow each other. Members that run another MPI would not know.
func (c *Comm) placed(n int, reorder bool) (*comm.Group, error) {
	ranks, m := comm.NewGroup(0, c.Size()), c.Masters()
	if reorder && m.Count() > 1 && c.ours() {
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

// CartMap gives the rank that the caller would have after CartCreate with
// reorder, or Undefined if it would find no place. Nobody else needs to call it.
func (c *Comm) CartMap(dims []int, periodic []bool) (int, error) {
	rank, err := c.cartMap(dims, periodic)
	return rank, c.failed("CartMap", err)
}

func (c *Comm) cartMap(dims []int, periodic []bool) (int, error) {
	if err := c.checkIntra(); err != nil {
		return Undefined, err
	}
	cart, err := comm.NewCart(dims, periodic, c.Size())
	if err != nil {
		return Undefined, err
	}
	return c.place(cart.Size(), true)
}

// place is the caller's rank among the n members that find a place.
func (c *Comm) place(n int, reorder bool) (int, error) {
	group, err := c.placed(n, reorder)
	if err != nil {
		return Undefined, err
	}
	if rank, ok := group.Rank(c.Self()); ok {
		return rank, nil
	}
	return Undefined, nil
}

// grid gives the topology of c.
func (c *Comm) grid() (*comm.Cart, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Cart() == nil {
		return nil, fmt.Errorf("%w: the communicator is not Cartesian", comm.ErrTopology)
	}
	return c.Cart(), nil
}

// CartGet gives the sizes, the periods and the caller's coordinates.
func (c *Comm) CartGet() (dims []int, periodic []bool, coords []int, err error) {
	g, err := c.grid()
	if err != nil {
		return nil, nil, nil, c.failed("CartGet", err)
	}
	coords, err = g.Coords(c.Rank())
	return g.Dims(), g.Periodic(), coords, c.failed("CartGet", err)
}

// CartdimGet gives the number of dimensions.
func (c *Comm) CartdimGet() (int, error) {
	g, err := c.grid()
	if err != nil {
		return 0, c.failed("CartdimGet", err)
	}
	return len(g.Dims()), nil
}

// CartCoords gives the coordinates of a rank.
func (c *Comm) CartCoords(rank int) ([]int, error) {
	g, err := c.grid()
	if err != nil {
		return nil, c.failed("CartCoords", err)
	}
	coords, err := g.Coords(rank)
	return coords, c.failed("CartCoords", err)
}

// CartRank gives the rank at coordinates, which wrap in periodic dimensions.
func (c *Comm) CartRank(coords []int) (int, error) {
	g, err := c.grid()
	if err != nil {
		return 0, c.failed("CartRank", err)
	}
	rank, err := g.Rank(coords)
	return rank, c.failed("CartRank", err)
}

// CartShift gives the caller's partners for moving data by disp along a
// dimension: the rank to receive from and the rank to send to. Beyond an open
// edge it is ProcNull, with which sends and receives do nothing.
func (c *Comm) CartShift(dim, disp int) (source, dest int, err error) {
	g, err := c.grid()
	if err != nil {
		return 0, 0, c.failed("CartShift", err)
	}
	source, dest, err = g.Shift(c.Rank(), dim, disp)
	return source, dest, c.failed("CartShift", err)
}

// CartSub makes a communicator of each slice of the grid, a grid of the
// dimensions that keep says. All members of c call it.
func (c *Comm) CartSub(keep []bool) (*Comm, error) {
	d, err := c.cartSub(keep)
	return d, c.failed("CartSub", err)
}

func (c *Comm) cartSub(keep []bool) (*Comm, error) {
	g, err := c.grid()
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
	return c.derive(comm.Spec{Group: group, Topology: sub}, nil)
}
