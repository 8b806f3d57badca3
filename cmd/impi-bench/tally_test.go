package main

import (
	"math"
	"testing"
)

func TestMedianAndSpread(t *testing.T) {
	if m := median([]float64{5, 1, 3}); m != 3 {
		t.Errorf("odd: %v", m)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("even: %v", m)
	}
	all := newTally(benchmarks["pingpong"])
	for _, v := range []float64{2, 1, 4} {
		all.add(ours, 8, v)
	}
	all.add("mpich", 8, 3)
	all.add("mpich", 64, 9)
	r := all.row(8)
	if r.Values[ours] != 2 || r.Spreads[ours] != 1.5 || r.Ratios["mpich"] != 1.5 || len(r.Ratios) != 1 || len(r.Intervals) != 0 {
		t.Errorf("got %+v", r)
	}
}

// A machine that becomes slower during a run changes medians, not pairs.
func TestPairs(t *testing.T) {
	all := newTally(benchmarks["pingpong"])
	for rep := range 6 {
		slow := math.Exp2(float64(rep))
		all.add(ours, 8, slow)
		if rep > 2 { // as if the other one had been measured later
			all.add("resume", 8, 1.1*slow)
		}
		all.repeated(8, map[string][]float64{"resume": {1.1, 1.1 + float64(rep)/64, 1.2}})
	}
	r := all.row(8)
	if got := r.Ratios["resume"]; got < 1.1 || got > 1.15 {
		t.Errorf("a ratio of %v", got)
	}
	if in := r.Intervals["resume"]; in != [2]float64{1.1, 1.1 + 5.0/64} {
		t.Errorf("an interval of %v", in)
	}
}

// The bounds are those of tables of the sign test.
func TestInterval(t *testing.T) {
	for n, k := range map[int]int{0: 0, 5: 0, 6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8} {
		var v []float64
		for i := range n {
			v = append(v, float64(n-i))
		}
		low, high, ok := interval(v)
		if ok != (k > 0) || ok && (low != float64(k) || high != float64(n+1-k)) {
			t.Errorf("of %d: %v to %v, %v, not the %dth of both ends", n, low, high, ok, k)
		}
	}
}
