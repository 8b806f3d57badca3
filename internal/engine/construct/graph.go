package construct

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Results of TopoTest (MPI-4.1, 8.5.5), with the values of the MPI ABI; Undefined is no topology.
const (
	Cart      = 211 // CartCreate, CartSub
	Graph     = 212 // GraphCreate
	DistGraph = 213 // DistGraphCreate, DistGraphCreateAdjacent
)

// TopoTest returns the kind of topology that c has (MPI-4.1, 8.5.5).
func TopoTest(c *proc.Comm) (int, error) {
	if err := c.Usable(); err != nil {
		return proc.Undefined, err
	}
	switch c.Topology().(type) {
	case *comm.Cart:
		return Cart, nil
	case *comm.Graph:
		return Graph, nil
	case *comm.DistGraph:
		return DistGraph, nil
	}
	return proc.Undefined, nil
}

// GraphCreate makes a communicator with a graph that all members pass alike (MPI-4.1, 8.5.3).
func GraphCreate(c *proc.Comm, index, edges []int, reorder bool) (*proc.Comm, error) {
	g, err := newGraph(c, index, edges)
	if err != nil {
		return nil, err
	}
	return arrange(c, g, g.Size(), false)
}

func newGraph(c *proc.Comm, index, edges []int) (*comm.Graph, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	return comm.NewGraph(index, edges, c.Size())
}

// GraphMap returns the rank that this member would have in such a graph, or Undefined (MPI-4.1,
// 8.5.8).
func GraphMap(c *proc.Comm, index, edges []int) (int, error) {
	g, err := newGraph(c, index, edges)
	if err != nil {
		return proc.Undefined, err
	}
	return place(c, g.Size(), false)
}

func graph(c *proc.Comm) (*comm.Graph, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	g, ok := c.Topology().(*comm.Graph)
	if !ok {
		return nil, fmt.Errorf("%w: the communicator is not of GraphCreate", comm.ErrTopology)
	}
	return g, nil
}

func GraphdimsGet(c *proc.Comm) (nodes, edges int, err error) {
	g, err := graph(c)
	if err != nil {
		return 0, 0, err
	}
	return g.Size(), len(g.Edges()), nil
}

func GraphGet(c *proc.Comm) (index, edges []int, err error) {
	g, err := graph(c)
	if err != nil {
		return nil, nil, err
	}
	return g.Index(), g.Edges(), nil
}

func GraphNeighborsCount(c *proc.Comm, rank int) (int, error) {
	list, err := graphNeighbors(c, rank)
	return len(list), err
}

func GraphNeighbors(c *proc.Comm, rank int) ([]int, error) {
	list, err := graphNeighbors(c, rank)
	return slices.Clone(list), err
}

func graphNeighbors(c *proc.Comm, rank int) ([]int, error) {
	g, err := graph(c)
	if err != nil {
		return nil, err
	}
	return g.Of(rank)
}
