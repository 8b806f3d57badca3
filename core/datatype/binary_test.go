package datatype

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/internal/watchdog"
)

// same reports whether two types have the same typemap and bounds, as far as can be
// asked.
func same(a, b *Type) bool {
	for r := range representations {
		if a.Packed(r) != b.Packed(r) {
			return false
		}
	}
	return a.Size() == b.Size() && a.LB() == b.LB() && a.UB() == b.UB() && a.TrueLB() == b.TrueLB() &&
		a.TrueExtent() == b.TrueExtent() && a.Signature(1) == b.Signature(1) && a.def.combiner == b.def.combiner
}

// TestBinaryOfTypes sends random types and packs with what comes out.
func TestBinaryOfTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawType(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		if len(b.m.entries) > 2000 {
			return
		}
		wire, err := b.t.AppendBinary([]byte("head"))
		if err != nil {
			t.Fatal(err)
		}
		got, rest, err := ParseType(append(wire, "tail"...)[4:])
		if err != nil || string(rest) != "tail" || !same(got, b.t) {
			t.Fatalf("%s: %v, %q, %v", b.text, got, rest, err)
		}
		again, err := got.AppendBinary(nil)
		if err != nil || !bytes.Equal(again, wire[4:]) {
			t.Fatalf("%s: % x, then % x, %v", b.text, wire[4:], again, err)
		}
		if err := got.Commit(); err != nil {
			t.Fatal(err)
		}
		from := newArena(t, b, 2)
		from.fill(b, 2)
		packs(t, both{got, b.m, b.text}, Native, from, 2, b.m.pack(Native, from.mem, from.origin, 2))
	})
}

func TestBinaryOfNamed(t *testing.T) {
	for _, n := range namedTypes {
		typ := ByName(n.name)
		wire, err := typ.AppendBinary(nil)
		if got, rest, parseErr := ParseType(wire); err != nil || parseErr != nil || got != typ || len(rest) > 0 {
			t.Errorf("%s: %v, %v, %v", n.name, got, err, parseErr)
		}
	}
	for _, typ := range []*Type{must(F90Real(6, 30)), must(F90Complex(7, Undefined)), must(F90Integer(3))} {
		wire, err := must(Contiguous(2, typ)).AppendBinary(nil)
		if got, _, parseErr := ParseType(wire); err != nil || parseErr != nil || got.def.child != typ.def {
			t.Errorf("%v: %v, %v", typ, err, parseErr)
		}
	}
}

// TestBinaryRefused has what is no type, and types that are too much.
func TestBinaryRefused(t *testing.T) {
	deep := Basic(Int32)
	for range maxDepth + 1 {
		deep = must(Dup(deep))
	}
	wide := Basic(Int32)
	for range 17 { // 2^17 types, made of 17
		wide = must(Struct(i64(1, 1), i64(0, 0), []*Type{wide, wide}))
	}
	long := must(IndexedBlock(1, make([]int64, maxArgs), Basic(Int32)))
	for name, typ := range map[string]*Type{"deep": deep, "wide": wide, "long": long} {
		if b, err := typ.AppendBinary(nil); !errors.Is(err, ErrTooLarge) || len(b) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := (*Type)(nil).AppendBinary(nil); !errors.Is(err, ErrType) {
		t.Errorf("nothing: %v", err)
	}
	const version, named, contiguous, vector, structure = binaryVersion, byte(CombinerNamed), byte(CombinerContiguous), byte(CombinerVector), byte(CombinerStruct)
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrEncoding},
		{"other version", []byte{2, named, 0x47, 4}, ErrEncoding},
		{"only a version", []byte{version}, ErrEncoding},
		{"no handle", []byte{version, named}, ErrEncoding},
		{"no such handle", []byte{version, named, 1}, ErrEncoding},
		{"handle of many bits", []byte{version, named, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, ErrEncoding},
		{"no such combiner", []byte{version, 99, 0, 0}, ErrEncoding},
		{"no arguments", []byte{version, contiguous}, ErrEncoding},
		{"too few arguments", []byte{version, vector, 2, 2, 2, 0, named, 0xc7, 4}, ErrEncoding},
		{"more arguments than bytes", []byte{version, contiguous, 255, 255, 3, 0}, ErrEncoding},
		{"cut argument", []byte{version, contiguous, 1, 128}, ErrEncoding},
		{"no type", []byte{version, contiguous, 1, 2, 0}, ErrEncoding},
		{"a struct with one type of two", []byte{version, structure, 3, 4, 2, 2, 2, 0, 8, named, 0xc7, 4}, ErrEncoding},
		{"negative count", []byte{version, contiguous, 1, 1, 0, named, 0xc7, 4}, ErrCount},
		{"too deep", append(append([]byte{version}, bytes.Repeat([]byte{byte(CombinerDup), 0, 0}, maxDepth+1)...), named, 0xc7, 4), ErrEncoding},
	} {
		if typ, _, err := ParseType(c.b); typ != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", c.name, typ, err)
		}
	}
	if typ, _, err := ParseType([]byte{version, contiguous, 1, 4, 0, named, 0xc7, 4}); err != nil || typ.Size() != 2 {
		t.Errorf("two bytes: %v, %v", typ, err)
	}
}

// FuzzParseType: whatever comes is refused or a type that tells itself in the same
// way, and that can be committed.
func FuzzParseType(f *testing.F) {
	i32 := Basic(Int32)
	for _, typ := range []*Type{
		i32, must(Vector(3, 1, 2, i32)), must(Hvector(3, 1, 9, i32)), must(Indexed(i64(1, 2), i64(0, 3), i32)), must(Hindexed(i64(1, 2), i64(0, 30), i32)),
		must(IndexedBlock(1, i64(2, 0), i32)), must(HindexedBlock(1, i64(2, 0), i32)), must(Resized(i32, -1, 7)), must(Dup(i32)), must(F90Real(6, 30)),
		must(Struct(i64(1, 2), i64(0, 8), []*Type{i32, must(Contiguous(2, Basic(PairFloat64)))})),
		must(Subarray(i64(4, 5), i64(2, 3), i64(1, 0), OrderC, i32)),
		must(Darray(2, 1, []Spread{{9, DistributeCyclic, 2, 2}}, OrderFortran, i32)),
	} {
		b, err := typ.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer watchdog.Start()()
		typ, rest, err := ParseType(data)
		if err != nil {
			return
		}
		b, err := typ.AppendBinary(nil)
		if err != nil {
			t.Fatalf("%v cannot be told: %v", typ, err)
		}
		again, _, err := ParseType(b)
		if err != nil || !same(typ, again) || len(rest) > len(data) {
			t.Fatalf("%v became %v, %v", typ, again, err)
		}
		if err := typ.Commit(); err != nil {
			t.Fatal(err)
		}
		if lo, hi, err := typ.Span(3); err == nil && lo > hi {
			t.Fatalf("%v spans [%d, %d)", typ, lo, hi)
		}
		_ = fmt.Sprint(typ.Run(2))
	})
}
