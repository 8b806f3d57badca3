package datatype

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// arena is memory for count items of a type, whose origin is somewhere inside.
type arena struct {
	mem    []byte
	origin int64
}

func newArena(t *rapid.T, b both, count int) arena {
	lo, hi, err := b.t.Span(count)
	if err != nil {
		t.Fatal(err)
	}
	const slack = 8
	lo, hi = min(lo, 0)-slack, max(hi, 0)+slack
	return arena{mem: make([]byte, hi-lo), origin: -lo}
}

// base is the origin's address.
func (a arena) base() unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(a.mem)), int(a.origin))
}

// fill makes memory that no conversion changes: proper bools, long doubles that
// are numbers, narrow longs.
func (a arena) fill(b both, count int) {
	for i := range a.mem {
		a.mem[i] = byte(i*7 + i>>8 + 1)
	}
	for i := range int64(count) {
		for _, e := range b.m.entries {
			at := a.origin + i*b.m.extent() + e.disp
			element := a.mem[at : at+int64(e.kind.Size())]
			raw := bytes.Repeat([]byte{byte(at) & 1}, External32.Size(e.kind))
			if err := External32.Decode(element, raw, e.kind, 1); err != nil {
				panic(err)
			}
		}
	}
}

// TestTypesAgainstTypemap holds random types to a model that enumerates them.
func TestTypesAgainstTypemap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawType(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		if len(b.m.entries) > 5000 {
			t.Skip("too many entries for the model") // rapid's: draws another
		}
		lb, ub := b.m.bounds()
		if b.t.LB() != lb || b.t.UB() != ub || b.t.Extent() != ub-lb {
			t.Fatalf("%s: bounds %d and %d, want %d and %d", b.text, b.t.LB(), b.t.UB(), lb, ub)
		}
		tlb, tub := b.m.trueBounds()
		if b.t.TrueLB() != tlb || b.t.TrueExtent() != tub-tlb {
			t.Fatalf("%s: true bounds %d and %d more, want %d and %d more", b.text, b.t.TrueLB(), b.t.TrueExtent(), tlb, tub-tlb)
		}
		if b.t.Size() != b.m.size() {
			t.Fatalf("%s: size %d, want %d", b.text, b.t.Size(), b.m.size())
		}
		for r := range representations {
			if b.t.Packed(r) != b.m.packed(r) {
				t.Fatalf("%s: %v takes %d bytes, want %d", b.text, r, b.t.Packed(r), b.m.packed(r))
			}
		}
	})
}

// TestPackAgainstTypemap cuts streams anywhere.
func TestPackAgainstTypemap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawType(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		count := rapid.IntRange(0, 3).Draw(t, "count")
		if len(b.m.entries) > 2000 {
			t.Skip("too many entries for the model") // rapid's: draws another
		}
		if err := b.t.Commit(); err != nil {
			t.Fatal(err)
		}
		r := Representation(rapid.IntRange(0, int(representations)-1).Draw(t, "representation"))
		from := newArena(t, b, count)
		from.fill(b, count)
		want := b.m.pack(r, from.mem, from.origin, count)
		packs(t, b, r, from, count, want)
		unpacks(t, b, r, from, count, want)
	})
}

// packs packs in parts of random sizes, and one part from anywhere.
func packs(t *rapid.T, b both, r Representation, from arena, count int, want []byte) {
	var got []byte
	for len(got) < len(want) {
		part := make([]byte, rapid.IntRange(1, 40).Draw(t, "part"))
		n := b.t.Encode(r, part, from.base(), count, int64(len(got)))
		if n != min(len(part), len(want)-len(got)) {
			t.Fatalf("%s: %d of %d bytes packed at %d of %d", b.text, n, len(part), len(got), len(want))
		}
		got = append(got, part[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: %v of %d:\n% x, want\n% x", b.text, r, count, got, want)
	}
	off := rapid.IntRange(0, len(want)).Draw(t, "off")
	rest := make([]byte, len(want)+5)
	if n := b.t.Encode(r, rest, from.base(), count, int64(off)); !bytes.Equal(rest[:n], want[off:]) {
		t.Fatalf("%s: %v of %d from %d on:\n% x, want\n% x", b.text, r, count, off, rest[:n], want[off:])
	}
}

func unpacks(t *rapid.T, b both, r Representation, from arena, count int, stream []byte) {
	got, want := newArena(t, b, count), newArena(t, b, count)
	b.m.unpack(r, want.mem, want.origin, count, stream)
	var carry Carry
	for off := 0; off < len(stream); {
		n := min(rapid.IntRange(1, 40).Draw(t, "part"), len(stream)-off)
		if used := b.t.Decode(r, got.base(), count, int64(off), stream[off:off+n], &carry); used != n {
			t.Fatalf("%s: %d of %d bytes unpacked at %d of %d", b.text, used, n, off, len(stream))
		}
		off += n
	}
	if !bytes.Equal(got.mem, want.mem) {
		t.Fatalf("%s: %v of %d unpacks to\n% x, want\n% x", b.text, r, count, got.mem, want.mem)
	}
	again := newArena(t, b, count)
	if n := b.t.Decode(r, again.base(), count, 0, append(stream, 1, 2, 3), nil); n != len(stream) || !bytes.Equal(again.mem, want.mem) {
		t.Fatalf("%s: %v of %d at once: %d of %d bytes", b.text, r, count, n, len(stream))
	}
}

// repeated is a vector of b and its model.
func (b both) repeated(count, stride int64) both {
	var m model
	for i := range count {
		m.put(b.m, i*stride, 1)
	}
	return both{must(Hvector(count, 1, stride, b.t)), m, fmt.Sprintf("hvector(%d,1,%d,%s)", count, stride, b.text)}
}

// TestManyStructs has arrays of what C programs send: a few members each.
func TestManyStructs(t *testing.T) {
	i32, f64 := basicModel(Int32), basicModel(Float64)
	member := model{natural: true}
	member.put(i32, 8, 1)
	member.put(f64, 16, 2)
	far := must(Hindexed(i64(1), i64(24), Basic(Int32)))
	var farModel, odd model
	farModel.put(i32, 24, 1)
	for i, n := range i64(1, 2, 1) {
		odd.put(farModel, i64(8, 40, 90)[i], n)
	}
	for _, b := range []both{
		{must(Struct(i64(1, 2), i64(8, 16), []*Type{Basic(Int32), Basic(Float64)})), member, "members"},
		{must(Hindexed(i64(1, 2, 1), i64(8, 40, 90), far)), odd, "indexed away from the origin"},
	} {
		moved := must(Hindexed(i64(1), i64(4), b.t))
		movedModel := model{}
		movedModel.put(b.m, 4, 1)
		for _, c := range []both{b.repeated(40, 100), both{moved, movedModel, b.text + " moved"}.repeated(40, 104), b.repeated(3, -112)} {
			moves(t, c)
		}
	}
}

// TestCyclic has the parts of all ranks, with whole and cut blocks.
func TestCyclic(t *testing.T) {
	for _, block := range i64(1, 2, 3, 5, 40) {
		for rank := range int64(6) {
			for _, order := range []Order{OrderC, OrderFortran} {
				spreads := []Spread{{17, DistributeCyclic, block, 2}, {11, DistributeCyclic, 2, 3}}
				takes := [][]int64{owned(spreads[0], rank/3), owned(spreads[1], rank%3)}
				moves(t, both{
					must(Darray(6, rank, spreads, order, Basic(Int16))), arrayModel(basicModel(Int16), i64(17, 11), takes, order),
					fmt.Sprintf("rank %d, blocks of %d, order %d", rank, block, order),
				})
			}
		}
	}
}

// moves packs two items as the model does, in parts of all small sizes, and back.
func moves(t *testing.T, b both) {
	t.Helper()
	if err := b.t.Commit(); err != nil {
		t.Fatal(err)
	}
	lo, hi, err := b.t.Span(2)
	if err != nil {
		t.Fatal(err)
	}
	lo, hi = min(lo, 0), max(hi, 0)
	from := arena{make([]byte, hi-lo), -lo}
	from.fill(b, 2)
	want := b.m.pack(Native, from.mem, from.origin, 2)
	for part := 1; part < 60; part++ {
		to, landed := arena{make([]byte, hi-lo), -lo}, arena{make([]byte, hi-lo), -lo}
		b.m.unpack(Native, landed.mem, landed.origin, 2, want)
		got := make([]byte, len(want))
		for off := 0; off < len(got); off += part {
			n := b.t.Pack(got[off:min(off+part, len(got))], from.base(), 2, int64(off))
			b.t.Unpack(to.base(), 2, int64(off), got[off:off+n])
		}
		if !bytes.Equal(got, want) || !bytes.Equal(to.mem, landed.mem) {
			t.Fatalf("%s in parts of %d:\n% x, want\n% x", b.text, part, got, want)
		}
	}
}
