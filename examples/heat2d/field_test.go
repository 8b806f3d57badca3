package main

import (
	"math"
	"strings"
	"testing"
)

func TestPartsCoverTheField(t *testing.T) {
	for _, l := range []layout{{1, 1, 1, 1}, {7, 5, 2, 3}, {512, 384, 2, 2}, {10, 10, 10, 10}, {11, 3, 3, 4}} {
		seen := make([]int, l.width*l.height)
		for rank, n := range l.counts() {
			p := l.part(rank)
			if n != p.cells() || p.width() < 1 || p.height() < 1 {
				t.Errorf("%+v: rank %d has %+v, %d cells", l, rank, p, n)
			}
			if d := p.width() - l.width/l.cols; d < 0 || d > 1 {
				t.Errorf("%+v: rank %d has %d columns", l, rank, p.width())
			}
			for y := p.y0; y < p.y1; y++ {
				for x := p.x0; x < p.x1; x++ {
					seen[y*l.width+x]++
				}
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("%+v: cell %d is in %d parts", l, i, n)
			}
		}
	}
}

func TestJoinUndoesSplit(t *testing.T) {
	l := layout{13, 9, 3, 4}
	f := testField(13, 9)
	parts := l.split(f)
	if p := l.part(1); parts[l.counts()[0]] != f.t[p.x0] {
		t.Error("the second part does not begin with its first cell")
	}
	if d := l.join(parts).difference(f); d != "" {
		t.Error(d)
	}
}

func TestTooFewCells(t *testing.T) {
	if err := (layout{3, 3, 3, 3}).check(); err != nil {
		t.Error(err)
	}
	for _, l := range []layout{{3, 3, 4, 1}, {3, 3, 1, 4}} {
		if err := l.check(); err == nil || !strings.Contains(err.Error(), "start fewer") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// One bit is a difference, also where the numbers are equal.
func TestDifferenceSeesOneBit(t *testing.T) {
	f, g := testField(5, 4), testField(5, 4)
	if f.difference(g) != "" || f.digest() != g.digest() {
		t.Fatal("equal fields differ")
	}
	g.t[13] = math.Nextafter(g.t[13], 2)
	if d := f.difference(g); !strings.Contains(d, "3,2") {
		t.Errorf("difference %q does not name cell 3,2", d)
	}
	if f.digest() == g.digest() {
		t.Error("the digest does not see it")
	}
	f.t[0], g.t[0] = 0, math.Copysign(0, -1)
	if d := f.difference(g); !strings.Contains(d, "0,0") {
		t.Errorf("difference %q does not name cell 0,0", d)
	}
	if d := f.difference(testField(4, 5)); d == "" {
		t.Error("another shape is no difference")
	}
}

func TestBetweenCells(t *testing.T) {
	f := &field{2, 2, []float64{0, 1, 0.5, 0.25}}
	for _, c := range []struct{ x, y, want float64 }{
		{0, 0, 0}, {1, 0, 1}, {0.5, 0, 0.5}, {0, 0.5, 0.25}, {0.5, 0.5, 0.4375}, {-3, -3, 0}, {9, 9, 0.25},
	} {
		if got := f.between(c.x, c.y); got != c.want {
			t.Errorf("at %v,%v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}
