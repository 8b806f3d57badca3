package rma

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/datatype"
)

// must returns a datatype that can be made, committed.
func must(tb testing.TB) func(t *datatype.Type, err error) *datatype.Type {
	return func(t *datatype.Type, err error) *datatype.Type {
		tb.Helper()
		if err == nil {
			err = t.Commit()
		}
		if err != nil {
			tb.Fatal(err)
		}
		return t
	}
}

func TestPlace(t *testing.T) {
	made := must(t)
	x := Extent{Size: 100, Unit: 4}
	back := made(datatype.Hvector(3, 1, -8, anInt64)) // bytes -16 to 8
	still := made(datatype.Resized(anInt64, 0, 0))    // all items in one place
	nothing := made(datatype.Contiguous(0, anInt64))  // no bytes
	far := made(datatype.Hindexed([]int64{1}, []int64{1 << 61}, anInt64))
	for name, c := range map[string]struct {
		disp, count int64
		typ         *datatype.Type
		off         int64
		err         error
	}{
		"the first":                  {0, 1, anInt64, 0, nil},
		"the last":                   {23, 1, anInt64, 92, nil},
		"one byte too far":           {24, 1, anInt64, 0, ErrRange},
		"too many":                   {0, 13, anInt64, 0, ErrRange},
		"below":                      {-1, 1, anInt64, 0, ErrRange},
		"backwards":                  {4, 1, back, 16, nil},
		"backwards from the end":     {23, 1, back, 92, nil},
		"backwards out of it":        {3, 1, back, 0, ErrRange},
		"far away":                   {math.MaxInt64, 1, anInt64, 0, ErrRange},
		"a product too large":        {math.MaxInt64/4 + 5, 1, anInt64, 0, ErrRange},
		"a datatype that leads away": {23, 1, far, 0, ErrRange},
		"nothing anywhere":           {1 << 40, 1 << 40, nothing, 0, nil},
		"no items anywhere":          {1 << 40, 0, anInt64, 0, nil},
		"a negative count":           {0, -1, anInt64, 0, datatype.ErrCount},
		"more than there are bytes":  {0, 1 << 61, anInt64, 0, datatype.ErrTooLarge},
		"as many in one place":       {0, 1 << 61, still, 0, datatype.ErrTooLarge},
		"many in one place":          {0, 1 << 40, still, 0, nil},
	} {
		off, err := x.Locate(c.disp, c.count, c.typ)
		if off != c.off || !errors.Is(err, c.err) {
			t.Errorf("%s: at %d, %v; want %d, %v", name, off, err, c.off, c.err)
		}
	}
}

// Place accepts items exactly if all bytes that they touch are inside the window.
func TestPlaceExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := must(t)(datatype.Hvector(rapid.Int64Range(0, 4).Draw(rt, "blocks"), rapid.Int64Range(0, 3).Draw(rt, "length"),
			rapid.Int64Range(-40, 40).Draw(rt, "stride"), datatype.Basic(datatype.Int16)))
		x := Extent{Size: rapid.Int64Range(0, 100).Draw(rt, "size"), Unit: rapid.Int64Range(1, 9).Draw(rt, "unit")}
		disp, count := rapid.Int64Range(0, 60).Draw(rt, "disp"), rapid.Int64Range(0, 4).Draw(rt, "count")
		lo, hi, err := typ.Span(int(count))
		if err != nil {
			rt.Fatal(err)
		}
		inside := lo == hi || disp*x.Unit+lo >= 0 && disp*x.Unit+hi <= x.Size
		if _, err := x.Locate(disp, count, typ); (err == nil) != inside {
			rt.Fatalf("%v, bytes %d to %d of %+v", err, disp*x.Unit+lo, disp*x.Unit+hi, x)
		}
	})
}

func TestCheckBounds(t *testing.T) {
	if err := Check(5, anInt64); err != nil {
		t.Error(err)
	}
	if err := Check(-5, anInt64); !errors.Is(err, datatype.ErrCount) {
		t.Error(err)
	}
}
