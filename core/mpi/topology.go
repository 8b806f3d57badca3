package mpi

import "github.com/openimpi/impi/internal/engine/construct"

// DimsCreate replaces the zeros of dims by factors, largest first and as close
// to each other as can be, so that the product of all is n.
func DimsCreate(n int, dims []int) error { return construct.DimsCreate(n, dims) }

// CartCreate makes a communicator whose ranks are places of a grid: dims are its
// sizes, periodic says which dimensions close to a ring. Ranks go in row-major
// order. All members of c call it; those that find no place get nil. reorder
// allows ranks to change: members of one site then follow each other, so that
// they get slabs of the grid, and few neighbours are of different sites.
func (c *Comm) CartCreate(dims []int, periodic []bool, reorder bool) (*Comm, error) {
	return outComm(construct.CartCreate(c.in(), dims, periodic, reorder))
}

// CartMap gives the rank that the caller would have after CartCreate with
// reorder, or Undefined if it would find no place. Nobody else needs to call it.
func (c *Comm) CartMap(dims []int, periodic []bool) (int, error) {
	return construct.CartMap(c.in(), dims, periodic)
}

// CartGet gives the sizes, the periods and the caller's coordinates.
func (c *Comm) CartGet() (dims []int, periodic []bool, coords []int, err error) {
	return construct.CartGet(c.in())
}

// CartdimGet gives the number of dimensions.
func (c *Comm) CartdimGet() (int, error) { return construct.CartdimGet(c.in()) }

// CartCoords gives the coordinates of a rank.
func (c *Comm) CartCoords(rank int) ([]int, error) { return construct.CartCoords(c.in(), rank) }

// CartRank gives the rank at coordinates, which wrap in periodic dimensions.
func (c *Comm) CartRank(coords []int) (int, error) { return construct.CartRank(c.in(), coords) }

// CartShift gives the caller's partners for moving data by disp along a
// dimension: the rank to receive from and the rank to send to. Beyond an open
// edge it is ProcNull, with which sends and receives do nothing.
func (c *Comm) CartShift(dim, disp int) (source, dest int, err error) {
	return construct.CartShift(c.in(), dim, disp)
}

// CartSub makes a communicator of each slice of the grid, a grid of the
// dimensions that keep says. All members of c call it.
func (c *Comm) CartSub(keep []bool) (*Comm, error) { return outComm(construct.CartSub(c.in(), keep)) }

// What TopoTest tells, with the values of the MPI ABI; Undefined is no topology.
const (
	Cart      = construct.Cart      // CartCreate, CartSub
	Graph     = construct.Graph     // GraphCreate
	DistGraph = construct.DistGraph // DistGraphCreate, DistGraphCreateAdjacent
)

// TopoTest tells what topology c has. Duplicates have that of the original; other
// constructors and intercommunicators have none.
func (c *Comm) TopoTest() (int, error) { return construct.TopoTest(c.in()) }

// GraphCreate makes a communicator whose members are nodes of a graph: those of
// ranks below len(index), in their order; others get nil. The neighbours of node i
// are those of edges from index[i-1], or 0, to before index[i]. All members of c
// call it with the same graph. reorder allows ranks to change, which they do not.
func (c *Comm) GraphCreate(index, edges []int, reorder bool) (*Comm, error) {
	return outComm(construct.GraphCreate(c.in(), index, edges, reorder))
}

// GraphMap gives the rank that the caller would have after GraphCreate with
// reorder, or Undefined if it would be no node. Nobody else needs to call it.
func (c *Comm) GraphMap(index, edges []int) (int, error) {
	return construct.GraphMap(c.in(), index, edges)
}

// GraphdimsGet gives the numbers of nodes and of edges.
func (c *Comm) GraphdimsGet() (nodes, edges int, err error) { return construct.GraphdimsGet(c.in()) }

// GraphGet gives the graph as GraphCreate was given it.
func (c *Comm) GraphGet() (index, edges []int, err error) { return construct.GraphGet(c.in()) }

// GraphNeighborsCount gives the number of neighbours of a rank.
func (c *Comm) GraphNeighborsCount(rank int) (int, error) {
	return construct.GraphNeighborsCount(c.in(), rank)
}

// GraphNeighbors gives the neighbours of a rank.
func (c *Comm) GraphNeighbors(rank int) ([]int, error) { return construct.GraphNeighbors(c.in(), rank) }

// Weights of edges of distributed graphs. All members give weights or none does.
var (
	// Unweighted stands for weights where edges have none.
	Unweighted = construct.Unweighted
	// WeightsEmpty are those of no edges in a graph whose edges have weights.
	WeightsEmpty = construct.WeightsEmpty
)

// DistGraphCreateAdjacent makes a communicator of the members of c, each of which
// gives the neighbours that it receives from (sources) and those that it sends to
// (dests), with their weights or Unweighted. What one gives as a destination the
// other must give as a source, as often. Each keeps its own neighbours only. All
// members of c call it; info are hints, nil has none. reorder allows ranks to
// change, which they do not.
func (c *Comm) DistGraphCreateAdjacent(sources, sourceWeights, dests, destWeights []int, info *Info, reorder bool) (*Comm, error) {
	return outComm(construct.DistGraphCreateAdjacent(c.in(), sources, sourceWeights, dests, destWeights, info.in(), reorder))
}

// DistGraphCreate makes a communicator of the members of c, each of which gives
// any edges of the graph: degrees[i] of them lead from sources[i], to the next of
// dests, with the weights or Unweighted. Afterwards each knows its own neighbours,
// and nothing else. All members of c call it; info are hints, nil has none.
// reorder allows ranks to change, which they do not.
func (c *Comm) DistGraphCreate(sources, degrees, dests, weights []int, info *Info, reorder bool) (*Comm, error) {
	return outComm(construct.DistGraphCreate(c.in(), sources, degrees, dests, weights, info.in(), reorder))
}

// DistGraphNeighborsCount gives how many neighbours the caller receives from and
// sends to, and whether edges have weights.
func (c *Comm) DistGraphNeighborsCount() (in, out int, weighted bool, err error) {
	return construct.DistGraphNeighborsCount(c.in())
}

// DistGraphNeighbors gives the neighbours that the caller receives from and those
// that it sends to, with their weights; those are nil where edges have none.
func (c *Comm) DistGraphNeighbors() (sources, sourceWeights, dests, destWeights []int, err error) {
	return construct.DistGraphNeighbors(c.in())
}
