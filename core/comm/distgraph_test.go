package comm

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

func TestDistGraphAdjacent(t *testing.T) {
	for name, c := range map[string]struct {
		given    Adjacent
		weighted bool
	}{
		"no edges":               {Adjacent{}, false},
		"no edges, weighted":     {Adjacent{SourceWeights: []int{}}, true},
		"unweighted":             {Adjacent{Sources: []int{2, 2, 0}, Dests: []int{1}}, false},
		"weighted":               {Adjacent{Sources: []int{2, 0}, SourceWeights: []int{5, 0}, Dests: []int{1}, DestWeights: []int{7}}, true},
		"weighted, only sources": {Adjacent{Sources: []int{1}, SourceWeights: []int{5}}, true},
		"weighted, only dests":   {Adjacent{Dests: []int{1}, DestWeights: []int{5}}, true},
	} {
		g, err := NewDistGraph(c.given, 3)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := g.Adjacent()
		in, out := g.Degrees()
		if !slices.Equal(got.Sources, c.given.Sources) || !slices.Equal(got.Dests, c.given.Dests) ||
			!slices.Equal(got.SourceWeights, c.given.SourceWeights) || !slices.Equal(got.DestWeights, c.given.DestWeights) ||
			g.Weighted() != c.weighted || (got.SourceWeights != nil) != c.weighted || (got.DestWeights != nil) != c.weighted ||
			in != len(c.given.Sources) || out != len(c.given.Dests) {
			t.Errorf("%s: %+v of %+v, weighted %v", name, got, c.given, g.Weighted())
		}
		if n, err := g.Neighbours(0); err != nil || !slices.Equal(n.In, c.given.Sources) || !slices.Equal(n.Out, c.given.Dests) {
			t.Errorf("%s: %v, %v", name, n, err)
		}
	}
}

func TestDistGraphFaults(t *testing.T) {
	for name, c := range map[string]struct {
		given Adjacent
		want  error
	}{
		"source 3":              {Adjacent{Sources: []int{3}}, ErrRank},
		"destination PROC_NULL": {Adjacent{Dests: []int{ProcNull}}, ErrRank},
		"negative weight":       {Adjacent{Sources: []int{1}, SourceWeights: []int{-1}}, ErrGraph},
		"too few weights":       {Adjacent{Dests: []int{1, 2}, DestWeights: []int{1}}, ErrGraph},
		"too many weights":      {Adjacent{Dests: []int{1}, DestWeights: []int{1, 1}}, ErrGraph},
		"weights one way":       {Adjacent{Sources: []int{1}, Dests: []int{1}, DestWeights: []int{1}}, ErrGraph},
		"weights other way":     {Adjacent{Sources: []int{1}, SourceWeights: []int{1}, Dests: []int{1}}, ErrGraph},
	} {
		_, err := NewDistGraph(c.given, 3)
		t.Run(name, func(t *testing.T) { wrong(t, err, c.want) })
	}
}

func TestEdges(t *testing.T) {
	got, err := Edges([]int{2, 0, 2}, []int{1, 2, 0}, []int{0, 1, 2}, []int{7, 8, 9}, 3)
	want := []Edge{{2, 0, 7}, {0, 1, 8}, {0, 2, 9}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := Edges([]int{1}, []int{1}, []int{1}, nil, 3); err != nil || !reflect.DeepEqual(got, []Edge{{1, 1, 0}}) {
		t.Errorf("%v, %v", got, err)
	}
	for name, c := range map[string]struct {
		sources, degrees, dests, weights []int
		want                             error
	}{
		"no degrees":      {[]int{1}, nil, []int{1}, nil, ErrGraph},
		"negative degree": {[]int{1}, []int{-1}, nil, nil, ErrGraph},
		"too many edges":  {[]int{1}, []int{2}, []int{1}, nil, ErrGraph},
		"edges of nobody": {[]int{1}, []int{1}, []int{1, 2}, nil, ErrGraph},
		"huge degrees":    {[]int{1, 1}, []int{math.MaxInt, math.MaxInt}, []int{1}, nil, ErrGraph},
		"source 3":        {[]int{3}, []int{0}, nil, nil, ErrRank},
		"destination -1":  {[]int{1}, []int{1}, []int{-1}, nil, ErrRank},
		"negative weight": {[]int{1}, []int{1}, []int{1}, []int{-4}, ErrGraph},
		"too few weights": {[]int{1}, []int{1}, []int{1}, []int{}, ErrGraph},
	} {
		_, err := Edges(c.sources, c.degrees, c.dests, c.weights, 3)
		t.Run(name, func(t *testing.T) { wrong(t, err, c.want) })
	}
}
