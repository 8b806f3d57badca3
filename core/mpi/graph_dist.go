package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
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
	if err := c.announce(announced[doesDerive]); err != nil {
		return nil, err
	}
	hints, bad := snapshot(info)
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
	context, all, err := c.agreeOnWeights(says, bad)
	if err != nil {
		return nil, err
	}
	x := dealing{c: c, context: context + comm.IntraContexts}
	g, err := x.deal(edges, all == someWeights)
	if err != nil {
		return nil, err
	}
	d, err := c.adopt(comm.Spec{Group: c.Comm.Group(), Masters: c.Masters(), Topology: g}, context)
	if err != nil {
		return nil, err
	}
	d.hints = hints
	return d, nil
}

// What members say of weights, as flags of their proposals.
const (
	noWeights uint32 = 1 << iota
	someWeights
	saidOfWeights = noWeights | someWeights
)

// agreeOnWeights agrees on the contexts of the new communicator, with one more for
// the edges, and tells what all members say of weights.
func (c *Comm) agreeOnWeights(says uint32, bad error) (context wire.ContextID, all uint32, err error) {
	p := c.p
	p.lock()
	defer p.unlock()
	x := c.agreement(c.ordinal())
	x.propose(doesDerive|says, bad, func() {})
	x.wait()
	context, err = x.settle(comm.InterContexts, bad)
	all = x.all.Flags & saidOfWeights
	if err == nil && all == saidOfWeights {
		err = fmt.Errorf("%w: some members give weights and some do not", comm.ErrGraph)
	}
	return context, all, err
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
