package datatype

import (
	"errors"
	"testing"
	"unsafe"
)

// A user's operation on a derived type gets the origins and the type.
func TestTypeOp(t *testing.T) {
	typ := must(Hindexed(i64(1, 1), i64(4, -4), Basic(Int32)))
	if err := typ.Commit(); err != nil {
		t.Fatal(err)
	}
	add := NewTypeOp(func(in, inout unsafe.Pointer, n int, of *Type) {
		if n != 1 || of != typ {
			t.Errorf("%d items of %v", n, of)
		}
		for _, d := range []int{4, -4} {
			*(*int32)(unsafe.Add(inout, d)) += *(*int32)(unsafe.Add(in, d))
		}
	}, true)
	a, b := []int32{1, 9, 2}, []int32{10, 99, 20}
	if err := add.ApplyType(unsafe.Pointer(&a[1]), unsafe.Pointer(&b[1]), typ, 1); err != nil || b[0] != 11 || b[1] != 99 || b[2] != 22 {
		t.Errorf("%v, %v", b, err)
	}
	if add.Predefined() || !add.Commutative() || add.CheckType(typ) != nil || add.CheckType(Basic(Char)) != nil {
		t.Error("a user's operation takes any type")
	}
	if err := add.ApplyType(nil, nil, typ, 0); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	if err := add.ApplyType(nil, nil, typ, -1); !errors.Is(err, ErrCount) {
		t.Errorf("of -1: %v", err)
	}
	count := 0
	basic := NewTypeOp(func(_, _ unsafe.Pointer, n int, of *Type) {
		if count = n; of != Basic(Int32) {
			t.Errorf("elements of %v", of)
		}
	}, true)
	if err := basic.Apply(Bytes(a), Bytes(b), Int32, 3); err != nil || count != 3 {
		t.Errorf("of elements: %d, %v", count, err)
	}
}

// TestCheckType has which operations take which types.
func TestCheckType(t *testing.T) {
	i32 := Basic(Int32)
	derived, loose := must(Contiguous(2, i32)), must(Contiguous(2, i32))
	mixed := must(Struct(i64(1, 1), i64(0, 8), []*Type{i32, Basic(Float64)}))
	none := must(Contiguous(0, i32))
	if err := errors.Join(derived.Commit(), mixed.Commit(), none.Commit()); err != nil {
		t.Fatal(err)
	}
	plain := NewOp(func(_, _ []byte, _ int, _ Kind) {}, true, Int32)
	for _, c := range []struct {
		name             string
		op               *Op
		t                *Type
		want, accumulate error
	}{
		{"basic", Sum, i32, nil, nil},
		{"derived", Sum, derived, ErrOp, nil},
		{"mixed", Sum, mixed, ErrOp, ErrOp},
		{"not committed", Sum, loose, ErrType, ErrType},
		{"nothing", Sum, nil, ErrType, ErrType},
		{"no operation", nil, i32, ErrOp, ErrOp},
		{"pair", MinLoc, Basic(PairFloat64), nil, nil},
		{"sum of pairs", Sum, Basic(PairFloat64), ErrOp, ErrOp},
		{"minloc of numbers", MinLoc, i32, ErrOp, ErrOp},
		{"sum of text", Sum, Basic(Char), ErrOp, ErrOp},
		{"bits of bytes", BOr, Basic(Byte), nil, nil},
		{"a user's on elements", plain, i32, nil, ErrOp},
		{"a user's on elements of derived types", plain, derived, ErrOp, ErrOp},
		{"no elements", Sum, none, ErrOp, nil},
		{"replace", Replace, i32, ErrOp, nil},
		{"replace anything", Replace, mixed, ErrOp, nil},
		{"no_op", NoOp, mixed, ErrOp, nil},
	} {
		if err := c.op.CheckType(c.t); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err := c.op.CheckAccumulate(c.t); !errors.Is(err, c.accumulate) {
			t.Errorf("%s, accumulated: %v, want %v", c.name, err, c.accumulate)
		}
	}
}

func TestApplyType(t *testing.T) {
	a, b := []int32{1, 2}, []int32{10, 20}
	pa, pb := unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0])
	if err := Sum.ApplyType(pa, pb, ByName("MPI_INT"), 2); err != nil || b[0] != 11 || b[1] != 22 {
		t.Errorf("%v, %v", b, err)
	}
	if err := Sum.ApplyType(pa, pb, must(Dup(must(Contiguous(2, Basic(Int32))))), 1); !errors.Is(err, ErrType) {
		t.Errorf("not committed: %v", err)
	}
}

func TestAccumulate(t *testing.T) {
	a, b := []int16{1, 2, 3}, []int16{10, 20, 30}
	if err := NoOp.Accumulate(Bytes(a), Bytes(b), Int16, 3); err != nil || b[0] != 10 {
		t.Errorf("%v, %v", b, err)
	}
	if err := Sum.Accumulate(Bytes(a), Bytes(b), Int16, 1); err != nil || b[0] != 11 {
		t.Errorf("%v, %v", b, err)
	}
	if err := Replace.Accumulate(Bytes(a), Bytes(b), Int16, 2); err != nil || b[0] != 1 || b[1] != 2 || b[2] != 30 {
		t.Errorf("%v, %v", b, err)
	}
	if err := Replace.Accumulate(Bytes(a), Bytes(b), Int16, 4); !errors.Is(err, ErrBuffer) {
		t.Error(err)
	}
	if err := Replace.Accumulate(nil, nil, Invalid, 0); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	if err := Replace.Apply(Bytes(a), Bytes(b), Int16, 1); !errors.Is(err, ErrOp) {
		t.Errorf("as a reduction: %v", err)
	}
}
