package datatype

import (
	"errors"
	"math"
	"testing"
)

func i64(v ...int64) []int64 { return v }

// TestTypeBounds is the table of bounds: what each constructor gives.
func TestTypeBounds(t *testing.T) {
	i32, f64, char := Basic(Int32), Basic(Float64), Basic(Char)
	rowOf := must(Vector(3, 1, 4, i32))
	wide := must(Resized(i32, -4, 16))
	rounded := func(n int64) int64 { // to the alignment of a double, which is 4 on 386
		align := int64(Float64.Align())
		return (n + align - 1) / align * align
	}
	for _, c := range []struct {
		name                              string
		t                                 *Type
		size, lb, extent, tlb, trueExtent int64
	}{
		{"basic", i32, 4, 0, 4, 0, 4},
		{"contiguous", must(Contiguous(3, i32)), 12, 0, 12, 0, 12},
		{"vector", rowOf, 12, 0, 36, 0, 36},
		{"vector, backwards", must(Vector(3, 1, -4, i32)), 12, -32, 36, -32, 36},
		{"vector of blocks that overlap", must(Vector(3, 2, 1, i32)), 24, 0, 16, 0, 16},
		{"hvector is not rounded", must(Hvector(2, 1, 9, f64)), 16, 0, 17, 0, 17},
		{"indexed", must(Indexed(i64(2, 1), i64(3, 0), i32)), 12, 0, 20, 0, 20},
		{"indexed, below the origin", must(Indexed(i64(1, 1), i64(-2, 1), i32)), 8, -8, 16, -8, 16},
		{"hindexed", must(Hindexed(i64(1, 2), i64(100, 4), i32)), 12, 4, 100, 4, 100},
		{"indexed block", must(IndexedBlock(2, i64(4, 0), i32)), 16, 0, 24, 0, 24},
		{"hindexed block", must(HindexedBlock(2, i64(4, 20), i32)), 16, 4, 24, 4, 24},
		{"empty blocks do not count", must(Indexed(i64(0, 1), i64(-99, 1), i32)), 4, 4, 4, 4, 4},
		{"struct is rounded to the alignment", must(Struct(i64(1, 1), i64(0, 8), []*Type{f64, char})), 9, 0, rounded(9), 0, 9},
		{"struct of one byte", must(Struct(i64(1), i64(3), []*Type{char})), 1, 3, 1, 3, 1},
		{"struct, alignment from its lower bound on", must(Struct(i64(1, 1), i64(-4, 1), []*Type{i32, char})), 5, -4, 8, -4, 6},
		{"struct, empty blocks do not align", must(Struct(i64(0, 1), i64(0, 0), []*Type{f64, char})), 1, 0, 1, 0, 1},
		{"resized", wide, 4, -4, 16, 0, 4},
		{"resized, negative extent", must(Resized(i32, 8, -8)), 4, 8, -8, 0, 4},
		{"resized twice", must(Resized(wide, 0, 4)), 4, 0, 4, 0, 4},
		{"bounds stick in contiguous", must(Contiguous(2, wide)), 8, -4, 32, 0, 20},
		{"bounds stick in struct, which is not rounded", must(Struct(i64(1, 1), i64(0, 40), []*Type{wide, f64})), 12, -4, 16, 0, 48},
		{"markers", must(Struct(i64(1, 1, 1), i64(-3, 0, 20), []*Type{LBMarker, i32, UBMarker})), 4, -3, 23, 0, 4},
		{"markers stick", must(Contiguous(2, must(Struct(i64(1, 1), i64(0, 20), []*Type{i32, UBMarker})))), 8, 0, 40, 0, 24},
		{"subarray has the whole array", must(Subarray(i64(4, 5), i64(2, 2), i64(1, 3), OrderC, i32)), 16, 0, 80, 32, 28},
		{"subarray, Fortran", must(Subarray(i64(4, 5), i64(2, 2), i64(1, 3), OrderFortran, i32)), 16, 0, 80, 52, 24},
		{"darray, block", must(Darray(2, 1, []Spread{{5, DistributeBlock, DistributeDefault, 2}}, OrderC, i32)), 8, 0, 20, 12, 8},
		{"darray, cyclic", must(Darray(2, 1, []Spread{{5, DistributeCyclic, DistributeDefault, 2}}, OrderC, i32)), 8, 0, 20, 4, 12},
		{"darray, nothing left", must(Darray(3, 2, []Spread{{4, DistributeBlock, 2, 3}}, OrderC, i32)), 0, 0, 16, 0, 0},
		{"dup", must(Dup(wide)), 4, -4, 16, 0, 4},
		{"count 0", must(Contiguous(0, f64)), 0, 0, 0, 0, 0},
		{"vector of empty blocks", must(Vector(7, 0, 3, f64)), 0, 0, 0, 0, 0},
		{"struct of nothing", must(Struct(nil, nil, nil)), 0, 0, 0, 0, 0},
		{"an empty member far away does not count", must(Struct(i64(1, 1), i64(0, 100), []*Type{i32, must(Contiguous(0, i32))})), 4, 0, 4, 0, 4},
		{"2^40 items", must(Contiguous(1<<40, must(Vector(2, 1, 1<<10, f64)))), 1 << 44, 0, (1 << 40) * (8<<10 + 8), 0, (1 << 40) * (8<<10 + 8)},
		{"double_int", Basic(PairFloat64), 12, 0, rounded(12), 0, 12},
		{"short_int", Basic(PairInt16), 6, 0, 8, 0, 8},
		{"2int", Basic(PairInt32), 8, 0, 8, 0, 8},
	} {
		got := [...]int64{c.t.Size(), c.t.LB(), c.t.Extent(), c.t.TrueLB(), c.t.TrueExtent(), c.t.UB()}
		if want := [...]int64{c.size, c.lb, c.extent, c.tlb, c.trueExtent, c.lb + c.extent}; got != want {
			t.Errorf("%s: size, lb, extent, true lb, true extent, ub are %v, want %v", c.name, got, want)
		}
	}
}

// TestRefused has each argument that a constructor refuses.
func TestRefused(t *testing.T) {
	i32 := Basic(Int32)
	freed := must(Contiguous(1, i32))
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	refused := func(name string, want error) func(*Type, error) {
		return func(got *Type, err error) {
			t.Helper()
			if got != nil || !errors.Is(err, want) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
	refused("no type", ErrType)(Contiguous(1, nil))
	refused("freed type", ErrType)(Vector(1, 1, 1, freed))
	refused("no type in a struct", ErrType)(Struct(i64(1), i64(0), []*Type{nil}))
	refused("freed type in a struct", ErrType)(Struct(i64(1), i64(0), []*Type{freed}))
	refused("indexed of a freed type", ErrType)(Indexed(nil, nil, freed))
	refused("resized freed type", ErrType)(Resized(freed, 0, 1))
	refused("dup of nothing", ErrType)(Dup(nil))
	refused("subarray of nothing", ErrType)(Subarray(i64(1), i64(1), i64(0), OrderC, nil))
	refused("darray of nothing", ErrType)(Darray(1, 0, []Spread{{1, DistributeNone, 0, 1}}, OrderC, nil))

	refused("negative count", ErrCount)(Contiguous(-1, i32))
	refused("negative count", ErrCount)(Vector(-1, 1, 1, i32))
	refused("negative length", ErrCount)(Hvector(1, -1, 1, i32))
	refused("negative length", ErrCount)(Indexed(i64(1, -1), i64(0, 0), i32))
	refused("negative length", ErrCount)(HindexedBlock(-1, nil, i32))
	refused("negative length", ErrCount)(Struct(i64(-1), i64(0), []*Type{i32}))

	refused("different lists", ErrArg)(Hindexed(i64(1), i64(0, 0), i32))
	refused("different lists", ErrArg)(Struct(i64(1), i64(0), nil))
	refused("no dimensions", ErrArg)(Subarray(nil, nil, nil, OrderC, i32))
	refused("different dimensions", ErrArg)(Subarray(i64(1, 2), i64(1), i64(0), OrderC, i32))
	refused("size 0", ErrArg)(Subarray(i64(0), i64(0), i64(0), OrderC, i32))
	refused("subsize 0", ErrArg)(Subarray(i64(3), i64(0), i64(0), OrderC, i32))
	refused("subsize beyond size", ErrArg)(Subarray(i64(3), i64(4), i64(0), OrderC, i32))
	refused("negative start", ErrArg)(Subarray(i64(3), i64(1), i64(-1), OrderC, i32))
	refused("start beyond", ErrArg)(Subarray(i64(3), i64(2), i64(2), OrderC, i32))
	refused("no order", ErrArg)(Subarray(i64(3), i64(2), i64(1), 0, i32))

	block := Spread{4, DistributeBlock, DistributeDefault, 2}
	refused("no dimensions", ErrArg)(Darray(1, 0, nil, OrderC, i32))
	refused("rank beyond size", ErrArg)(Darray(2, 2, []Spread{block}, OrderC, i32))
	refused("negative rank", ErrArg)(Darray(2, -1, []Spread{block}, OrderC, i32))
	refused("grid smaller than size", ErrArg)(Darray(3, 0, []Spread{block}, OrderC, i32))
	refused("grid larger than size", ErrArg)(Darray(2, 0, []Spread{block, block}, OrderC, i32))
	refused("no order", ErrArg)(Darray(2, 0, []Spread{block}, 7, i32))
	refused("no distribution", ErrArg)(Darray(2, 0, []Spread{{4, 0, DistributeDefault, 2}}, OrderC, i32))
	refused("none over two", ErrArg)(Darray(2, 0, []Spread{{4, DistributeNone, DistributeDefault, 2}}, OrderC, i32))
	refused("blocks too small", ErrArg)(Darray(2, 0, []Spread{{4, DistributeBlock, 1, 2}}, OrderC, i32))
	refused("blocks of 0", ErrArg)(Darray(2, 0, []Spread{{4, DistributeCyclic, 0, 2}}, OrderC, i32))
	refused("size 0", ErrArg)(Darray(2, 0, []Spread{{0, DistributeBlock, DistributeDefault, 2}}, OrderC, i32))

	huge := must(Contiguous(1<<59, i32))
	refused("size", ErrTooLarge)(Contiguous(16, huge))
	refused("stride", ErrTooLarge)(Vector(3, 1, math.MaxInt64/4, i32))
	refused("stride", ErrTooLarge)(Hvector(3, 1, math.MinInt64, i32))
	refused("displacement", ErrTooLarge)(Indexed(i64(1), i64(math.MaxInt64), i32))
	refused("displacement", ErrTooLarge)(Hindexed(i64(1), i64(math.MinInt64), i32))
	refused("lengths", ErrTooLarge)(IndexedBlock(math.MaxInt64, i64(0, 0), i32))
	refused("upper bound", ErrTooLarge)(Resized(i32, math.MaxInt64, 1))
	refused("array", ErrTooLarge)(Subarray(i64(1<<40, 1<<40), i64(1, 1), i64(0, 0), OrderC, i32))
	refused("array", ErrTooLarge)(Darray(2, 0, []Spread{{1 << 61, DistributeCyclic, 1 << 61, 2}, {8, DistributeNone, 0, 1}}, OrderC, i32))
}

func TestSpan(t *testing.T) {
	i32 := Basic(Int32)
	back := must(Resized(must(Hindexed(i64(1), i64(8), i32)), 0, -16))
	for _, c := range []struct {
		name   string
		t      *Type
		count  int
		lo, hi int64
	}{
		{"one", i32, 1, 0, 4}, {"three", i32, 3, 0, 12}, {"none", i32, 0, 0, 0},
		{"with gaps", must(Vector(2, 1, 3, i32)), 2, 0, 32},
		{"backwards", back, 3, -24, 12},
		{"a pair travels with its padding", Basic(PairInt64), 2, 0, 2 * int64(PairInt64.Size())},
		{"so does one in other types", must(Contiguous(2, Basic(PairInt64))), 1, 0, 2 * int64(PairInt64.Size())},
		{"nothing", must(Contiguous(0, i32)), 9, 0, 0},
	} {
		if lo, hi, err := c.t.Span(c.count); lo != c.lo || hi != c.hi || err != nil {
			t.Errorf("%s: [%d, %d), %v, want [%d, %d)", c.name, lo, hi, err, c.lo, c.hi)
		}
	}
	if _, _, err := i32.Span(-1); !errors.Is(err, ErrCount) {
		t.Errorf("count -1: %v", err)
	}
	if _, _, err := must(Contiguous(1<<50, i32)).Span(1 << 30); !errors.Is(err, ErrTooLarge) {
		t.Errorf("2^82 bytes: %v", err)
	}
}
