package fileview

import (
	"errors"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/datatype"
)

func extents(v *View, pos, n int64) []Extent { return slices.Collect(v.Extents(pos, n)) }

// must returns what a constructor made.
func must(t *testing.T) func(*datatype.Type, error) *datatype.Type {
	return func(d *datatype.Type, err error) *datatype.Type {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(); err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func TestBytes(t *testing.T) {
	v := Bytes()
	if got := extents(v, 5, 7); !slices.Equal(got, []Extent{{5, 7}}) {
		t.Errorf("%v", got)
	}
	if at, err := v.At(9); at != 9 || err != nil {
		t.Errorf("%d, %v", at, err)
	}
	if v.Before(10) != 10 {
		t.Errorf("%d bytes before 10", v.Before(10))
	}
}

// TestStripes is the second of three processes that take turns with pairs of ints.
func TestStripes(t *testing.T) {
	i32 := datatype.Basic(datatype.Int32)
	pair := must(t)(datatype.Hindexed([]int64{2}, []int64{8}, i32))
	stripe := must(t)(datatype.Resized(pair, 0, 24))
	v, err := New(100, i32, stripe)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pos, n int64
		want   []Extent
	}{
		{0, 8, []Extent{{108, 8}}},
		{4, 8, []Extent{{112, 4}, {132, 4}}},
		{16, 12, []Extent{{156, 8}, {180, 4}}},
		{0, 0, nil},
	} {
		if got := extents(v, c.pos, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d bytes from %d: %v, want %v", c.n, c.pos, got, c.want)
		}
	}
	if at, _ := v.At(3); at != 136 {
		t.Errorf("the fourth int is at %d", at)
	}
	for end, want := range map[int64]int64{0: 0, 108: 0, 110: 2, 116: 8, 124: 8, 133: 9, 140: 16, 1000: 300} {
		if got := v.Before(end); got != want {
			t.Errorf("%d bytes of data before %d, want %d", got, end, want)
		}
	}
}

func TestSubarray(t *testing.T) {
	b := datatype.Basic(datatype.Byte)
	part := must(t)(datatype.Subarray([]int64{4, 4}, []int64{2, 2}, []int64{1, 2}, datatype.OrderC, b))
	v, err := New(0, b, part)
	if err != nil {
		t.Fatal(err)
	}
	if got := extents(v, 0, 5); !slices.Equal(got, []Extent{{6, 2}, {10, 2}, {22, 1}}) {
		t.Errorf("%v", got)
	}
}

func TestRefused(t *testing.T) {
	i32, i64 := datatype.Basic(datatype.Int32), datatype.Basic(datatype.Int64)
	odd := must(t)(datatype.Contiguous(3, i32))
	twice := must(t)(datatype.Hindexed([]int64{1, 1}, []int64{0, 2}, i32))
	before := must(t)(datatype.Hindexed([]int64{1}, []int64{-4}, i32))
	empty := must(t)(datatype.Contiguous(0, i32))
	far := must(t)(datatype.Hindexed([]int64{1, 1}, []int64{0, MaxTile}, i32))
	for _, c := range []struct {
		disp         int64
		etype, ftype *datatype.Type
		want         error
	}{
		{-1, i32, i32, ErrOffset}, {0, i64, odd, ErrType}, {0, i32, twice, ErrType},
		{0, i32, before, ErrType}, {0, i32, empty, ErrType}, {0, i32, far, ErrType},
	} {
		if _, err := New(c.disp, c.etype, c.ftype); !errors.Is(err, c.want) {
			t.Errorf("%v in %v at %d: %v, want %v", c.etype, c.ftype, c.disp, err, c.want)
		}
	}
	if _, err := Bytes().Position(-1); !errors.Is(err, ErrOffset) {
		t.Errorf("offset -1: %v", err)
	}
}
