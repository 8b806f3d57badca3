package comm

import (
	"fmt"
	"slices"
)

// DistGraph is a topology of which each process knows its own neighbours only (MPI-4.1, 8.5.4). It
// is immutable.
type DistGraph struct {
	in, out   []int
	inw, outw []int
	weighted  bool
}

// Adjacent are the neighbours of one process: the ranks that edges come from and lead to.
// Weights belong to them; nil weights mean that the graph has none, or that there are no
// edges in this direction.
type Adjacent struct {
	Sources, SourceWeights []int
	Dests, DestWeights     []int
}

// NewDistGraph returns a topology of size processes. The error is ErrRank if a neighbour is not one
// of them, and ErrGraph if weights are negative, too few, or given for one direction only.
func NewDistGraph(a Adjacent, size int) (*DistGraph, error) {
	if err := checkEdges("sources", a.Sources, a.SourceWeights, size); err != nil {
		return nil, err
	}
	if err := checkEdges("destinations", a.Dests, a.DestWeights, size); err != nil {
		return nil, err
	}
	in, out := a.SourceWeights != nil, a.DestWeights != nil
	if in && !out && len(a.Dests) > 0 || out && !in && len(a.Sources) > 0 {
		return nil, fmt.Errorf("comm: %w: weights of one direction only", ErrGraph)
	}
	return &DistGraph{
		in: slices.Clone(a.Sources), inw: slices.Clone(a.SourceWeights),
		out: slices.Clone(a.Dests), outw: slices.Clone(a.DestWeights),
		weighted: in || out,
	}, nil
}

func checkEdges(what string, ranks, weights []int, size int) error {
	for i, r := range ranks {
		if uint(r) >= uint(size) {
			return fmt.Errorf("comm: %w: %d at %d of the %s, the communicator has %d members", ErrRank, r, i, what, size)
		}
	}
	return checkWeights(what, weights, len(ranks))
}

func checkWeights(what string, weights []int, n int) error {
	if weights != nil && len(weights) != n {
		return fmt.Errorf("comm: %w: %d weights for %d %s", ErrGraph, len(weights), n, what)
	}
	for i, w := range weights {
		if w < 0 {
			return fmt.Errorf("comm: %w: weight %d at %d of the %s", ErrGraph, w, i, what)
		}
	}
	return nil
}

// Weighted reports whether the graph was made with weights, which MPI_Dist_graph_neighbors_count
// returns (MPI-4.1, 8.5.5). Nil weights of all edges stand for MPI_UNWEIGHTED.
func (g *DistGraph) Weighted() bool { return g.weighted }

// Adjacent returns a copy of the neighbours; weights are nil if there are none.
func (g *DistGraph) Adjacent() Adjacent {
	a := Adjacent{Sources: slices.Clone(g.in), Dests: slices.Clone(g.out)}
	if g.weighted {
		a.SourceWeights, a.DestWeights = append([]int{}, g.inw...), append([]int{}, g.outw...)
	}
	return a
}

// Degrees returns the numbers of edges from and to neighbours (MPI-4.1, 8.5.5).
func (g *DistGraph) Degrees() (in, out int) { return len(g.in), len(g.out) }

// Neighbours returns the neighbours of the calling process, whatever the rank.
func (g *DistGraph) Neighbours(int) (Neighbours, error) {
	return Neighbours{In: g.in, Out: g.out}, nil
}

// Edge is an edge of a graph, given by any process.
type Edge struct{ Source, Dest, Weight int32 }

// Edges returns the edges that one process contributes to a graph, from their sources, the number
// of edges of each source (degrees), the destinations, one source after the other, and the weights
// or nil. The error is ErrRank if a rank is not below size, and ErrGraph if the lengths or numbers
// do not fit.
func Edges(sources, degrees, dests, weights []int, size int) ([]Edge, error) {
	if len(degrees) != len(sources) {
		return nil, fmt.Errorf("comm: %w: %d sources and %d degrees", ErrGraph, len(sources), len(degrees))
	}
	rest := len(dests)
	for i, d := range degrees {
		if d < 0 || d > rest {
			return nil, fmt.Errorf("comm: %w: source %d has %d edges, and %d are left", ErrGraph, sources[i], d, rest)
		}
		rest -= d
	}
	if rest > 0 {
		return nil, fmt.Errorf("comm: %w: %d of %d destinations belong to no source", ErrGraph, rest, len(dests))
	}
	if err := checkEdges("sources", sources, nil, size); err != nil {
		return nil, err
	}
	if err := checkEdges("destinations", dests, weights, size); err != nil {
		return nil, err
	}
	edges := make([]Edge, 0, len(dests))
	for i, d := range degrees {
		for range d {
			e := Edge{Source: int32(sources[i]), Dest: int32(dests[len(edges)])}
			if weights != nil {
				if e.Weight = int32(weights[len(edges)]); int(e.Weight) != weights[len(edges)] {
					return nil, fmt.Errorf("comm: %w: weight %d", ErrGraph, weights[len(edges)])
				}
			}
			edges = append(edges, e)
		}
	}
	return edges, nil
}
