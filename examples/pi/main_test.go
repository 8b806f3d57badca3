package main

import (
	"errors"
	"math"
	"testing"
)

func together(ranks, intervals int64) (sum float64) {
	for rank := range ranks {
		sum += integrate(rank, ranks, intervals)
	}
	return sum
}

func TestSharesMakePi(t *testing.T) {
	for _, ranks := range []int64{1, 2, 3, 7, 64} {
		for _, n := range []int64{1, 2, 10, 1000, 1_000_000} {
			if err := check(together(ranks, n), bound(n, int(ranks))); err != nil {
				t.Errorf("%d ranks, %d intervals: %v", ranks, n, err)
			}
		}
	}
}

// The bound is no better than it must be, and no worse than it can be: the
// method errs by 1/12n² here.
func TestBoundIsClose(t *testing.T) {
	for _, n := range []int64{10, 100, 10_000} {
		e, b := math.Abs(together(3, n)-math.Pi), bound(n, 3)
		if e < b/5 {
			t.Errorf("%d intervals: error %.1e is far below the bound %.1e", n, e, b)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	const n = 1000
	right := together(4, n)
	for name, wrong := range map[string]float64{
		"a share is missing":     right - integrate(2, 4, n),
		"a share counts for two": right + integrate(2, 4, n),
		"an interval is missing": right - integrate(999, n, n),
		"not a number":           math.NaN(),
	} {
		if err := check(wrong, bound(n, 4)); !errors.Is(err, errBound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With many intervals only rounding is left, which does not grow with them.
func TestBoundOfRounding(t *testing.T) {
	if b := bound(1_000_000_000, 32); b > 2e-14 {
		t.Errorf("%.1e", b)
	}
}

// A share of ranks without intervals is nothing.
func TestMoreRanksThanIntervals(t *testing.T) {
	if s := integrate(5, 8, 3); s != 0 {
		t.Errorf("rank 5 of 8 has %v of 3 intervals", s)
	}
}
