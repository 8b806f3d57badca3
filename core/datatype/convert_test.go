package datatype

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/openimpi/impi/internal/watchdog"
)

func allKinds() (all []Kind) {
	for k := Byte; k < kinds; k++ {
		all = append(all, k)
	}
	return all
}

// TestExternal32 has the bytes of external32 for each kind.
func TestExternal32(t *testing.T) {
	check(t, []int8{-2, 1}, "fe 01")
	check(t, []int16{-2, 1}, "ff fe 00 01")
	check(t, []int32{-2, 1, 0x01020304}, "ff ff ff fe 00 00 00 01 01 02 03 04")
	check(t, []int64{-2}, "ff ff ff ff ff ff ff fe")
	check(t, []int{-2, 1}, "ff ff ff ff ff ff ff fe 00 00 00 00 00 00 00 01")
	check(t, []uint8{254, 1}, "fe 01")
	check(t, []uint16{0x1234, 1, 2, 3, 4}, "12 34 00 01 00 02 00 03 00 04")
	check(t, []uint32{0x12345678}, "12 34 56 78")
	check(t, []uint64{0x123456789abcdef0}, "12 34 56 78 9a bc de f0")
	check(t, []uint{0x12345678}, "00 00 00 00 12 34 56 78")
	check(t, []float32{1, -2}, "3f 80 00 00 c0 00 00 00")
	check(t, []float64{1}, "3f f0 00 00 00 00 00 00")
	check(t, []complex64{complex(1, -2)}, "3f 80 00 00 c0 00 00 00")
	check(t, []complex128{complex(1, -2)}, "3f f0 00 00 00 00 00 00 c0 00 00 00 00 00 00 00")
	check(t, []bool{true, false}, "01 00")
	check(t, []Pair[int16]{{-2, 7}, {1, -1}}, "ff fe 00 00 00 07 00 01 ff ff ff ff")
	check(t, []Pair[int32]{{-2, 7}}, "ff ff ff fe 00 00 00 07")
	check(t, []Pair[int64]{{-2, 7}}, "ff ff ff ff ff ff ff fe 00 00 00 07")
	check(t, []Pair[int]{{-2, 7}}, "ff ff ff ff ff ff ff fe 00 00 00 07")
	check(t, []Pair[float32]{{1, 7}}, "3f 80 00 00 00 00 00 07")
	check(t, []Pair[float64]{{1, 7}, {-2, 8}}, "3f f0 00 00 00 00 00 00 00 00 00 07 c0 00 00 00 00 00 00 00 00 00 00 08")
}

func check[T interface {
	comparable
	Element
}](t *testing.T, values []T, want string) {
	t.Helper()
	k := KindOf[T]()
	got := make([]byte, len(values)*External32.Size(k))
	if err := External32.Encode(got, Bytes(values), k, len(values)); err != nil {
		t.Fatalf("%v: %v", k, err)
	}
	if s := fmt.Sprintf("% x", got); s != want {
		t.Errorf("%v %v: got %s, want %s", k, values, s, want)
	}
	back := make([]T, len(values))
	if err := External32.Decode(Bytes(back), got, k, len(values)); err != nil {
		t.Fatalf("%v: %v", k, err)
	}
	for i := range back {
		if back[i] != values[i] {
			t.Errorf("%v: element %d came back as %v, was %v", k, i, back[i], values[i])
		}
	}
}

// TestOrders checks that the little-endian form is the mirror of external32.
func TestOrders(t *testing.T) {
	v := []uint32{0x01020304, 0x05060708, 0x090a0b0c}
	le, be := make([]byte, 12), make([]byte, 12)
	if err := errors.Join(NativeLE.Encode(le, Bytes(v), Uint32, 3), NativeBE.Encode(be, Bytes(v), Uint32, 3)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(le, []byte{4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9}) || !bytes.Equal(be, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
		t.Errorf("little-endian % x, big-endian % x", le, be)
	}
	if HostOrder() == NativeLE != (binary.NativeEndian.Uint16([]byte{1, 0}) == 1) {
		t.Errorf("the host is not %v", HostOrder())
	}
}

// TestIdentity holds Identity to what Encode does.
func TestIdentity(t *testing.T) {
	for r := Native; r < representations; r++ {
		for _, k := range allKinds() {
			src := pattern(k, 5)
			dst := make([]byte, 5*r.Size(k))
			if err := r.Encode(dst, src, k, 5); err != nil {
				t.Fatal(err)
			}
			if r.Identity(k) && !bytes.Equal(src, dst) {
				t.Errorf("%v of %v is not the identity", r, k)
			}
			if !r.Identity(k) && k != Bool && bytes.Equal(src, dst) {
				t.Errorf("%v of %v is the identity, but does not say so", r, k)
			}
		}
	}
	for _, k := range []Kind{Int32, Float64, Complex128} {
		if !HostOrder().Identity(k) || !Native.Identity(k) {
			t.Errorf("%v is converted between hosts of one order", k)
		}
	}
}

// pattern is n elements of k, every byte different, but for padding.
func pattern(k Kind, n int) []byte {
	b := make([]byte, n*k.Size())
	for i := range b {
		b[i] = byte(i + 1)
	}
	clearPadding(b, k)
	return b
}

func clearPadding(b []byte, k Kind) {
	l := layouts[k]
	for i := range b {
		at := i % int(l.size)
		if l.index > 0 && (at >= int(l.width) && at < int(l.index) || at >= int(l.index)+4) {
			b[i] = 0
		}
		if k == Bool {
			b[i] &= 1
		}
		if part := at % int(l.width); l.quad && x87 && at/int(l.width) < int(l.count) {
			switch {
			case part == 7:
				b[i] |= 0x80 // the integer bit
			case part >= 10:
				b[i] = 0
			}
		}
	}
}

// TestInPlace converts there and back within one buffer, at all lengths.
func TestInPlace(t *testing.T) {
	for r := Native; r < representations; r++ {
		for _, k := range allKinds() {
			if r.Size(k) != k.Size() {
				continue
			}
			for n := range 20 {
				want := pattern(k, n)
				other := make([]byte, len(want))
				b := bytes.Clone(want)
				if err := errors.Join(r.Encode(other, b, k, n), r.Encode(b, b, k, n)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b, other) {
					t.Fatalf("%v of %d %v differs in place", r, n, k)
				}
				if err := r.Decode(b, b, k, n); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b, want) {
					t.Fatalf("%v of %d %v does not come back in place", r, n, k)
				}
			}
		}
	}
}

// TestBounds checks that nothing beyond n elements is touched, and that too
// small buffers are refused.
func TestBounds(t *testing.T) {
	for r := Native; r < representations; r++ {
		for _, k := range allKinds() {
			native, wire := 3*k.Size(), 3*r.Size(k)
			src, dst := pattern(k, 4), bytes.Repeat([]byte{0xee}, wire+9)
			if err := r.Encode(dst, src, k, 3); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(dst[wire:], bytes.Repeat([]byte{0xee}, 9)) {
				t.Errorf("%v of %v writes too much", r, k)
			}
			for name, err := range map[string]error{
				"encode to":   r.Encode(dst[:wire-1], src, k, 3),
				"encode from": r.Encode(dst, src[:native-1], k, 3),
				"decode to":   r.Decode(src[:native-1], dst, k, 3),
				"decode from": r.Decode(src, dst[:wire-1], k, 3),
				"negative":    r.Encode(dst, src, k, -1),
				"huge":        r.Decode(dst, src, k, math.MaxInt),
			} {
				if !errors.Is(err, ErrBuffer) {
					t.Errorf("%v of %v, %s: %v", r, k, name, err)
				}
			}
		}
	}
	if err := External32.Encode(nil, nil, Invalid, 0); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	if err := Native.Decode(nil, nil, kinds, 0); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	if err := representations.Encode(nil, nil, Byte, 0); !errors.Is(err, ErrRepresentation) {
		t.Error(err)
	}
}

// TestDecodeBools makes proper bools of any bytes, also in place.
func TestDecodeBools(t *testing.T) {
	b := []byte{0, 1, 2, 255}
	if err := External32.Decode(b, b, Bool, 4); err != nil || !bytes.Equal(b, []byte{0, 1, 1, 1}) {
		t.Errorf("% x, %v", b, err)
	}
}

// TestResize is what a 32-bit host does with Go's int, on any host.
func TestResize(t *testing.T) {
	wire := make([]byte, 16)
	resizeIntegers(wire, []byte{0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 5}, 4, 8, true, true, true)
	if want := []byte{255, 255, 255, 255, 255, 255, 255, 254, 0, 0, 0, 0, 0, 0, 0, 5}; !bytes.Equal(wire, want) {
		t.Errorf("to the wire: % x", wire)
	}
	back := make([]byte, 8)
	resizeIntegers(back, wire, 8, 4, true, true, false)
	if want := []byte{0xfe, 0xff, 0xff, 0xff, 5, 0, 0, 0}; !bytes.Equal(back, want) {
		t.Errorf("back, little-endian: % x", back)
	}
	resizeIntegers(wire, []byte{0xfe, 0xff, 0xff, 0xff, 5, 0, 0, 0}, 4, 8, false, false, true)
	if want := []byte{0, 0, 0, 0, 255, 255, 255, 254, 0, 0, 0, 0, 0, 0, 0, 5}; !bytes.Equal(wire, want) {
		t.Errorf("unsigned: % x", wire)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint8(External32), uint8(PairFloat64), uint16(2), []byte("0123456789abcdefghijklmn"))
	f.Add(uint8(NativeLE), uint8(Int16), uint16(3), []byte("abcdef"))
	f.Add(uint8(NativeBE), uint8(Bool), uint16(9), []byte{})
	f.Fuzz(func(t *testing.T, rep, kind uint8, count uint16, data []byte) {
		defer watchdog.Start()()
		r, k, n := Representation(rep), Kind(kind), int(count)
		native := make([]byte, n*max(k.Size(), 1))
		if err := r.Decode(native, data, k, n); err != nil {
			return
		}
		again := make([]byte, n*r.Size(k))
		if err := r.Encode(again, native, k, n); err != nil {
			t.Fatal(err)
		}
		// Bools are made proper, long doubles rounded, floats that are no numbers perhaps become others,
		// and a 32-bit host cuts Go's ints; everything else comes back as it was.
		if k != Bool && !r.narrows(k) && !layouts[k].quad && r != Native && r.Size(k) <= k.Size() && !bytes.Equal(again, data[:len(again)]) {
			t.Fatalf("%v of %v: % x became % x", r, k, data[:len(again)], again)
		}
	})
}

func TestConvertAllocates(t *testing.T) {
	src, dst := make([]byte, 3200), make([]byte, 3200)
	for r := Native; r < representations; r++ {
		for _, k := range allKinds() {
			if n := testing.AllocsPerRun(50, func() {
				_ = r.Encode(dst, src, k, 100)
				_ = r.Decode(src, dst, k, 100)
			}); n > 0 {
				t.Errorf("%v of %v allocates", r, k)
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	src, dst := make([]byte, 1<<16), make([]byte, 1<<16)
	foreign := NativeBE
	if hostBig {
		foreign = NativeLE
	}
	for _, k := range []Kind{Int16, Int32, Float64, PairFloat64} {
		b.Run(k.String(), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				_ = foreign.Encode(dst, src, k, len(src)/k.Size())
			}
		})
	}
}
