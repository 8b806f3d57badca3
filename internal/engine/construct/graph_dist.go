package construct

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Weights of edges of distributed graphs. Either all members pass weights or none.
var (
	// Unweighted stands for weights where edges have none.
	Unweighted []int
	// WeightsEmpty stands for the weights of no edges, in a graph whose edges have weights
	// (MPI-4.1, 8.5.4).
	WeightsEmpty = []int{}
)

// DistGraphCreateAdjacent makes a communicator with a graph of which each member passes its own
// edges (MPI-4.1, 8.5.4).
func DistGraphCreateAdjacent(c *proc.Comm, sources, sourceWeights, dests, destWeights []int, info *proc.Info, reorder bool) (*proc.Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	hints, bad := Snapshot(info)
	g, err := comm.NewDistGraph(comm.Adjacent{
		Sources: sources, SourceWeights: sourceWeights, Dests: dests, DestWeights: destWeights,
	}, c.Size())
	if bad == nil {
		bad = err
	}
	d, err := Derive(c, comm.Spec{Group: c.Comm.Group(), Masters: c.Masters(), Topology: g}, bad)
	if err != nil {
		return nil, err
	}
	setHints(d, hints, lostNow(d.Process()))
	return d, nil
}

// DistGraphCreate makes a communicator with a graph of which members pass any edges (MPI-4.1,
// 8.5.4).
func DistGraphCreate(c *proc.Comm, sources, degrees, dests, weights []int, info *proc.Info, reorder bool) (*proc.Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	if !AllRunImpi(c) {
		return nil, proc.ForeignError("DistGraphCreate")
	}
	if err := collective.CheckConstructor(c, derives); err != nil {
		return nil, err
	}
	hints, bad := Snapshot(info)
	edges, err := comm.Edges(sources, degrees, dests, weights, c.Size())
	if err != nil {
		bad = err
	}
	says := uint32(0)
	switch {
	case weights != nil:
		says = someWeights
	case len(edges) > 0:
		says = noWeights
	}
	context, all, err := agreeOnWeights(c, says, bad)
	if err != nil {
		return nil, err
	}
	x := dealing{c: c, context: context + comm.IntraContexts}
	g, err := x.deal(edges, all == someWeights)
	if err != nil {
		return nil, err
	}
	d, err := NewInheriting(c, comm.Spec{Group: c.Comm.Group(), Masters: c.Masters(), Topology: g}, context)
	if err != nil {
		return nil, err
	}
	setHints(d, hints, lostNow(d.Process()))
	return d, nil
}

// The kind of weights that members pass, as flags of their proposals.
const (
	noWeights uint32 = 1 << iota
	someWeights
	saidOfWeights = noWeights | someWeights
)

// agreeOnWeights agrees on the context IDs of the new communicator, with one more for the edge
// messages, and returns what all members say about weights.
func agreeOnWeights(c *proc.Comm, says uint32, bad error) (context wire.ContextID, all uint32, err error) {
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	x := Agreement(c, c.Ordinal())
	x.Propose(collective.ConstructorDerive|says, bad, func() {})
	x.Wait()
	context, err = x.Conclude(comm.InterContexts, bad)
	all = x.All.Flags & saidOfWeights
	if err == nil && all == saidOfWeights {
		err = fmt.Errorf("%w: some members give weights and some do not", comm.ErrGraph)
	}
	return context, all, err
}

func distributed(c *proc.Comm) (*comm.DistGraph, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	g, ok := c.Topology().(*comm.DistGraph)
	if !ok {
		return nil, fmt.Errorf("%w: the communicator is no distributed graph", comm.ErrTopology)
	}
	return g, nil
}

func DistGraphNeighborsCount(c *proc.Comm) (in, out int, weighted bool, err error) {
	g, err := distributed(c)
	if err != nil {
		return 0, 0, false, err
	}
	in, out = g.Degrees()
	return in, out, g.Weighted(), nil
}

// DistGraphNeighbors returns the edges of this member (MPI-4.1, 8.5.5). Weights are nil if edges
// have none.
func DistGraphNeighbors(c *proc.Comm) (sources, sourceWeights, dests, destWeights []int, err error) {
	g, err := distributed(c)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	a := g.Adjacent()
	return a.Sources, a.SourceWeights, a.Dests, a.DestWeights, nil
}
