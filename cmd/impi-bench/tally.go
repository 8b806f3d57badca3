package main

import (
	"math"
	"slices"
)

type row struct {
	Size    int                `json:"size"`
	Values  map[string]float64 `json:"values"`  // by contender
	Ratios  map[string]float64 `json:"ratios"`  // by contender: how many times better ours is, or see result.Base
	Spreads map[string]float64 `json:"spreads"` // by contender: (max-min)/median of the repetitions

	// Intervals are of ratios of contenders that took turns: the median of all
	// repetitions there could be is in it with a probability of 95 % at least.
	Intervals map[string][2]float64 `json:"intervals,omitempty"`
}

type tally struct {
	b       benchmark
	base    string                       // see result.Base
	values  map[string]map[int][]float64 // by contender and size
	pairs   map[string]map[int][]float64 // ratios of adjacent turns
	medians map[string]map[int][]float64 // of the pairs of each repetition
}

func newTally(b benchmark) *tally {
	return &tally{b: b, values: map[string]map[int][]float64{}, pairs: map[string]map[int][]float64{}, medians: map[string]map[int][]float64{}}
}

func (t *tally) add(name string, size int, value float64) { put(t.values, name, size, value) }

func (t *tally) repeated(size int, pairs map[string][]float64) {
	for name, ratios := range pairs {
		put(t.pairs, name, size, ratios...)
		put(t.medians, name, size, median(ratios))
	}
}

func put(to map[string]map[int][]float64, name string, size int, v ...float64) {
	if to[name] == nil {
		to[name] = map[int][]float64{}
	}
	to[name][size] = append(to[name][size], v...)
}

// row sums a size up. Ratios are medians of pairs where there are some, and else ratios of
// medians.
func (t *tally) row(size int) row {
	r := row{Size: size, Values: map[string]float64{}, Ratios: map[string]float64{}, Spreads: map[string]float64{}}
	for name, bySize := range t.values {
		if v := bySize[size]; len(v) > 0 {
			r.Values[name] = median(v)
			r.Spreads[name] = (slices.Max(v) - slices.Min(v)) / r.Values[name]
		}
	}
	for name, v := range r.Values {
		if name == origin(t.base) {
			continue
		}
		if t.base != "" {
			r.Ratios[name] = t.b.ratio(v, r.Values[t.base])
			continue
		}
		r.Ratios[name] = t.b.ratio(r.Values[ours], v)
		if pairs := t.pairs[name][size]; len(pairs) > 0 {
			r.Ratios[name] = median(pairs)
		}
		if low, high, ok := interval(t.medians[name][size]); ok {
			if r.Intervals == nil {
				r.Intervals = map[string][2]float64{}
			}
			r.Intervals[name] = [2]float64{low, high}
		}
	}
	return r
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// interval returns the interval in which the median of the distribution of v lies with a
// probability of at least 95 %, whatever that distribution is: from the k-th smallest to
// the k-th largest sample. Fewer than k of n samples are on one side of the median as
// seldom as n tosses of a fair coin show fewer than k heads. Six samples are needed.
func interval(v []float64) (low, high float64, ok bool) {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	k, outside := 0, math.Exp2(-float64(n)) // both ends: fewer than k+1 samples on one side
	for term := outside; k < n/2 && 2*outside <= 0.05; k++ {
		term *= float64(n-k) / float64(k+1)
		outside += term
	}
	if k == 0 {
		return 0, 0, false
	}
	return s[k-1], s[n-k], true
}
