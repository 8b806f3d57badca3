package comm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrGraph is wrapped by the errors for arguments that do not describe a graph.
var ErrGraph = errors.New("invalid graph")

// Graph is a topology in which every process knows all neighbours of all ranks (MPI-4.1, 8.5.3). It
// is immutable.
type Graph struct {
	index, edges []int
	lopsided     error // reason why it cannot have neighbourhood collectives, or nil
}

// NewGraph makes a topology of at most size processes. The neighbours of rank i are
// edges[index[i-1]:index[i]], where index[-1] counts as 0. A rank may be a neighbour
// several times, and its own neighbour. The error is ErrGraph if there are more ranks than
// processes, the index does not fit the edges, or an edge leads to no rank.
func NewGraph(index, edges []int, size int) (*Graph, error) {
	if len(index) > size {
		return nil, fmt.Errorf("comm: %w: %d nodes for %d processes", ErrGraph, len(index), size)
	}
	last := 0
	for i, end := range index {
		if end < last {
			return nil, fmt.Errorf("comm: %w: the edges of node %d end at %d, before they begin", ErrGraph, i, end)
		}
		last = end
	}
	if last != len(edges) {
		return nil, fmt.Errorf("comm: %w: the index ends at %d, there are %d edges", ErrGraph, last, len(edges))
	}
	for i, e := range edges {
		if uint(e) >= uint(len(index)) {
			return nil, fmt.Errorf("comm: %w: edge %d leads to node %d of %d", ErrGraph, i, e, len(index))
		}
	}
	g := &Graph{index: slices.Clone(index), edges: slices.Clone(edges)}
	g.lopsided = g.balance()
	return g, nil
}

// Size returns the number of nodes: the ranks below it are in the topology.
func (g *Graph) Size() int { return len(g.index) }

// Index returns a copy of the ends of each node's edges, as indexes in Edges.
func (g *Graph) Index() []int { return slices.Clone(g.index) }

// Edges returns a copy of the neighbours of all ranks, rank after rank; Index has where those of
// each rank end.
func (g *Graph) Edges() []int { return slices.Clone(g.edges) }

// Of returns the neighbours of a rank. The caller must not change them.
func (g *Graph) Of(rank int) ([]int, error) {
	if uint(rank) >= uint(len(g.index)) {
		return nil, fmt.Errorf("comm: %w: %d, the graph has %d nodes", ErrRank, rank, len(g.index))
	}
	return g.of(rank), nil
}

func (g *Graph) of(rank int) []int {
	from, to := 0, g.index[rank]
	if rank > 0 {
		from = g.index[rank-1]
	}
	return g.edges[from:to:to]
}

// Neighbours returns the same ranks for both directions. If there are more edges from one rank to
// another than back, no messages could be matched (MPI-4.1, 8.6), and all members get the same
// error.
func (g *Graph) Neighbours(rank int) (Neighbours, error) {
	all, err := g.Of(rank)
	if err != nil {
		return Neighbours{}, err
	}
	return Neighbours{In: all, Out: all}, g.lopsided
}

// balance returns an error unless each edge has an edge back.
func (g *Graph) balance() error {
	type edge struct{ from, to int }
	there, back := make([]edge, 0, len(g.edges)), make([]edge, 0, len(g.edges))
	for i := range g.index {
		for _, e := range g.of(i) {
			there, back = append(there, edge{i, e}), append(back, edge{e, i})
		}
	}
	order := func(a, b edge) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }
	slices.SortFunc(there, order)
	slices.SortFunc(back, order)
	for i, e := range there {
		if r := back[i]; e != r {
			if order(r, e) < 0 {
				e = r
			}
			return fmt.Errorf("comm: %w: the graph has not as many edges from node %d to %d as back", ErrTopology, e.from, e.to)
		}
	}
	return nil
}
