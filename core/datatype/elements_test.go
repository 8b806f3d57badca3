package datatype

import (
	"testing"

	"pgregory.net/rapid"
)

// TestCounts has what Get_count and Get_elements say of a number of bytes.
func TestCounts(t *testing.T) {
	i32, f64 := Basic(Int32), Basic(Float64)
	mixed := must(Struct(i64(2, 1), i64(0, 8), []*Type{i32, f64}))
	twice := must(Vector(2, 1, 3, mixed))
	none := must(Contiguous(0, f64))
	pair := Basic(PairInt16)
	const no = Undefined
	for _, c := range []struct {
		name                   string
		t                      *Type
		r                      Representation
		bytes, count, elements int64
	}{
		{"whole", i32, Native, 12, 3, 3},
		{"nothing", i32, Native, 0, 0, 0},
		{"cut element", i32, Native, 13, no, no},
		{"whole items", mixed, Native, 32, 2, 6},
		{"part of an item", mixed, Native, 20, no, 4},
		{"part of an item, later", twice, Native, 32 + 24, no, 6 + 5},
		{"cut in the second member", mixed, Native, 12, no, no},
		{"no elements, no bytes", none, Native, 0, 0, 0},
		{"no elements, but bytes", none, Native, 4, no, no},
		{"negative", i32, Native, -4, no, no},
		{"pairs", pair, Native, 16, 2, 4},
		{"value of a pair", pair, Native, 10, no, 3},
		{"pairs in external32", pair, External32, 12, 2, 4},
		{"value of a pair in external32", pair, External32, 8, no, 3},
		{"cut pair", pair, External32, 7, no, no},
		{"two of one type", Basic(Pair2Float64), Native, 24, no, 3},
		{"longs in external32", Basic(Long), External32, 8, 2, 2},
		{"longs elsewhere", Basic(Long), NativeLE, 8, 1, 1},
		{"more than 32 bits", Basic(Byte), Native, 1 << 40, 1 << 40, 1 << 40},
	} {
		count, ok := c.t.Count(c.r, c.bytes)
		if count != c.count || ok != (c.count != no) {
			t.Errorf("%s: %d items, %v, want %d", c.name, count, ok, c.count)
		}
		elements, ok := c.t.Elements(c.r, c.bytes)
		if elements != c.elements || ok != (c.elements != no) {
			t.Errorf("%s: %d elements, %v, want %d", c.name, elements, ok, c.elements)
		}
	}
	if n, ok := mixed.Stream(Native, -1); n != 0 || ok {
		t.Error("-1 elements")
	}
	if n, ok := none.Stream(Native, 1); n != 0 || ok {
		t.Error("an element of what has none")
	}
}

// TestElementsAgainstTypemap counts one element after the other.
func TestElementsAgainstTypemap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawType(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		r := Representation(rapid.IntRange(0, int(representations)-1).Draw(t, "representation"))
		if len(b.m.entries) == 0 || len(b.m.entries) > 500 {
			return
		}
		bytes, elements := b.m.packed(r), int64(0)
		for _, e := range b.m.entries {
			elements += Basic(e.kind).def.elements
		}
		bytes, elements = 2*bytes, 2*elements
		for _, e := range b.m.entries {
			if n, ok := b.t.Elements(r, bytes); !ok || n != elements {
				t.Fatalf("%s: %d elements, %v, in %d bytes of %v, want %d", b.text, n, ok, bytes, r, elements)
			}
			if n, ok := b.t.Stream(r, elements); !ok || n != bytes {
				t.Fatalf("%s: %d bytes, %v, for %d elements in %v, want %d", b.text, n, ok, elements, r, bytes)
			}
			if n, ok := b.t.Elements(r, bytes+1); ok && r.Size(e.kind) > 1 {
				t.Fatalf("%s: %d elements in %d bytes of %v, one byte into a %v", b.text, n, bytes+1, r, e.kind)
			}
			bytes, elements = bytes+int64(r.Size(e.kind)), elements+Basic(e.kind).def.elements
		}
	})
}
