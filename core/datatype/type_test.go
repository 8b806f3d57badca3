package datatype

import (
	"errors"
	"testing"
	"unsafe"
)

func TestCommit(t *testing.T) {
	typ := must(Vector(2, 1, 2, Basic(Int32)))
	if err := typ.Check(); typ.Committed() || !errors.Is(err, ErrType) {
		t.Errorf("before Commit: %v", err)
	}
	if d := must(Dup(typ)); d.Committed() {
		t.Error("the duplicate of a type that is not committed is")
	}
	for range 2 { // the second one does nothing
		if err := typ.Commit(); err != nil || typ.Check() != nil {
			t.Errorf("%v, %v", err, typ.Check())
		}
	}
	if d := must(Dup(typ)); !d.Committed() {
		t.Error("the duplicate of a committed type is not committed")
	}
	if err := Basic(Int32).Check(); err != nil {
		t.Errorf("a named type: %v", err)
	}
}

// A freed type is refused, but what was made of it works, and so does what is
// under way.
func TestFree(t *testing.T) {
	inner := must(Vector(2, 1, 2, Basic(Int32)))
	outer := must(Contiguous(1, inner))
	if err := errors.Join(inner.Commit(), inner.Free(), outer.Commit()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"again": inner.Free(), "use": inner.Check(), "commit": inner.Commit(), "name": inner.SetName("x"), "valid": inner.Valid(),
		"predefined": Basic(Float64).Free(), "nothing": (*Type)(nil).Free(), "parameterized": must(F90Real(6, 30)).Free(),
	} {
		if !errors.Is(err, ErrType) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mem := []int32{1, 2, 3}
	for _, typ := range []*Type{inner, outer} {
		b := make([]byte, 8)
		if n := typ.Pack(b, unsafe.Pointer(&mem[0]), 1, 0); n != 8 || View[int32](b)[1] != 3 {
			t.Errorf("%v packs %d bytes: % x", typ, n, b)
		}
	}
	if Basic(Float64).Check() != nil {
		t.Error("a refused Free did something")
	}
}

func TestNothing(t *testing.T) {
	var none *Type
	if none.Size() != 0 || none.Extent() != 0 || none.Packed(External32) != 0 || none.Committed() || none.Named() ||
		none.Name() != "MPI_DATATYPE_NULL" || none.String() != "MPI_DATATYPE_NULL" || none.Handle() != 0 || none.Attached() != nil {
		t.Error("no type is something")
	}
	if _, ok := none.Homogeneous(); ok {
		t.Error("no type has elements")
	}
	for _, err := range []error{none.Valid(), none.Check(), none.Commit(), none.SetName(""), (&Type{}).Check()} {
		if !errors.Is(err, ErrType) {
			t.Errorf("no type: %v", err)
		}
	}
}

func TestTypeNames(t *testing.T) {
	typ := must(Contiguous(2, Basic(Float32)))
	if typ.Name() != "" || typ.String() != "a type made by CONTIGUOUS" {
		t.Errorf("%q, %v", typ.Name(), typ)
	}
	if err := typ.SetName("halo"); err != nil || typ.Name() != "halo" {
		t.Errorf("%q, %v", typ.Name(), err)
	}
	if d := must(Dup(typ)); d.Name() != "" {
		t.Errorf("Dup copied the name %q", d.Name())
	}
	typ.Attach(7)
	if typ.Attached() != 7 {
		t.Error("what was attached is gone")
	}
}

// TestNamed has the predefined types by name and by handle.
func TestNamed(t *testing.T) {
	for _, c := range []struct {
		name         string
		handle       int
		size, extent int64
	}{
		{"MPI_BYTE", 0x247, 1, 1}, {"MPI_PACKED", 0x207, 1, 1}, {"MPI_CHAR", 0x243, 1, 1}, {"MPI_WCHAR", 0x23c, 4, 4},
		{"MPI_INT", 0x209, 4, 4}, {"MPI_LONG", 0x20a, word, word}, {"MPI_LONG_LONG", 0x20b, 8, 8}, {"MPI_UNSIGNED_SHORT", 0x20c, 2, 2},
		{"MPI_AINT", 0x201, 8, 8}, {"MPI_COUNT", 0x202, 8, 8}, {"MPI_OFFSET", 0x203, 8, 8}, {"MPI_C_BOOL", 0x238, 1, 1},
		{"MPI_FLOAT", 0x210, 4, 4}, {"MPI_DOUBLE", 0x214, 8, 8}, {"MPI_C_DOUBLE_COMPLEX", 0x216, 16, 16},
		{"MPI_2INT", 0x22b, 8, 8}, {"MPI_2REAL", 0x230, 8, 8}, {"MPI_2DOUBLE_PRECISION", 0x231, 16, 16},
		{"MPI_SHORT_INT", 0x22c, 6, 8}, {"MPI_FLOAT_INT", 0x228, 8, 8}, {"MPI_LOGICAL", 0x218, 4, 4}, {"MPI_INTEGER8", 0x2d9, 8, 8},
	} {
		typ := ByName(c.name)
		if typ == nil || typ != ByHandle(c.handle) || typ.Handle() != c.handle || typ.Name() != c.name || !typ.Named() ||
			!typ.Committed() || typ.Size() != c.size || typ.Extent() != c.extent {
			t.Errorf("%s: %v, handle %#x, size %d, extent %d", c.name, typ, typ.Handle(), typ.Size(), typ.Extent())
		}
	}
	for k := Byte; k.Valid(); k++ {
		typ := Basic(k)
		if got, ok := typ.Kind(); got != k || !ok {
			t.Errorf("the type of %v has the kind %v", k, got)
		}
		if h, ok := typ.Homogeneous(); h != k || !ok {
			t.Errorf("the type of %v is homogeneous of %v", k, h)
		}
		if !typ.Contig() {
			t.Errorf("%v is not its own stream", k)
		}
	}
	if ByName("MPI_LONG_LONG_INT") != ByName("MPI_LONG_LONG") || ByName("MPI_C_COMPLEX") != ByName("MPI_C_FLOAT_COMPLEX") {
		t.Error("aliases are other types")
	}
	if Basic(Invalid) != nil || Basic(kinds) != nil || ByName("MPI_REAL32") != nil || ByHandle(0x2ea) != nil {
		t.Error("types that do not exist")
	}
	if x87 && ByName("MPI_LONG_DOUBLE_INT").Extent() != 32 && word == 8 {
		t.Error("long double and int")
	}
}

// TestRuns tells memory that needs no packing from other memory.
func TestRuns(t *testing.T) {
	i32 := Basic(Int32)
	for _, c := range []struct {
		name        string
		t           *Type
		contig      bool
		one, three  bool
		disp        int64
		homogeneous bool
	}{
		{"contiguous", must(Contiguous(4, i32)), true, true, true, 0, true},
		{"dense vector", must(Vector(4, 2, 2, i32)), true, true, true, 0, true},
		{"vector", must(Vector(4, 1, 2, i32)), false, false, false, 0, true},
		{"neighbours", must(Indexed(i64(1, 2), i64(0, 1), i32)), true, true, true, 0, true},
		{"wrong order", must(Indexed(i64(1, 2), i64(2, 0), i32)), false, false, false, 0, true},
		{"away from the origin", must(Resized(must(Hindexed(i64(1), i64(8), i32)), 0, 4)), false, true, true, 8, true},
		{"padding behind", must(Resized(i32, 0, 8)), false, true, false, 0, true},
		{"members without gaps", must(Struct(i64(1, 1), i64(0, 4), []*Type{i32, Basic(Float32)})), true, true, true, 0, false},
		{"members with a gap", must(Struct(i64(1, 1), i64(0, 8), []*Type{i32, Basic(Float64)})), false, false, false, 0, false},
		{"pairs with their padding", must(Contiguous(2, Basic(PairFloat64))), true, true, true, 0, true},
	} {
		if err := c.t.Commit(); err != nil {
			t.Fatal(err)
		}
		disp, one := c.t.Run(1)
		_, three := c.t.Run(3)
		if c.t.Contig() != c.contig || one != c.one || three != c.three || one && disp != c.disp {
			t.Errorf("%s: contiguous %v, one run %v at %d, of three %v", c.name, c.t.Contig(), one, disp, three)
		}
		if _, ok := c.t.Homogeneous(); ok != c.homogeneous {
			t.Errorf("%s: homogeneous %v", c.name, ok)
		}
	}
}
