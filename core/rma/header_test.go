package rma

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/datatype"
)

// form returns a datatype as it is sent.
func form(tb testing.TB, t *datatype.Type) []byte {
	tb.Helper()
	b, err := t.AppendBinary(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

var anInt64 = datatype.Basic(datatype.Int64)

// good are headers of all kinds.
func good(tb testing.TB) []Header {
	ints := form(tb, anInt64)
	n := int64(len(ints))
	return []Header{
		{Kind: Put, Seq: 1, Disp: 7, Count: 2, Len: 16, TypeLen: n, Type: ints, Data: make([]byte, 16)},
		{Kind: Put, Seq: 2, Passive: true, SeparateType: true, Disp: 1 << 40, Count: 9, Len: 1 << 50, TypeLen: MaxTypeLen},
		{Kind: Get, Seq: maxSeq, Disp: 1, Count: 3, TypeLen: n, Type: ints},
		{Kind: Accumulate, Op: datatype.MinLoc, Seq: 4, Count: 1, Len: 8, TypeLen: n, Type: ints, Data: make([]byte, 8)},
		{Kind: GetAccumulate, Op: datatype.NoOp, Seq: 5, Count: 1, TypeLen: n, Type: ints},
		{Kind: GetAccumulate, Op: datatype.Replace, Seq: 5, Count: 1000, Len: 8000, TypeLen: n, Type: ints},
		{Kind: CompareAndSwap, Seq: 6, Disp: 3, Count: 1, Len: 16, TypeLen: n, Type: ints, Data: make([]byte, 16)},
		{Kind: Lock, Lock: LockShared, Seq: 7, Type: []byte{}},
		{Kind: Lock, Lock: LockExclusive, Seq: 8, Type: []byte{}},
		{Kind: Unlock, Seq: 9, Type: []byte{}}, {Kind: Flush, Seq: 10, Type: []byte{}},
		{Kind: Post, Seq: 11, Type: []byte{}}, {Kind: Complete, Seq: 12, Type: []byte{}},
	}
}

func TestHeaderTravels(t *testing.T) {
	for _, h := range good(t) {
		b := h.Append(nil, h.Data != nil)
		got, err := Parse(b)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("%v: got %+v, %v; want %+v", h.Kind, got, err, h)
		}
	}
}

// A header that is cut, continued or changed is refused, or is another valid header.
func TestBadHeaders(t *testing.T) {
	for _, h := range good(t) {
		b := h.Append(nil, h.Data != nil)
		for n := range b {
			if got, err := Parse(b[:n]); err == nil {
				t.Fatalf("%v: the first %d of %d bytes are %+v", h.Kind, n, len(b), got)
			}
		}
		if _, err := Parse(append(bytes.Clone(b), 0)); !errors.Is(err, ErrHeader) {
			t.Errorf("%v with a byte behind: %v", h.Kind, err)
		}
	}
	ints := form(t, anInt64)
	put := func(change func(b []byte)) []byte {
		h := good(t)[0]
		b := h.Append(nil, true)
		change(b)
		return b
	}
	for name, b := range map[string][]byte{
		"another version":     put(func(b []byte) { b[0] = 9 }),
		"kind 0":              put(func(b []byte) { b[1] = 0 }),
		"an unknown kind":     put(func(b []byte) { b[1] = byte(kinds) }),
		"an operation of Put": put(func(b []byte) { b[2] = 1 }),
		"an unknown flag":     put(func(b []byte) { b[3] |= 0x80 }),
		"number 0":            put(func(b []byte) { copy(b[4:], []byte{0, 0, 0, 0}) }),
		"a number too large":  put(func(b []byte) { b[4] = 0x80 }),
		"a negative place":    put(func(b []byte) { b[8] = 0x80 }),
		"a negative count":    put(func(b []byte) { b[16] = 0x80 }),
		"a negative length":   put(func(b []byte) { b[24] = 0x80 }),
		"another length":      put(func(b []byte) { b[31]++ }),
		"a large datatype":    put(func(b []byte) { b[32] = 1 }),
		"no datatype":         (&Header{Kind: Put, Seq: 1, Len: 1, Data: []byte{1}}).Append(nil, true),
		"no operation":        (&Header{Kind: Accumulate, Seq: 1, Count: 1, Len: 8, TypeLen: int64(len(ints)), Type: ints}).Append(nil, true),
		"an own operation": (&Header{Kind: Accumulate, Op: datatype.NewOp(nil, true), Seq: 1, Count: 1, Len: 8,
			TypeLen: int64(len(ints)), Type: ints}).Append(nil, true),
		"two elements swapped": (&Header{Kind: CompareAndSwap, Seq: 1, Count: 2, Len: 16, TypeLen: int64(len(ints)), Type: ints}).Append(nil, true),
		"a lock of items":      (&Header{Kind: Lock, Seq: 1, Count: 1}).Append(nil, false),
		"data of Get":          (&Header{Kind: Get, Seq: 1, Len: 8, TypeLen: int64(len(ints)), Type: ints}).Append(nil, true),
	} {
		if h, err := Parse(b); !errors.Is(err, ErrHeader) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		typ, data int64
		want      bool
	}{{0, 0, true}, {4, HeaderSize - fixedLen - 4, true}, {4, HeaderSize - fixedLen - 3, false}, {HeaderSize, 0, false}, {0, -1, false}, {0, 1 << 62, false}} {
		if got := Fits(c.typ, c.data); got != c.want {
			t.Errorf("a datatype of %d and data of %d bytes: %v", c.typ, c.data, got)
		}
	}
}

// Tags never meet: neither with headers, nor data with answers.
func TestTags(t *testing.T) {
	seq := uint32(0)
	rapid.Check(t, func(t *rapid.T) {
		seq = Next(rapid.SampledFrom([]uint32{seq, maxSeq - 1, maxSeq}).Draw(t, "seq"))
		h := Header{Seq: seq}
		if d, a := h.DataTag(), h.AnswerTag(); d <= HeaderTag || a <= HeaderTag || d%2 != 0 || a%2 != 1 {
			t.Fatalf("number %d has tags %d and %d", seq, d, a)
		}
	})
}

// FuzzParse: nothing panics, and an accepted header is encoded to the same bytes.
func FuzzParse(f *testing.F) {
	for _, h := range good(f) {
		f.Add(h.Append(nil, h.Data != nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Parse(b)
		if err != nil {
			return
		}
		again := h.Append(make([]byte, 0, HeaderSize), h.Data != nil)
		copy(again[len(again)-len(h.Data):], h.Data)
		if !bytes.Equal(again, b) {
			t.Fatalf("%+v\n%x\n%x", h, b, again)
		}
		if !h.Kind.Operation() {
			return
		}
		typ, rest, err := datatype.ParseType(h.Type)
		if err != nil || len(rest) > 0 || typ.Commit() != nil {
			return
		}
		x := Extent{Size: 1 << 20, Unit: 8}
		off, err := x.Locate(h.Disp, h.Count, typ)
		if err != nil {
			return
		}
		if lo, hi, err := typ.Span(int(h.Count)); err != nil || lo < hi && (off+lo < 0 || off+hi > x.Size) {
			t.Fatalf("%+v is placed at %d, bytes %d to %d: %v", h, off, lo, hi, err)
		}
	})
}
