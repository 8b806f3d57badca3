package datatype

import (
	"testing"
	"unsafe"
)

type celsius float64

type flag bool

func TestKindOf(t *testing.T) {
	for want, got := range map[Kind]Kind{
		Bool: KindOf[flag](), Int8: KindOf[int8](), Int16: KindOf[int16](), Int32: KindOf[rune](), Int64: KindOf[int64](),
		Int: KindOf[int](), Uint8: KindOf[byte](), Uint16: KindOf[uint16](), Uint32: KindOf[uint32](),
		Uint64: KindOf[uint64](), Uint: KindOf[uint](), Float32: KindOf[float32](), Float64: KindOf[celsius](),
		Complex64: KindOf[complex64](), Complex128: KindOf[complex128](),
		PairInt16: KindOf[Pair[int16]](), PairInt32: KindOf[Pair[int32]](), PairInt64: KindOf[Pair[int64]](),
		PairInt: KindOf[Pair[int]](), PairFloat32: KindOf[Pair[float32]](), PairFloat64: KindOf[Pair[float64]](),
	} {
		if got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { KindOf[celsius](); KindOf[Pair[float64]]() }); n > 0 {
		t.Errorf("KindOf allocates %v times", n)
	}
}

// TestLayout holds the table to the compiler.
func TestLayout(t *testing.T) {
	layoutOf[bool](t)
	layoutOf[int8](t)
	layoutOf[int16](t)
	layoutOf[int32](t)
	layoutOf[int64](t)
	layoutOf[int](t)
	layoutOf[uint8](t)
	layoutOf[uint16](t)
	layoutOf[uint32](t)
	layoutOf[uint64](t)
	layoutOf[uint](t)
	layoutOf[float32](t)
	layoutOf[float64](t)
	layoutOf[complex64](t)
	layoutOf[complex128](t)
	layoutOf[Pair[int16]](t)
	layoutOf[Pair[int32]](t)
	layoutOf[Pair[int64]](t)
	layoutOf[Pair[int]](t)
	layoutOf[Pair[float32]](t)
	layoutOf[Pair[float64]](t)
	if Byte.Size() != 1 || Invalid.Size() != 0 || Kind(200).Size() != 0 || Kind(200).Align() != 1 {
		t.Error("sizes of what is not a Go type")
	}
	if Invalid.Valid() || kinds.Valid() || Kind(200).String() != "kind(200)" {
		t.Error("kinds that do not exist")
	}
}

func layoutOf[T Element](t *testing.T) {
	t.Helper()
	var v T
	k := KindOf[T]()
	if k.Size() != int(unsafe.Sizeof(v)) || k.Align() != int(unsafe.Alignof(v)) {
		t.Errorf("%v: size %d, alignment %d; the compiler has %d and %d", k, k.Size(), k.Align(), unsafe.Sizeof(v), unsafe.Alignof(v))
	}
}

func TestViews(t *testing.T) {
	s := []float32{1, 2, 3}
	b := Bytes(s)
	if len(b) != 12 {
		t.Fatalf("%d bytes", len(b))
	}
	v := View[float32](b[:11])
	if len(v) != 2 {
		t.Fatalf("%d elements in 11 bytes", len(v))
	}
	v[1] = 7
	if s[1] != 7 {
		t.Error("the memory is not shared")
	}
	if Bytes[int](nil) != nil || Bytes([]int{}) == nil || View[int](nil) != nil {
		t.Error("nil and empty slices")
	}
	defer func() {
		if recover() == nil {
			t.Error("a view at an odd address")
		}
	}()
	View[float32](b[1:5])
}
