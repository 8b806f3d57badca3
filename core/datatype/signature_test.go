package datatype

import (
	"testing"

	"pgregory.net/rapid"
)

// flat is the signature of kinds one by one.
func flat(entries []entry, count int) Signature {
	s := emptySignature
	for range count {
		for _, e := range entries {
			s = s.then(kindSignature(e.kind))
		}
	}
	return Signature{s.len, s.hash}
}

func TestSignatureAgainstTypemap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawType(t, rapid.IntRange(0, 3).Draw(t, "depth"))
		count := rapid.IntRange(0, 3).Draw(t, "count")
		if len(b.m.entries) > 1000 {
			return
		}
		if got, want := b.t.Signature(count), flat(b.m.entries, count); got != want {
			t.Fatalf("%s: %v, want %v", b.text, got, want)
		}
		all := int64(len(b.m.entries) * count)
		n := int64(rapid.IntRange(0, int(all)).Draw(t, "n"))
		var head []entry
		for i := range n {
			head = append(head, b.m.entries[i%int64(len(b.m.entries))])
		}
		if got, ok := b.t.Prefix(count, n); !ok || got != flat(head, 1) {
			t.Fatalf("%s: the first %d are %v, %v, want %v", b.text, n, got, ok, flat(head, 1))
		}
		if _, ok := b.t.Prefix(count, all+1); ok {
			t.Fatalf("%s: %d elements of %d", b.text, all+1, all)
		}
	})
}

// TestSignatures compares what programs send and receive.
func TestSignatures(t *testing.T) {
	i32, f64 := Basic(Int32), Basic(Float64)
	st := must(Struct(i64(1, 1), i64(0, 8), []*Type{i32, f64}))
	for _, c := range []struct {
		name     string
		a        *Type
		na       int
		b        *Type
		nb       int
		matching bool
	}{
		{"rows and elements", must(Vector(3, 2, 5, f64)), 2, f64, 12, true},
		{"different numbers", f64, 3, f64, 2, false},
		{"different kinds of one size", Basic(Int64), 1, f64, 1, false},
		{"int and long", ByName("MPI_INT"), 1, ByName("MPI_LONG"), 1, false},
		{"two names of one kind", ByName("MPI_INT"), 1, ByName("MPI_INT32_T"), 1, true},
		{"other order", st, 1, must(Struct(i64(1, 1), i64(0, 8), []*Type{f64, i32})), 1, false},
		{"same order, other places", st, 1, must(Struct(i64(1, 1), i64(8, 0), []*Type{i32, f64})), 1, true},
		{"bytes", Basic(Byte), 4, i32, 1, false},
		{"packed", Basic(Packed), 4, i32, 1, true},
		{"packed too", i32, 1, must(Contiguous(4, Basic(Packed))), 1, true},
		{"nothing", i32, 0, f64, 0, true},
	} {
		a, b := c.a.Signature(c.na), c.b.Signature(c.nb)
		if a.Matches(b) != c.matching || b.Matches(a) != c.matching {
			t.Errorf("%s: %v and %v", c.name, a, b)
		}
	}
	if n := must(Contiguous(1<<40, st)).Signature(4); n.Len != 1<<43 {
		t.Errorf("%v", n)
	}
}

// TestPrefixes cuts a struct in each of its members.
func TestPrefixes(t *testing.T) {
	kinds := []Kind{Int32, Float64, Char, Char, Int16}
	typ := must(Struct(i64(1, 1, 2, 1), i64(0, 8, 16, 20), []*Type{Basic(Int32), Basic(Float64), Basic(Char), Basic(Int16)}))
	for n := range len(kinds) {
		var head []entry
		for _, k := range kinds[:n] {
			head = append(head, entry{kind: k})
		}
		if got, ok := typ.Prefix(1, int64(n)); !ok || got != flat(head, 1) {
			t.Errorf("the first %d: %v, want %v", n, got, flat(head, 1))
		}
	}
}

// TestSignaturesForPeople name what they can, and travel as 64 bits.
func TestSignaturesForPeople(t *testing.T) {
	i32, f64 := Basic(Int32), Basic(Float64)
	st := must(Struct(i64(2, 1), i64(0, 8), []*Type{i32, f64}))
	for _, c := range []struct {
		t          *Type
		count      int
		text, list string
	}{
		{i32, 3, "3 x int32", "3 x int32"},
		{must(Vector(3, 2, 5, f64)), 2, "12 x float64", "12 x float64"},
		{Basic(Packed), 7, "7 bytes of packed data", "7 bytes of packed data"},
		{st, 0, "nothing", "nothing"},
		{st, 2, "6 elements of several types", "int32, int32, float64, int32, int32, float64"},
		{st, 1000, "3000 elements of several types", "int32, int32, float64, int32, int32, float64, int32, int32 and so on, 3000 in all"},
	} {
		s := c.t.Signature(c.count)
		if s.String() != c.text || c.t.Sequence(c.count) != c.list {
			t.Errorf("%q, %q, want %q, %q", s, c.t.Sequence(c.count), c.text, c.list)
		}
		if got, ok := SignatureOf(s.Len, s.Bits()); !ok || got != s {
			t.Errorf("%v came back as %v, %v", s, got, ok)
		}
		if s.Bits() < uint64(kinds) {
			t.Errorf("%v looks like a kind", s)
		}
	}
	if _, ok := SignatureOf(3, uint64(Int32)); ok {
		t.Error("a kind is taken for a signature")
	}
	if s, ok := SignatureOf(-3, 1<<63|1); !ok || s.String() != "-3 elements of several types" {
		t.Errorf("a number that cannot be: %v, %v", s, ok)
	}
}
