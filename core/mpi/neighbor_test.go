package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
)

// hood is a communicator with a topology, and what that means to the caller: who
// in comes from and which place of the sender's out it left from.
type hood struct {
	name    string
	c       *Comm
	in, out []int
	feed    []int
}

// hoods are a line, a ring of all members of c, and a graph with edges to the next
// one, twice, and to itself.
func hoods(c *Comm) ([]hood, error) {
	n := c.Size()
	line, err := c.CartCreate([]int{n}, []bool{false}, false)
	if err != nil {
		return nil, err
	}
	ring, err := c.CartCreate([]int{n, 1}, []bool{true, false}, false)
	if err != nil {
		return nil, err
	}
	me, none := c.Rank(), ProcNull
	next, last := (me+1)%n, (me+n-1)%n
	graph, err := c.DistGraphCreateAdjacent([]int{last, last, me}, nil, []int{next, next, me}, nil, nil, false)
	if err != nil {
		return nil, err
	}
	ends := []int{me - 1, me + 1}
	if me == 0 {
		ends[0] = none
	}
	if me == n-1 {
		ends[1] = none
	}
	around := []int{last, next, none, none}
	return []hood{
		{"line", line, ends, ends, []int{1, 0}}, {"ring", ring, around, around, []int{1, 0, 3, 2}},
		{"graph", graph, []int{last, last, me}, []int{next, next, me}, []int{0, 1, 2}},
	}, nil
}

// inHoods runs body for each datatype in every layout and topology.
func inHoods(t *testing.T, body func(h hood, s shape) error) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		all, err := hoods(c)
		if err != nil {
			return err
		}
		for _, h := range all {
			for _, s := range shapes {
				if err := body(h, s); err != nil {
					return fmt.Errorf("%s, %s: %w", h.name, s.name, err)
				}
			}
		}
		return nil
	})
}

// finished is the end of a non-blocking operation.
func finished(q Request, err error) error {
	if err != nil {
		return err
	}
	return waitFor(q)
}

// from is what item i of block b is, of n items each, if a sender's own block is
// all it sends.
func (h *hood) from(n int) func(i int) int64 {
	return func(i int) int64 {
		if source := h.in[i/n]; source != ProcNull {
			return code(source, i%n)
		}
		return -1
	}
}

// dealt is the same if it sends a block to each.
func (h *hood) dealt(n int) func(i int) int64 {
	return func(i int) int64 {
		if source := h.in[i/n]; source != ProcNull {
			return code(source, h.feed[i/n]*n+i%n)
		}
		return -1
	}
}

func TestNeighborAllgather(t *testing.T) {
	inHoods(t, func(h hood, s shape) error {
		n := typedItems
		total := n * len(h.in)
		own, all, later := s.filled(h.c.Rank(), n), s.make(total), s.make(total)
		return first(h.c.NeighborAllgather(own.buf(0, n), all.buf(0, total)), all.has("NeighborAllgather", total, h.from(n)),
			finished(h.c.IneighborAllgather(own.buf(0, n), later.buf(0, total))), later.has("IneighborAllgather", total, h.from(n)))
	})
}

// The blocks lie in turned order, with a gap before each.
func TestNeighborAllgatherv(t *testing.T) {
	inHoods(t, func(h hood, s shape) error {
		const n = 2
		total := (n + 1) * len(h.in)
		counts, displs := make([]int, len(h.in)), make([]int, len(h.in))
		for i := range counts {
			counts[i], displs[i] = n, (n+1)*(len(h.in)-1-i)+1
		}
		want := func(i int) int64 {
			if i%(n+1) == 0 {
				return -1
			}
			return h.from(n)((len(h.in)-1-i/(n+1))*n + i%(n+1) - 1)
		}
		own, all, later := s.filled(h.c.Rank(), n), s.make(total), s.make(total)
		return first(h.c.NeighborAllgatherv(own.buf(0, n), all.buf(0, total), counts, displs), all.has("NeighborAllgatherv", total, want),
			finished(h.c.IneighborAllgatherv(own.buf(0, n), later.buf(0, total), counts, displs)), later.has("IneighborAllgatherv", total, want))
	})
}

func TestNeighborAlltoall(t *testing.T) {
	inHoods(t, func(h hood, s shape) error {
		n := typedItems
		goes, comes := n*len(h.out), n*len(h.in)
		out, all, later := s.filled(h.c.Rank(), goes), s.make(comes), s.make(comes)
		return first(h.c.NeighborAlltoall(out.buf(0, goes), all.buf(0, comes)), all.has("NeighborAlltoall", comes, h.dealt(n)),
			finished(h.c.IneighborAlltoall(out.buf(0, goes), later.buf(0, comes))), later.has("IneighborAlltoall", comes, h.dealt(n)))
	})
}

// Even places have two items, odd ones one: on a grid what goes down comes from
// above, so that the counts of what comes are turned.
func TestNeighborAlltoallvw(t *testing.T) {
	inHoods(t, func(h hood, s shape) error {
		size := func(place int) int { return 2 - place%2 }
		var scounts, rcounts, sdispls []int
		goes, comes := 0, 0
		for o := range h.out {
			scounts, sdispls, goes = append(scounts, size(o)), append(sdispls, goes), goes+size(o)
		}
		var wants []int64
		for i, source := range h.in {
			k := size(h.feed[i])
			rcounts, comes = append(rcounts, k), comes+k
			for item := range k {
				want := int64(-1)
				if source != ProcNull {
					want = code(source, sdispls[h.feed[i]]+item)
				}
				wants = append(wants, want)
			}
		}
		want := func(i int) int64 { return wants[i] }
		out, v, iv, w, iw := s.filled(h.c.Rank(), goes), s.make(comes), s.make(comes), s.make(comes), s.make(comes)
		cut := func(x items, counts []int) (list []Buffer) {
			at := 0
			for _, n := range counts {
				list, at = append(list, x.buf(at, n)), at+n
			}
			return list
		}
		return first(
			h.c.NeighborAlltoallv(out.buf(0, goes), scounts, sdispls, v.buf(0, comes), rcounts, nil), v.has("NeighborAlltoallv", comes, want),
			finished(h.c.IneighborAlltoallv(out.buf(0, goes), scounts, nil, iv.buf(0, comes), rcounts, nil)), iv.has("IneighborAlltoallv", comes, want),
			h.c.NeighborAlltoallw(cut(out, scounts), cut(w, rcounts)), w.has("NeighborAlltoallw", comes, want),
			finished(h.c.IneighborAlltoallw(cut(out, scounts), cut(iw, rcounts))), iw.has("IneighborAlltoallw", comes, want))
	})
}

// The functions over slices are those over Buffers; several are under way at a time.
func TestNeighborsOfSlices(t *testing.T) {
	everyLayout(t, func(t *testing.T, c *Comm) error {
		all, err := hoods(c)
		if err != nil {
			return err
		}
		for _, h := range all {
			if err := h.slices(); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
		}
		return nil
	})
}

func (h *hood) slices() error {
	one, each := []int64{code(h.c.Rank(), 0)}, make([]int64, len(h.out))
	for o := range each {
		each[o] = code(h.c.Rank(), o)
	}
	ones := func(n int) []int {
		s := make([]int, n)
		for i := range s {
			s[i] = 1
		}
		return s
	}
	outs, ins := ones(len(h.out)), ones(len(h.in))
	var got [8][]int64
	for i := range got {
		for range h.in {
			got[i] = append(got[i], -1)
		}
	}
	var q [4]Request
	var errs [4]error
	q[0], errs[0] = IneighborAllgather(h.c, one, got[0])
	q[1], errs[1] = IneighborAllgatherv(h.c, one, got[1], ins, nil)
	q[2], errs[2] = IneighborAlltoall(h.c, each, got[2])
	q[3], errs[3] = IneighborAlltoallv(h.c, each, outs, nil, got[3], ins, nil)
	err := first(errors.Join(errs[:]...), NeighborAllgather(h.c, one, got[4]), NeighborAllgatherv(h.c, one, got[5], ins, nil),
		NeighborAlltoall(h.c, each, got[6]), NeighborAlltoallv(h.c, each, outs, nil, got[7], ins, nil), Waitall(q[:], nil))
	for i, s := range got {
		want := h.from(1)
		if i%4 > 1 {
			want = h.dealt(1)
		}
		for k := range s {
			err = first(err, expect(fmt.Sprintf("operation %d, place %d", i, k), s[k], want(k)))
		}
	}
	return err
}

// A neighbour that sends less than is expected is an error of who expects it.
func TestNeighborSendsLess(t *testing.T) {
	twoSites(2).run(t, func(t *testing.T, c *Comm) error {
		g, err := c.CartCreate([]int{2}, []bool{false}, false)
		if err != nil {
			return err
		}
		got := make([]int32, 2*(1+c.Rank()))
		err = NeighborAllgather(g, []int32{1}, got)
		if c.Rank() == 0 {
			return err
		}
		if !errors.Is(err, coll.ErrCount) {
			return fmt.Errorf("rank 1: %w", err)
		}
		return nil
	})
}

// Of a graph whose edges lead one way everybody hears, before anything is sent.
func TestNeighborsOfLopsidedGraph(t *testing.T) {
	twoSites(3).run(t, func(t *testing.T, c *Comm) error {
		g, err := c.GraphCreate([]int{1, 1, 1}, []int{1}, false)
		if err != nil {
			return err
		}
		if err := NeighborAlltoall[byte](g, nil, nil); !errors.Is(err, comm.ErrTopology) {
			return fmt.Errorf("%w", err)
		}
		for what, err := range map[string]error{
			"in place": g.NeighborAllgather(InPlace, Of([]byte{})),
			"no type":  g.NeighborAlltoallv(Typed([]byte{1}, 1, nil), nil, nil, Typed([]byte{1}, 1, datatype.Basic(datatype.Byte)), nil, nil),
		} {
			if !errors.Is(err, comm.ErrTopology) {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		return totals(g)
	})
}

// What is given wrongly is an error before anything is sent.
func TestNeighborBuffers(t *testing.T) {
	twoSites(2).run(t, func(t *testing.T, c *Comm) error {
		ring, err := c.CartCreate([]int{2}, []bool{true}, false)
		if err != nil {
			return err
		}
		b := Of([]byte{1, 2})
		for what, row := range map[string]struct{ err, want error }{
			"in place":         {ring.NeighborAllgather(InPlace, b), ErrBuffer},
			"no datatype":      {ring.NeighborAlltoall(Typed([]byte{1}, 1, nil), b), datatype.ErrType},
			"counts of one":    {ring.NeighborAllgatherv(b, b, []int{1}, nil), coll.ErrCount},
			"negative count":   {ring.NeighborAlltoallv(b, []int{1, -1}, nil, b, []int{1, 1}, nil), coll.ErrCount},
			"beyond the end":   {ring.NeighborAlltoallv(b, []int{1, 1}, []int{0, 2}, b, []int{1, 1}, nil), coll.ErrBuffer},
			"one buffer":       {ring.NeighborAlltoallw([]Buffer{b}, []Buffer{b, b}), coll.ErrCount},
			"bad one of many":  {ring.NeighborAlltoallw([]Buffer{b, InPlace}, []Buffer{b, b}), ErrBuffer},
			"odd block":        {NeighborAlltoall(ring, make([]byte, 3), make([]byte, 2)), coll.ErrBuffer},
			"as a request too": {second(IneighborAlltoall(ring, make([]byte, 3), make([]byte, 2))), coll.ErrBuffer},
		} {
			if !errors.Is(row.err, row.want) {
				return fmt.Errorf("%s: %w, want %w", what, row.err, row.want)
			}
		}
		return totals(ring)
	})
}
