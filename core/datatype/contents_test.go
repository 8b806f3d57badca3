package datatype

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

// TestContents is the standard's table of envelopes and contents.
func TestContents(t *testing.T) {
	i32, f64 := Basic(Int32), Basic(Float64)
	derived := must(Contiguous(2, i32))
	for _, c := range []struct {
		combiner              Combiner
		t                     *Type
		ints, addrs           []int64
		largeInts, largeCount []int64
		types                 []*Type // nil: a new handle
	}{
		{CombinerDup, must(Dup(f64)), nil, nil, nil, nil, []*Type{f64}},
		{CombinerContiguous, must(Contiguous(7, f64)), i64(7), nil, nil, i64(7), []*Type{f64}},
		{CombinerVector, must(Vector(3, 1, -2, f64)), i64(3, 1, -2), nil, nil, i64(3, 1, -2), []*Type{f64}},
		{CombinerHvector, must(Hvector(3, 1, 99, f64)), i64(3, 1), i64(99), nil, i64(3, 1, 99), []*Type{f64}},
		{CombinerIndexed, must(Indexed(i64(1, 2), i64(5, 6), derived)), i64(2, 1, 2, 5, 6), nil, nil, i64(2, 1, 2, 5, 6), []*Type{nil}},
		{CombinerHindexed, must(Hindexed(i64(1, 2), i64(5, 6), f64)), i64(2, 1, 2), i64(5, 6), nil, i64(2, 1, 2, 5, 6), []*Type{f64}},
		{CombinerIndexedBlock, must(IndexedBlock(4, i64(5, 6), f64)), i64(2, 4, 5, 6), nil, nil, i64(2, 4, 5, 6), []*Type{f64}},
		{CombinerHindexedBlock, must(HindexedBlock(4, i64(5, 6), f64)), i64(2, 4), i64(5, 6), nil, i64(2, 4, 5, 6), []*Type{f64}},
		{CombinerStruct, must(Struct(i64(1, 2), i64(0, 8), []*Type{derived, f64})), i64(2, 1, 2), i64(0, 8), nil, i64(2, 1, 2, 0, 8), []*Type{nil, f64}},
		{CombinerResized, must(Resized(f64, -8, 24)), nil, i64(-8, 24), nil, i64(-8, 24), []*Type{f64}},
		{CombinerSubarray, must(Subarray(i64(4, 5), i64(2, 3), i64(1, 0), OrderC, f64)), i64(2, 4, 5, 2, 3, 1, 0, 12), nil,
			i64(2, 12), i64(4, 5, 2, 3, 1, 0), []*Type{f64}},
		{CombinerDarray, must(Darray(6, 4, []Spread{{9, DistributeBlock, 5, 2}, {8, DistributeCyclic, DistributeDefault, 3}}, OrderFortran, f64)),
			i64(6, 4, 2, 9, 8, 17, 18, 5, 19, 2, 3, 15), nil, i64(6, 4, 2, 17, 18, 5, 19, 2, 3, 15), i64(9, 8), []*Type{f64}},
		{CombinerF90Real, must(F90Real(6, 30)), i64(6, 30), nil, i64(6, 30), nil, nil},
		{CombinerF90Complex, must(F90Complex(Undefined, 30)), i64(Undefined, 30), nil, i64(Undefined, 30), nil, nil},
		{CombinerF90Integer, must(F90Integer(9)), i64(9), nil, i64(9), nil, nil},
	} {
		holds(t, c.combiner, c.t, c.ints, c.addrs, nil, c.types)
		if !c.t.Named() {
			holds(t, c.combiner, must(c.t.WithLarge()), c.largeInts, nil, c.largeCount, c.types)
		}
	}
}

func holds(t *testing.T, combiner Combiner, typ *Type, ints, addrs, counts []int64, types []*Type) {
	t.Helper()
	got, err := typ.Contents()
	if err != nil || got.Combiner != combiner || !slices.Equal(got.Ints, ints) || !slices.Equal(got.Addrs, addrs) || !slices.Equal(got.Counts, counts) {
		t.Errorf("%v: %v, %v", combiner, got, err)
	}
	e, err := typ.Envelope()
	if want := (Envelope{combiner, len(ints), len(addrs), len(counts), len(types)}); e != want || err != nil {
		t.Errorf("%v: envelope %v, %v, want %v", combiner, e, err, want)
	}
	if len(got.Types) != len(types) {
		t.Fatalf("%v: made of %v", combiner, got.Types)
	}
	for i, want := range types {
		switch have := got.Types[i]; {
		case want != nil && have != want:
			t.Errorf("%v: made of %v, want %v", combiner, have, want)
		case want == nil && (have.Size() != 8 || have.Free() != nil || typ.Valid() != nil):
			t.Errorf("%v: made of %v, which is no new handle", combiner, have)
		}
	}
}

// A component that was freed is still found in the contents, in a new handle.
func TestContentsOfFreed(t *testing.T) {
	inner := must(Contiguous(2, Basic(Int32)))
	outer := must(Contiguous(3, inner))
	if err := inner.Free(); err != nil {
		t.Fatal(err)
	}
	c, err := outer.Contents()
	if err != nil || c.Types[0] == inner || c.Types[0].Valid() != nil {
		t.Errorf("%v, %v", c, err)
	}
	again, err := c.Types[0].Contents()
	if err != nil || !slices.Equal(again.Ints, i64(2)) || again.Types[0] != Basic(Int32) {
		t.Errorf("%v, %v", again, err)
	}
}

func TestContentsOfNamed(t *testing.T) {
	if e, err := Basic(Int32).Envelope(); err != nil || e != (Envelope{Combiner: CombinerNamed}) {
		t.Errorf("%v, %v", e, err)
	}
	for _, typ := range []*Type{Basic(Int32), nil} {
		if c, err := typ.Contents(); !errors.Is(err, ErrType) || !reflect.DeepEqual(c, Contents{}) {
			t.Errorf("%v, %v", c, err)
		}
		if _, err := typ.WithLarge(); !errors.Is(err, ErrType) {
			t.Error(err)
		}
	}
}

// Arguments that C's int cannot hold are large counts without being told so.
func TestLarge(t *testing.T) {
	if must(Contiguous(1<<31-1, Basic(Byte))).Large() || !must(Contiguous(1<<31, Basic(Byte))).Large() {
		t.Error("2^31")
	}
	if must(Hvector(2, 1, 1<<40, Basic(Byte))).Large() {
		t.Error("addresses have 64 bits anyway")
	}
	wide := must(must(Vector(3, 1, 2, Basic(Int16))).WithLarge())
	if wide.Size() != 6 || wide.Extent() != 10 || !wide.Large() {
		t.Errorf("size %d, extent %d", wide.Size(), wide.Extent())
	}
}

func TestCombinerNames(t *testing.T) {
	for c, want := range map[Combiner]string{CombinerNamed: "NAMED", CombinerStruct: "STRUCT", CombinerResized: "RESIZED", CombinerValueIndex: "VALUE_INDEX", 100: "COMBINER(100)", 118: "COMBINER(118)"} {
		if c.String() != want {
			t.Errorf("%d is %v, want %s", int(c), c, want)
		}
	}
}
