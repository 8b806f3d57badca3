package datatype

import (
	"bytes"
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
