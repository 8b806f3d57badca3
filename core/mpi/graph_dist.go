package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
)

// Weights of edges of distributed graphs. All members give weights or none does.
var (
	// Unweighted stands for weights where edges have none.
	Unweighted []int
	// WeightsEmpty are those of no edges in a graph whose edges have weights.
	WeightsEmpty = []int{}
)

// DistGraphCreateAdjacent makes a communicator of the members of c, each of which
// gives the neighbours that it receives from (sources) and those that it sends to
// (dests), with their weights or Unweighted. What one gives as a destination the
// other must give as a source, as often. Each keeps its own neighbours only. All
// members of c call it; info are hints, nil has none. reorder allows ranks to
// change, which they do not.
func (c *Comm) DistGraphCreateAdjacent(sources, sourceWeights, dests, destWeights []int, info *Info, reorder bool) (*Comm, error) {
	if err := c.checkIntra(); err != nil {
		return nil, c.failed("DistGraphCreateAdjacent", err)
	}
	d, err := c.distGraph(comm.Adjacent{
		Sources: sources, SourceWeights: sourceWeights, Dests: dests, DestWeights: destWeights,
	}, info, nil)
	return d, c.failed("DistGraphCreateAdjacent", err)
}

// distGraph makes the communicator once the neighbours are known. bad is why the
// caller does not know them.
func (c *Comm) distGraph(a comm.Adjacent, info *Info, bad error) (*Comm, error) {
	hints, err := snapshot(info)
	if bad == nil {
		bad = err
	}
	g, err := comm.NewDistGraph(a, c.Size())
	if bad == nil {
		bad = err
	}
	d, err := c.derive(comm.Spec{Group: c.Comm.Group(), Masters: c.Masters(), Topology: g}, bad)
	if err != nil {
		return nil, err
	}
	d.hints = hints
	return d, nil
}

// DistGraphCreate makes a communicator of the members of c, each of which gives
// any edges of the graph: degrees[i] of them lead from sources[i], to the next of
// dests, with the weights or Unweighted. Afterwards each knows its own neighbours,
// and nothing else. All members of c call it; info are hints, nil has none.
// reorder allows ranks to change, which they do not.
func (c *Comm) DistGraphCreate(sources, degrees, dests, weights []int, info *Info, reorder bool) (*Comm, error) {
	d, err := c.distGraphCreate(sources, degrees, dests, weights, info)
	return d, c.failed("DistGraphCreate", err)
}

func (c *Comm) distGraphCreate(sources, degrees, dests, weights []int, info *Info) (*Comm, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	if !c.ours() {
		return nil, errForeign("DistGraphCreate")
	}
	edges, bad := comm.Edges(sources, degrees, dests, weights, c.Size())
	x := dealing{c: c}
	switch {
	case bad != nil: // the others need not wait for what does not come
	case weights != nil:
		x.weights = someWeights
	case len(edges) > 0:
		x.weights = noWeights
	}
	a, err := x.deal(edges)
	if err != nil {
		return nil, err
	}
	if bad == nil {
		bad = x.bad
	}
	return c.distGraph(a, info, bad)
}

// dealing brings edges to those that they concern.
type dealing struct {
	c       *Comm
	weights int32 // what this member says of them, then what all say
	bad     error // all members have it alike
}

// What members say of weights; both is what must not be.
const (
	noWeights int32 = 1 << iota
	someWeights
)

// edgeWords is how many numbers an edge travels as.
const edgeWords = 3

// deal sends each edge to its source and its destination. Edges that several
// members give arrive in the order of those at both.
func (x *dealing) deal(edges []comm.Edge) (a comm.Adjacent, err error) {
	n, me := x.c.Size(), int32(x.c.Rank())
	words := make([][]int32, n)
	give := func(rank int32, e comm.Edge) { words[rank] = append(words[rank], e.Source, e.Dest, e.Weight) }
	for _, e := range edges {
		give(e.Source, e)
		if e.Dest != e.Source {
			give(e.Dest, e)
		}
	}
	all, err := x.exchange(words)
	if err != nil {
		return a, err
	}
	if x.weights == someWeights {
		a.SourceWeights, a.DestWeights = []int{}, []int{}
	}
	for ; len(all) > 0; all = all[edgeWords:] {
		e := comm.Edge{Source: all[0], Dest: all[1], Weight: all[2]}
		if e.Dest == me {
			a.Sources = append(a.Sources, int(e.Source))
			a.SourceWeights = x.weigh(a.SourceWeights, e)
		}
		if e.Source == me {
			a.Dests = append(a.Dests, int(e.Dest))
			a.DestWeights = x.weigh(a.DestWeights, e)
		}
	}
	return a, nil
}

func (x *dealing) weigh(weights []int, e comm.Edge) []int {
	if x.weights != someWeights {
		return nil
	}
	return append(weights, int(e.Weight))
}

// exchange sends words[r] to rank r and gives what comes, by rank.
func (x *dealing) exchange(words [][]int32) ([]int32, error) {
	n := len(words)
	heads, theirs := make([]int32, 2*n), make([]int32, 2*n)
	for r := range words {
		heads[2*r], heads[2*r+1] = int32(len(words[r])), x.weights
	}
	err := x.c.call(&call{what: alltoall, send: datatype.Bytes(heads), recv: datatype.Bytes(theirs), kind: datatype.Int32})
	if err != nil {
		return nil, err
	}
	var out, in, scounts, rcounts []int
	var send []int32
	total := 0
	for r := range words {
		if len(words[r]) > 0 {
			out, scounts, send = append(out, r), append(scounts, len(words[r])), append(send, words[r]...)
		}
		got := int(theirs[2*r])
		if got < 0 || got%edgeWords != 0 {
			return nil, fmt.Errorf("%w: rank %d has edges of %d words", comm.ErrMessage, r, got)
		}
		if got > 0 {
			in, rcounts, total = append(in, r), append(rcounts, got), total+got
		}
		x.weights |= theirs[2*r+1]
	}
	if x.weights == noWeights|someWeights {
		x.bad = fmt.Errorf("%w: some members give weights and some do not", comm.ErrGraph)
	}
	recv := make([]int32, total)
	return recv, x.c.collective(func(p *coll.Planner, s *coll.Schedule) error {
		return p.Sparse(s, out, datatype.Bytes(send), scounts, in, datatype.Bytes(recv), rcounts, datatype.Int32)
	})
}

// distributed gives the topology of c.
func (c *Comm) distributed() (*comm.DistGraph, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g, ok := c.Topology().(*comm.DistGraph)
	if !ok {
		return nil, fmt.Errorf("%w: the communicator is no distributed graph", comm.ErrTopology)
	}
	return g, nil
}

// DistGraphNeighborsCount gives how many neighbours the caller receives from and
// sends to, and whether edges have weights.
func (c *Comm) DistGraphNeighborsCount() (in, out int, weighted bool, err error) {
	g, err := c.distributed()
	if err != nil {
		return 0, 0, false, c.failed("DistGraphNeighborsCount", err)
	}
	in, out = g.Degrees()
	return in, out, g.Weighted(), nil
}

// DistGraphNeighbors gives the neighbours that the caller receives from and those
// that it sends to, with their weights; those are nil where edges have none.
func (c *Comm) DistGraphNeighbors() (sources, sourceWeights, dests, destWeights []int, err error) {
	g, err := c.distributed()
	if err != nil {
		return nil, nil, nil, nil, c.failed("DistGraphNeighbors", err)
	}
	a := g.Adjacent()
	return a.Sources, a.SourceWeights, a.Dests, a.DestWeights, nil
}
