package comm

import (
	"math"
	"slices"
	"testing"
)

func grid(t *testing.T, dims []int, periodic ...bool) *Cart {
	t.Helper()
	c, err := NewCart(dims, periodic, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCartCreate(t *testing.T) {
	c := grid(t, []int{2, 3}, true, false)
	if c.Size() != 6 || !slices.Equal(c.Dims(), []int{2, 3}) || !slices.Equal(c.Periodic(), []bool{true, false}) {
		t.Errorf("%d places, %v, %v", c.Size(), c.Dims(), c.Periodic())
	}
	c.Dims()[0] = 9
	if c.Dims()[0] != 2 {
		t.Error("Dims is not a copy")
	}
	if zero := grid(t, nil); zero.Size() != 1 {
		t.Errorf("no dimensions give %d places", zero.Size())
	}
	none := []bool{false, false}
	for name, f := range map[string]func() (*Cart, error){
		"more places than processes": func() (*Cart, error) { return NewCart([]int{3, 4}, none, 11) },
		"size zero":                  func() (*Cart, error) { return NewCart([]int{0, 4}, none, 11) },
		"negative size":              func() (*Cart, error) { return NewCart([]int{-1, -4}, none, 11) },
		"a period missing":           func() (*Cart, error) { return NewCart([]int{2, 2}, none[:1], 11) },
		"too many places":            func() (*Cart, error) { return NewCart([]int{math.MaxInt / 2, math.MaxInt / 4}, none, math.MaxInt) },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s is accepted", name)
		} else {
			wrong(t, err, ErrDims)
		}
	}
}

func TestCartRowMajor(t *testing.T) {
	c := grid(t, []int{2, 3, 4}, false, false, false)
	want := [][]int{{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}, {0, 1, 0}}
	for r, coords := range want {
		if got, err := c.Coords(r); err != nil || !slices.Equal(got, coords) {
			t.Errorf("rank %d is at %v, %v, want %v", r, got, err, coords)
		}
	}
	for r := range c.Size() {
		coords, err := c.Coords(r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := c.Rank(coords); err != nil || back != r {
			t.Errorf("%v is rank %d, %v, want %d", coords, back, err, r)
		}
	}
	for _, r := range []int{-1, 24, ProcNull} {
		_, err := c.Coords(r)
		wrong(t, err, ErrRank)
	}
}

func TestCartRankWrapsPeriodicDimensions(t *testing.T) {
	c := grid(t, []int{2, 3}, false, true)
	for _, x := range []int{-4, -1, 2, 5, 302} {
		if r, err := c.Rank([]int{1, x}); err != nil || r != 5 {
			t.Errorf("column %d is rank %d, %v", x, r, err)
		}
	}
	for _, coords := range [][]int{{-1, 0}, {2, 0}} {
		_, err := c.Rank(coords)
		wrong(t, err, ErrRank)
	}
	_, err := c.Rank([]int{1})
	wrong(t, err, ErrDims)
}

func TestCartShift(t *testing.T) {
	c := grid(t, []int{3, 4}, false, true) // rank 5 is at (1, 1)
	for _, s := range []struct{ rank, dim, disp, source, dest int }{
		{5, 0, 1, 1, 9}, {5, 0, -1, 9, 1}, {5, 1, 1, 4, 6}, {5, 1, 2, 7, 7}, {5, 1, 5, 4, 6}, {5, 0, 0, 5, 5},
		{1, 0, 1, ProcNull, 5}, {9, 0, 1, 5, ProcNull}, {5, 0, 2, ProcNull, ProcNull}, {4, 1, 1, 7, 5},
		{5, 0, math.MaxInt, ProcNull, ProcNull}, {5, 1, 400_000_001, 4, 6},
	} {
		source, dest, err := c.Shift(s.rank, s.dim, s.disp)
		if err != nil || source != s.source || dest != s.dest {
			t.Errorf("%+v: from %d to %d, %v", s, source, dest, err)
		}
	}
	for _, dim := range []int{-1, 2} {
		_, _, err := c.Shift(5, dim, 1)
		wrong(t, err, ErrDims)
	}
	_, _, err := c.Shift(12, 0, 1)
	wrong(t, err, ErrRank)
}

// TestCartSub checks that slices partition the grid, each keeping its order.
func TestCartSub(t *testing.T) {
	c := grid(t, []int{2, 3, 4}, true, false, true)
	for _, keep := range [][]bool{{true, false, true}, {false, false, false}, {true, true, true}, {false, true, false}} {
		slicesOf := make(map[int][]int) // keys by colour
		for r := range c.Size() {
			sub, color, key, err := c.Sub(r, keep)
			if err != nil {
				t.Fatal(err)
			}
			coords, _ := c.Coords(r)
			var want []int
			for i, k := range keep {
				if k {
					want = append(want, coords[i])
				}
			}
			if got, err := sub.Coords(key); err != nil || !slices.Equal(got, want) {
				t.Errorf("keep %v: rank %d is at %v of its slice, %v, want %v", keep, r, got, err, want)
			}
			slicesOf[color] = append(slicesOf[color], key)
			if len(slicesOf[color]) > sub.Size() {
				t.Errorf("keep %v: slice %d is too large", keep, color)
			}
		}
		for color, keys := range slicesOf {
			for i, k := range keys {
				if i != k {
					t.Errorf("keep %v: slice %d has places %v", keep, color, keys)
				}
			}
		}
	}
	sub, _, _, _ := c.Sub(0, []bool{true, false, true})
	if !slices.Equal(sub.Dims(), []int{2, 4}) || !slices.Equal(sub.Periodic(), []bool{true, true}) {
		t.Errorf("slice of %v, %v", sub.Dims(), sub.Periodic())
	}
	_, _, _, err := c.Sub(0, []bool{true})
	wrong(t, err, ErrDims)
	_, _, _, err = c.Sub(24, []bool{true, true, true})
	wrong(t, err, ErrRank)
}

func TestDimsCreate(t *testing.T) {
	for _, c := range []struct {
		n          int
		dims, want []int
	}{
		{6, []int{0, 0}, []int{3, 2}}, {6, []int{0, 0, 0}, []int{3, 2, 1}}, {12, []int{0, 0}, []int{4, 3}},
		{7, []int{0, 0}, []int{7, 1}}, {16, []int{0, 0, 0}, []int{4, 2, 2}}, {24, []int{0, 0, 0}, []int{4, 3, 2}},
		{36, []int{0, 0, 0}, []int{4, 3, 3}}, {1, []int{0, 0}, []int{1, 1}}, {72, []int{0, 0}, []int{9, 8}},
		{6, []int{0, 3, 0}, []int{2, 3, 1}}, {12, []int{3, 4}, []int{3, 4}}, {1, nil, nil},
		{30030, []int{0, 0, 0}, []int{35, 33, 26}},
	} {
		got := slices.Clone(c.dims)
		if err := DimsCreate(c.n, got); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d over %v: %v, %v, want %v", c.n, c.dims, got, err, c.want)
		}
	}
	for _, c := range []struct {
		n    int
		dims []int
	}{{7, []int{2, 0}}, {6, []int{-1, 0}}, {0, []int{0}}, {-6, []int{0}}, {6, []int{2, 2}}, {6, nil}, {6, []int{4, 0}}} {
		before := slices.Clone(c.dims)
		wrong(t, DimsCreate(c.n, c.dims), ErrDims)
		if !slices.Equal(before, c.dims) {
			t.Errorf("%d over %v changed to %v", c.n, before, c.dims)
		}
	}
}

// TestDimsCreateMany compares with trying all possibilities, and checks that a number with
// very many divisors takes no long time.
func TestDimsCreateMany(t *testing.T) {
	for n := 1; n <= 400; n++ {
		got := []int{0, 0, 0}
		if err := DimsCreate(n, got); err != nil {
			t.Fatal(err)
		}
		best := []int{n, 1, 1}
		for a := 1; a <= n; a++ {
			for b := 1; n%a == 0 && b <= a && a*b <= n; b++ {
				if c := n / (a * b); n%(a*b) == 0 && c <= b && (a < best[0] || a == best[0] && c > best[2]) {
					best = []int{a, b, c}
				}
			}
		}
		if got[0] != best[0] || got[2] != best[2] || got[0]*got[1]*got[2] != n || got[0] < got[1] || got[1] < got[2] {
			t.Errorf("%d: %v, want %v", n, got, best)
		}
	}
	for k := 1; k <= 12; k++ {
		dims := make([]int, k)
		if err := DimsCreate(2_095_133_040, dims); err != nil {
			t.Fatal(err)
		}
		product := 1
		for _, d := range dims {
			product *= d
		}
		if product != 2_095_133_040 || !slices.IsSortedFunc(dims, func(a, b int) int { return b - a }) {
			t.Errorf("%v", dims)
		}
	}
}
