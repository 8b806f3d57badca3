package mpi

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/comm"
)

// What TopoTest tells, with the values of the MPI ABI; Undefined is no topology.
const (
	Cart      = 211 // CartCreate, CartSub
	Graph     = 212 // GraphCreate
	DistGraph = 213 // DistGraphCreate, DistGraphCreateAdjacent
)

// TopoTest tells what topology c has. Duplicates have that of the original; other
// constructors and intercommunicators have none.
func (c *Comm) TopoTest() (int, error) {
	if err := c.check(); err != nil {
		return Undefined, c.failed("TopoTest", err)
	}
	switch c.Topology().(type) {
	case *comm.Cart:
		return Cart, nil
	case *comm.Graph:
		return Graph, nil
	case *comm.DistGraph:
		return DistGraph, nil
	}
	return Undefined, nil
}

// GraphCreate makes a communicator whose members are nodes of a graph: those of
// ranks below len(index), in their order; others get nil. The neighbours of node i
// are those of edges from index[i-1], or 0, to before index[i]. All members of c
// call it with the same graph. reorder allows ranks to change, which they do not.
func (c *Comm) GraphCreate(index, edges []int, reorder bool) (*Comm, error) {
	g, err := c.newGraph(index, edges)
	if err != nil {
		return nil, c.failed("GraphCreate", err)
	}
	d, err := c.arrange(g, g.Size(), false)
	return d, c.failed("GraphCreate", err)
}

func (c *Comm) newGraph(index, edges []int) (*comm.Graph, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	return comm.NewGraph(index, edges, c.Size())
}

// GraphMap gives the rank that the caller would have after GraphCreate with
// reorder, or Undefined if it would be no node. Nobody else needs to call it.
func (c *Comm) GraphMap(index, edges []int) (int, error) {
	g, err := c.newGraph(index, edges)
	if err != nil {
		return Undefined, c.failed("GraphMap", err)
	}
	rank, err := c.place(g.Size(), false)
	return rank, c.failed("GraphMap", err)
}

// graph gives the topology of c.
func (c *Comm) graph() (*comm.Graph, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g, ok := c.Topology().(*comm.Graph)
	if !ok {
		return nil, fmt.Errorf("%w: the communicator is not of GraphCreate", comm.ErrTopology)
	}
	return g, nil
}

// GraphdimsGet gives the numbers of nodes and of edges.
func (c *Comm) GraphdimsGet() (nodes, edges int, err error) {
	g, err := c.graph()
	if err != nil {
		return 0, 0, c.failed("GraphdimsGet", err)
	}
	return g.Size(), len(g.Edges()), nil
}

// GraphGet gives the graph as GraphCreate was given it.
func (c *Comm) GraphGet() (index, edges []int, err error) {
	g, err := c.graph()
	if err != nil {
		return nil, nil, c.failed("GraphGet", err)
	}
	return g.Index(), g.Edges(), nil
}

// GraphNeighborsCount gives the number of neighbours of a rank.
func (c *Comm) GraphNeighborsCount(rank int) (int, error) {
	list, err := c.graphNeighbors(rank)
	return len(list), c.failed("GraphNeighborsCount", err)
}

// GraphNeighbors gives the neighbours of a rank.
func (c *Comm) GraphNeighbors(rank int) ([]int, error) {
	list, err := c.graphNeighbors(rank)
	return slices.Clone(list), c.failed("GraphNeighbors", err)
}

func (c *Comm) graphNeighbors(rank int) ([]int, error) {
	g, err := c.graph()
	if err != nil {
		return nil, err
	}
	return g.Of(rank)
}
