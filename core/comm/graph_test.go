package comm

import (
	"slices"
	"testing"
)

func TestGraphCreate(t *testing.T) {
	g, err := NewGraph([]int{2, 3, 4, 6}, []int{1, 3, 0, 3, 0, 2}, 5)
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range [][]int{{1, 3}, {0}, {3}, {0, 2}} {
		if got, err := g.Of(r); err != nil || !slices.Equal(got, want) {
			t.Errorf("neighbours of %d: %v, %v, want %v", r, got, err, want)
		}
		n, err := g.Neighbours(r)
		if err != nil || !slices.Equal(n.In, want) || !slices.Equal(n.Out, want) || n.Opposite {
			t.Errorf("to and from %d: %+v, %v", r, n, err)
		}
	}
	g.Index()[0], g.Edges()[0] = 9, 9
	if !slices.Equal(g.Index(), []int{2, 3, 4, 6}) || !slices.Equal(g.Edges(), []int{1, 3, 0, 3, 0, 2}) || g.Size() != 4 {
		t.Errorf("%d nodes, %v, %v", g.Size(), g.Index(), g.Edges())
	}
	for _, r := range []int{-1, 4, ProcNull} {
		_, err := g.Of(r)
		wrong(t, err, ErrRank)
		_, err = g.Neighbours(r)
		wrong(t, err, ErrRank)
	}
}

func TestGraphEmpty(t *testing.T) {
	if g, err := NewGraph(nil, nil, 3); err != nil || g.Size() != 0 {
		t.Errorf("%v", err)
	}
	g, err := NewGraph([]int{0, 0}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := g.Neighbours(1); err != nil || len(n.In)+len(n.Out) != 0 {
		t.Errorf("%v, %v", n, err)
	}
}

func TestGraphFaults(t *testing.T) {
	for name, c := range map[string]struct{ index, edges []int }{
		"more nodes than processes": {[]int{0, 0, 0, 0}, nil},
		"index goes back":           {[]int{1, 0, 2}, []int{1, 2}},
		"negative index":            {[]int{-1, 0, 0}, nil},
		"edges left over":           {[]int{1, 1, 1}, []int{1, 2}},
		"edges missing":             {[]int{1, 1, 3}, []int{1, 2}},
		"edge to nowhere":           {[]int{1, 1, 1}, []int{3}},
		"edge to PROC_NULL":         {[]int{1, 1, 1}, []int{ProcNull}},
		"edges of no node":          {nil, []int{0}},
		"edge among few nodes":      {[]int{1}, []int{1}},
	} {
		_, err := NewGraph(c.index, c.edges, 3)
		t.Run(name, func(t *testing.T) { wrong(t, err, ErrGraph) })
	}
}

// All ranks find out that a graph is not symmetric.
func TestGraphLopsided(t *testing.T) {
	for name, c := range map[string]struct {
		index, edges []int
		bad          bool
	}{
		"one way":                 {[]int{1, 1, 1}, []int{1}, true},
		"two there, one back":     {[]int{2, 3, 3}, []int{1, 1, 0}, true},
		"two there, two back":     {[]int{2, 4, 4}, []int{1, 1, 0, 0}, false},
		"to itself":               {[]int{1, 1, 1}, []int{0}, false},
		"a ring in one direction": {[]int{1, 2, 3}, []int{1, 2, 0}, true},
		"a ring":                  {[]int{2, 4, 6}, []int{1, 2, 2, 0, 0, 1}, false},
	} {
		g, err := NewGraph(c.index, c.edges, 3)
		if err != nil {
			t.Fatal(err)
		}
		for r := range 3 {
			if _, err := g.Neighbours(r); c.bad {
				wrong(t, err, ErrTopology)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Of a pair of places of a grid one is below and one above, also if they are the
// same rank.
func TestCartNeighbours(t *testing.T) {
	for _, c := range []struct {
		dims     []int
		periodic []bool
		rank     int
		want     []int
	}{
		{[]int{3, 4}, []bool{false, true}, 5, []int{1, 9, 4, 6}},
		{[]int{3, 4}, []bool{false, true}, 0, []int{ProcNull, 4, 3, 1}},
		{[]int{2, 1}, []bool{true, true}, 0, []int{1, 1, 0, 0}},
		{[]int{1}, []bool{false}, 0, []int{ProcNull, ProcNull}},
		{nil, nil, 0, nil},
	} {
		g := grid(t, c.dims, c.periodic...)
		n, err := g.Neighbours(c.rank)
		if err != nil || !slices.Equal(n.In, c.want) || !slices.Equal(n.Out, c.want) {
			t.Errorf("%v, rank %d: %+v, %v, want %v", c.dims, c.rank, n, err, c.want)
		}
		if n.OutIndex(0) != 1 || n.OutIndex(1) != 0 || n.OutIndex(2) != 3 {
			t.Error("below does not belong to above")
		}
	}
	_, err := grid(t, []int{2}, true).Neighbours(2)
	wrong(t, err, ErrRank)
}
