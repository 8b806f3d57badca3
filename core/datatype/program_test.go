package datatype

import (
	"encoding/binary"
	"testing"
	"unsafe"
)

// nodes counts what a program is made of, arrays by their elements.
func (x *node) nodes() int {
	if x == nil {
		return 0
	}
	n := 1 + len(x.disps) + len(x.first) + x.child.nodes()
	for i := range x.parts {
		n += x.parts[i].nodes()
	}
	return n
}

// Regular types stay small however large they are, and irregular ones are linear
// in their blocks.
func TestProgramSize(t *testing.T) {
	i32, f64 := Basic(Int32), Basic(Float64)
	const blocks = 1 << 16
	regular, odd, lens := make([]int64, blocks), make([]int64, blocks), make([]int64, blocks)
	for i := range regular {
		regular[i], odd[i], lens[i] = int64(i)*3, int64(i)*5+int64(i%2), int64(i%3)
	}
	member := must(Struct(i64(1, 1), i64(0, 8), []*Type{i32, f64}))
	for _, c := range []struct {
		name string
		t    *Type
		most int
	}{
		{"vector of a million", must(Vector(1<<20, 1, 2, f64)), 2},
		{"vector of vectors", must(Vector(1<<20, 1, 2, must(Vector(1<<20, 2, 3, i32)))), 3},
		{"regular indices", must(IndexedBlock(1, regular, i32)), 2},
		{"neighbouring indices", must(IndexedBlock(3, regular, i32)), 1},
		{"odd indices", must(IndexedBlock(1, odd, i32)), 2 + blocks},
		{"odd lengths", must(Indexed(lens, odd, i32)), 3 + 2*blocks},
		{"array of structs", must(Contiguous(1<<20, member)), 8},
		{"structs in odd places", must(IndexedBlock(1, odd, member)), 8 + blocks},
		{"cube", must(Subarray(i64(999, 999, 999), i64(500, 500, 500), i64(1, 1, 1), OrderC, f64)), 3},
		{"cyclic", must(Darray(4, 1, []Spread{{1 << 20, DistributeCyclic, 3, 4}}, OrderC, f64)), 5},
		{"nested", must(Contiguous(9, must(Contiguous(9, must(Dup(must(Contiguous(9, f64)))))))), 1},
		{"dense struct", must(Struct(i64(2, 3), i64(0, 16), []*Type{f64, f64})), 1},
	} {
		if err := c.t.Commit(); err != nil {
			t.Fatal(err)
		}
		if n := c.t.def.prog.Load().bytes.nodes(); n > c.most {
			t.Errorf("%s: %d nodes, want %d at most", c.name, n, c.most)
		}
	}
}

// TestSeek packs from the middle of streams that are too long to go through. All
// blocks are at the same place, so that there is memory for them.
func TestSeek(t *testing.T) {
	var mem [16]byte
	binary.NativeEndian.PutUint64(mem[:], 0x0102030405060708)
	binary.NativeEndian.PutUint64(mem[8:], 0x090a0b0c0d0e0f10)
	base := unsafe.Pointer(&mem)
	loop := must(Hvector(1<<58, 1, 0, Basic(Uint64)))
	nested := must(Hvector(1<<29, 1, 0, must(Hvector(1<<28, 1, 0, must(Struct(i64(1, 1), i64(8, 0), []*Type{Basic(Uint64), Basic(Uint64)}))))))
	list := must(Hindexed(i64(1<<50, 1<<51, 1<<52), i64(0, 8, 0), must(Resized(Basic(Uint64), 0, 0))))
	for name, typ := range map[string]*Type{"loop": loop, "nested": nested, "list": list} {
		if err := typ.Commit(); err != nil {
			t.Fatal(err)
		}
		var got [8]byte
		if n := typ.Pack(got[:], base, 1, typ.Packed(Native)-8); n != 8 || got != [8]byte(mem[:8]) {
			t.Errorf("%s: the end is % x, %d bytes", name, got, n)
		}
		if n := typ.Encode(NativeBE, got[:], base, 1, typ.Packed(NativeBE)-5); n != 5 || got[0] != 4 || got[4] != 8 {
			t.Errorf("%s: the end is % x, %d bytes", name, got, n)
		}
	}
	var got [8]byte
	if list.Pack(got[:], base, 1, 8*(1<<50)+8); got != [8]byte(mem[8:]) {
		t.Errorf("the second block of the list is % x", got)
	}
}
