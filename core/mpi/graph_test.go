package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// twoSites has the ranks of two sites by turns.
func twoSites(procs int) layout {
	return layout{procs: procs, data: sameOrder, client: func(r int) int { return r % 2 }}
}

// A graph of four nodes among five procs: the fifth gets nothing.
func TestGraph(t *testing.T) {
	index, edges := []int{2, 3, 4, 6}, []int{1, 3, 0, 3, 0, 2}
	twoSites(5).run(t, func(t *testing.T, c *Comm) error {
		mapped, err := c.GraphMap(index, edges)
		if err != nil {
			return err
		}
		g, err := c.GraphCreate(index, edges, true)
		if err != nil {
			return err
		}
		if c.Rank() == 4 {
			if g != nil {
				return errors.New("a node for the fifth")
			}
			return expect("mapped", mapped, Undefined)
		}
		nodes, ends, err := g.GraphdimsGet()
		gotIndex, gotEdges, err2 := g.GraphGet()
		n, err3 := g.GraphNeighborsCount(3)
		list, err4 := g.GraphNeighbors(3)
		kind, err5 := g.TopoTest()
		return first(err, err2, err3, err4, err5, expect("mapped", mapped, g.Rank()), expect("nodes", nodes, 4), expect("edges", ends, 6),
			same("index", gotIndex, index), same("edges", gotEdges, edges), expect("neighbours", n, 2), same("of rank 3", list, []int{0, 2}),
			expect("topology", kind, Graph), totals(g))
	})
}

// totals reports whether messages and reductions of c arrive.
func totals(c *Comm) error {
	sum, n := []int{0}, c.Size()
	return first(Allreduce(c, []int{c.Rank()}, sum, Sum), expect("sum", sum[0], n*(n-1)/2))
}

// A graph without nodes is nobody's.
func TestGraphEmpty(t *testing.T) {
	twoSites(2).run(t, func(t *testing.T, c *Comm) error {
		g, err := c.GraphCreate(nil, nil, false)
		if g != nil {
			return errors.New("a node in no graph")
		}
		return err
	})
}

// Each gives its own neighbours: a ring in one direction, twice from 0 to 1.
func TestDistGraphAdjacent(t *testing.T) {
	twoSites(3).run(t, func(t *testing.T, c *Comm) error {
		me, n := c.Rank(), c.Size()
		in, out := []int{(me + n - 1) % n}, []int{(me + 1) % n}
		switch me {
		case 0:
			out = append(out, 1)
		case 1:
			in = append(in, 0)
		}
		g, err := c.DistGraphCreateAdjacent(in, in, out, out, nil, true)
		if err != nil {
			return err
		}
		sources, inw, dests, outw, err := g.DistGraphNeighbors()
		indegree, outdegree, weighted, err2 := g.DistGraphNeighborsCount()
		kind, err3 := g.TopoTest()
		return first(err, err2, err3, same("sources", sources, in), same("their weights", inw, in), same("destinations", dests, out),
			same("their weights", outw, out), expect("sources", indegree, len(in)), expect("destinations", outdegree, len(out)),
			expect("weights", weighted, true), expect("topology", kind, DistGraph), totals(g))
	})
}

// Edges that anybody knows get to those that they concern, in the order of who
// gives them; an edge to itself is there once in each direction.
func TestDistGraphCreate(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		twoSites(4).run(t, func(t *testing.T, c *Comm) error {
			me := c.Rank()
			// Rank r gives r->0, 0->r and twice 2->1; 3 gives nothing.
			sources, degrees, dests := []int{me, 0, 2}, []int{1, 1, 2}, []int{0, me, 1, 1}
			weights := []int{10 * me, 10*me + 1, 10*me + 2, 10*me + 3}
			if me == 3 {
				sources, degrees, dests, weights = nil, nil, nil, WeightsEmpty
			}
			if !weighted {
				weights = Unweighted
			}
			g, err := c.DistGraphCreate(sources, degrees, dests, weights, nil, false)
			if err != nil {
				return err
			}
			in, inw, out, outw, err := g.DistGraphNeighbors()
			if err != nil {
				return err
			}
			want := [4][4][]int{
				{{0, 0, 1, 2}, {0, 1, 10, 20}, {0, 0, 1, 2}, {0, 1, 11, 21}},
				{{2, 2, 0, 2, 2, 2, 2}, {2, 3, 11, 12, 13, 22, 23}, {0}, {10}},
				{{0}, {21}, {1, 1, 1, 1, 0, 1, 1}, {2, 3, 12, 13, 20, 22, 23}},
				{},
			}[me]
			if !weighted {
				want[1], want[3] = nil, nil
			}
			_, _, has, err := g.DistGraphNeighborsCount()
			return first(err, same("sources", in, want[0]), same("their weights", inw, want[1]), same("destinations", out, want[2]),
				same("their weights", outw, want[3]), expect("weighted", has, weighted), expect("no weights", inw == nil, !weighted), totals(g))
		})
	}
}

// What one member gives wrongly is everybody's error, and the next graph is made.
func TestDistGraphFaultOfOne(t *testing.T) {
	twoSites(3).run(t, func(t *testing.T, c *Comm) error {
		dest, weights := []int{0}, []int{1}
		if c.Rank() == 1 {
			dest = []int{3}
		}
		_, bad := c.DistGraphCreate([]int{c.Rank()}, []int{1}, dest, nil, nil, false)
		_, adjacent := c.DistGraphCreateAdjacent(nil, nil, dest, nil, nil, false)
		if c.Rank() == 1 {
			weights = nil
		}
		_, mixed := c.DistGraphCreate([]int{c.Rank()}, []int{1}, []int{0}, weights, nil, false)
		if bad == nil || adjacent == nil || mixed == nil {
			return fmt.Errorf("errors %w, %w, %w", bad, adjacent, mixed)
		}
		if c.Rank() == 1 && (ErrorClass(bad) != mpierr.Rank || ErrorClass(adjacent) != mpierr.Rank) || ErrorClass(mixed) != mpierr.Arg {
			return fmt.Errorf("classes of %w, %w, %w", bad, adjacent, mixed)
		}
		g, err := c.DistGraphCreate([]int{c.Rank()}, []int{1}, []int{0}, nil, nil, false)
		if err != nil {
			return err
		}
		return totals(g)
	})
}

// A member that has no edges need not say whether there are weights.
func TestDistGraphWeightsOfNoEdges(t *testing.T) {
	twoSites(2).run(t, func(t *testing.T, c *Comm) error {
		var sources, degrees, dests, weights []int
		if c.Rank() == 0 {
			sources, degrees, dests, weights = []int{0}, []int{1}, []int{1}, []int{9}
		}
		g, err := c.DistGraphCreate(sources, degrees, dests, weights, nil, false)
		if err != nil {
			return err
		}
		_, w, _, _, err := g.DistGraphNeighbors()
		return first(err, same("weights", w, [][]int{nil, {9}}[c.Rank()]))
	})
}

// Topologies go with duplicates of all sorts and with nothing else.
func TestTopologyInheritance(t *testing.T) {
	twoSites(4).run(t, func(t *testing.T, c *Comm) error {
		cart, err := c.CartCreate([]int{4}, []bool{true}, false)
		graph, err2 := c.GraphCreate([]int{1, 2, 2, 2}, []int{1, 0}, false)
		dist, err3 := c.DistGraphCreateAdjacent(nil, nil, nil, nil, nil, false)
		if err := first(err, err2, err3); err != nil {
			return err
		}
		kinds := []int{Cart, Graph, DistGraph}
		for i, d := range []*Comm{cart, graph, dist} { // in one order on all ranks
			if err := inherits(d, kinds[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// inherits makes communicators of c of all sorts.
func inherits(c *Comm, kind int) error {
	group, err := c.Group()
	if err != nil {
		return err
	}
	has := func(what string, want int) func(*Comm, error) error {
		return func(d *Comm, err error) error {
			if err != nil {
				return err
			}
			got, err := d.TopoTest()
			return first(err, expect(what, got, want))
		}
	}
	later, q, err := c.Idup()
	if err == nil {
		_, err = q.Wait()
	}
	return first(has("Idup", kind)(later, err), has("Dup", kind)(c.Dup()), has("DupWithInfo", kind)(c.DupWithInfo(nil)),
		has("Split", Undefined)(c.Split(0, 0)), has("Create", Undefined)(c.Create(group)), has("CreateGroup", Undefined)(c.CreateGroup(group, 0)))
}

// An intercommunicator has no topology, and gets none.
func TestTopologyOfIntercommunicator(t *testing.T) {
	twoSites(2).run(t, func(t *testing.T, c *Comm) error {
		own, err := c.Split(c.Rank(), 0)
		if err != nil {
			return err
		}
		inter, err := own.IntercommCreate(0, c, 1-c.Rank(), 5)
		if err != nil {
			return err
		}
		kind, err := inter.TopoTest()
		if err := first(err, expect("topology", kind, Undefined)); err != nil {
			return err
		}
		b := []int{0}
		for what, err := range map[string]error{
			"CartCreate":      second(inter.CartCreate([]int{1}, []bool{false}, false)),
			"CartMap":         second(inter.CartMap([]int{1}, []bool{false})),
			"GraphCreate":     second(inter.GraphCreate([]int{0}, nil, false)),
			"GraphMap":        second(inter.GraphMap([]int{0}, nil)),
			"adjacent":        second(inter.DistGraphCreateAdjacent(nil, nil, nil, nil, nil, false)),
			"DistGraphCreate": second(inter.DistGraphCreate(nil, nil, nil, nil, nil, false)),
			"exchange":        NeighborAllgather(inter, b, b[:0]),
			"of Buffers":      inter.NeighborAlltoallw(nil, nil),
			"in a request":    second(IneighborAlltoall(inter, b, b[:0])),
		} {
			if ErrorClass(err) != mpierr.Comm {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		return nil
	})
}

var badTopologies = []bad{
	{"negative dimension", mpierr.Dims, func(x *badThings) error { return second(x.c.CartCreate([]int{-1}, []bool{false}, false)) }},
	{"map of too large a grid", mpierr.Dims, func(x *badThings) error { return second(x.c.CartMap([]int{3}, []bool{false})) }},
	{"number of dimensions of no grid", mpierr.Topology, func(x *badThings) error { return second(x.c.CartdimGet()) }},
	{"coordinates in no grid", mpierr.Topology, func(x *badThings) error { return second(x.c.CartCoords(0)) }},
	{"shift in no grid", mpierr.Topology, func(x *badThings) error { return third(x.c.CartShift(0, 1)) }},
	{"slices of no grid", mpierr.Topology, func(x *badThings) error { return second(x.c.CartSub(nil)) }},
	{"graph of three nodes", mpierr.Arg, func(x *badThings) error { return second(x.c.GraphCreate([]int{0, 0, 0}, nil, false)) }},
	{"edge to node 2", mpierr.Arg, func(x *badThings) error { return second(x.c.GraphCreate([]int{1, 1}, []int{2}, false)) }},
	{"map of no graph", mpierr.Arg, func(x *badThings) error { return second(x.c.GraphMap([]int{1, 0}, nil)) }},
	{"size of no graph", mpierr.Topology, func(x *badThings) error { return third(x.c.GraphdimsGet()) }},
	{"get of no graph", mpierr.Topology, func(x *badThings) error { return third(x.c.GraphGet()) }},
	{"neighbours in no graph", mpierr.Topology, func(x *badThings) error { return second(x.c.GraphNeighbors(0)) }},
	{"their number", mpierr.Topology, func(x *badThings) error { return second(x.c.GraphNeighborsCount(0)) }},
	{"source 2", mpierr.Rank, func(x *badThings) error {
		return second(x.c.DistGraphCreateAdjacent([]int{2}, nil, nil, nil, nil, false))
	}},
	{"weight -1", mpierr.Arg, func(x *badThings) error {
		return second(x.c.DistGraphCreateAdjacent([]int{0}, []int{-1}, nil, nil, nil, false))
	}},
	{"destination -1", mpierr.Rank, func(x *badThings) error {
		return second(x.c.DistGraphCreate([]int{0}, []int{1}, []int{-1}, nil, nil, false))
	}},
	{"degree -1", mpierr.Arg, func(x *badThings) error {
		return second(x.c.DistGraphCreate([]int{0}, []int{-1}, nil, nil, nil, false))
	}},
	{"neighbours in no distributed graph", mpierr.Topology, func(x *badThings) error {
		_, _, _, _, err := x.c.DistGraphNeighbors()
		return err
	}},
	{"their numbers", mpierr.Topology, func(x *badThings) error { _, _, _, err := x.c.DistGraphNeighborsCount(); return err }},
	{"exchange without neighbours", mpierr.Topology, func(x *badThings) error { return NeighborAllgather(x.c, x.b, x.b[:0]) }},
	{"exchange of Buffers without them", mpierr.Topology, func(x *badThings) error { return x.c.NeighborAlltoall(Of(x.b), Of(x.b[:0])) }},
	{"exchange of nothing without them", mpierr.Topology, func(x *badThings) error { return second(x.c.IneighborAlltoallw(nil, nil)) }},
	{"exchange of a type that is none", mpierr.Topology, func(x *badThings) error {
		return x.c.NeighborAllgather(Typed(x.b, 1, nil), Typed(x.b, 1, datatype.Basic(datatype.Byte)))
	}},
}
