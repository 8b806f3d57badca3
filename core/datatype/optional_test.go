package datatype

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// halfValue is the value of a half, by the definition of binary16.
func halfValue(h half) float64 {
	frac, exp := float64(h&0x3ff), int(h>>10&0x1f)
	v := math.Ldexp(1024+frac, exp-25)
	switch {
	case exp == 0:
		v = math.Ldexp(frac, -24)
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		v = math.Inf(1)
	}
	if h>>15 != 0 {
		return -v
	}
	return v
}

func TestHalf(t *testing.T) {
	for h := range half(0xffff) {
		v, f := halfValue(h), h.float()
		if math.IsNaN(v) {
			if f == f || halfOf(f)&halfNumber <= halfInf || halfOf(f)>>15 != h>>15 {
				t.Fatalf("%#x is no number: %v, %#x", h, f, halfOf(f))
			}
			continue
		}
		if float64(f) != v || math.Signbit(float64(f)) != math.Signbit(v) || halfOf(f) != h {
			t.Fatalf("%#x is %v: %v, %#x", h, v, f, halfOf(f))
		}
		if h&halfNumber >= halfInf-1 {
			continue
		}
		// Between it and the next one: the middle goes to the even one, what is beside it to the nearer.
		middle := float32((v + halfValue(h+1)) / 2)
		even := h + h&1
		below, above := math.Nextafter32(middle, float32(v)), math.Nextafter32(middle, float32(halfValue(h+1)))
		if halfOf(middle) != even || halfOf(below) != h || halfOf(above) != h+1 {
			t.Fatalf("beside %#x: %#x, %#x, %#x", h, halfOf(below), halfOf(middle), halfOf(above))
		}
	}
	for f, want := range map[float32]half{65519.996: 0x7bff, 65520: halfInf, -1e30: 0x8000 | halfInf, 1e-30: 0, float32(math.Inf(-1)): 0x8000 | halfInf} {
		if got := halfOf(f); got != want {
			t.Errorf("%v: %#x, want %#x", f, got, want)
		}
	}
}

func TestHalfOperations(t *testing.T) {
	nan := half(0xfe01)
	for _, c := range []struct {
		op         *Op
		kind       Kind
		a, b, want []half
	}{
		{Sum, Float16, []half{halfOf(1.5), halfOf(60000)}, []half{halfOf(2), halfOf(60000)}, []half{halfOf(3.5), halfInf}},
		{Prod, Float16, []half{halfOf(1.5), halfOf(-0.25)}, []half{halfOf(2), halfOf(8)}, []half{halfOf(3), halfOf(-2)}},
		{Max, Float16, []half{halfOf(1.5), nan}, []half{halfOf(2), halfOf(8)}, []half{halfOf(2), halfNaN}},
		{Min, Float16, []half{halfOf(1.5), halfOf(9)}, []half{halfOf(2), halfOf(-8)}, []half{halfOf(1.5), halfOf(-8)}},
		{Sum, Complex32, []half{halfOf(1), halfOf(2)}, []half{halfOf(3), halfOf(-1)}, []half{halfOf(4), halfOf(1)}},
		{Prod, Complex32, []half{halfOf(1), halfOf(2)}, []half{halfOf(3), halfOf(-1)}, []half{halfOf(5), halfOf(5)}},
	} {
		a, b := make([]byte, 4), make([]byte, 4)
		copy(View[uint16](a), []uint16{uint16(c.a[0]), uint16(c.a[1])})
		copy(View[uint16](b), []uint16{uint16(c.b[0]), uint16(c.b[1])})
		if err := c.op.Apply(a, b, c.kind, 4/c.kind.Size()); err != nil {
			t.Fatal(err)
		}
		for i, got := range View[uint16](b) {
			w := c.want[i]
			if half(got) != w && !(w == halfNaN && half(got)&halfNumber > halfInf) {
				t.Errorf("%v of %v, component %d: %#x, want %#x", c.op, c.kind, i, got, w)
			}
		}
	}
}

// bigInt128 is the value of the bytes of an integer of this host.
func bigInt128(x int128) *big.Int {
	hi, lo := x.halves()
	v := new(big.Int).SetInt64(int64(hi))
	return v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(lo))
}

// wrapped is what is left of v in 128 bits.
func wrapped(v *big.Int) *big.Int {
	whole := new(big.Int).Lsh(big.NewInt(1), 128)
	v = new(big.Int).Mod(v, whole)
	if v.Bit(127) != 0 {
		v.Sub(v, whole)
	}
	return v
}

func TestInt128(t *testing.T) {
	truth := func(b bool) *big.Int {
		if b {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	bigger := func(a, b *big.Int) *big.Int {
		if a.Cmp(b) > 0 {
			return a
		}
		return b
	}
	ops := []struct {
		op   *Op
		want func(a, b *big.Int) *big.Int
	}{
		{Sum, func(a, b *big.Int) *big.Int { return wrapped(new(big.Int).Add(a, b)) }},
		{Prod, func(a, b *big.Int) *big.Int { return wrapped(new(big.Int).Mul(a, b)) }},
		{Max, bigger},
		{Min, func(a, b *big.Int) *big.Int {
			return new(big.Int).Neg(bigger(new(big.Int).Neg(a), new(big.Int).Neg(b)))
		}},
		{BAnd, func(a, b *big.Int) *big.Int { return new(big.Int).And(a, b) }},
		{BOr, func(a, b *big.Int) *big.Int { return new(big.Int).Or(a, b) }},
		{BXor, func(a, b *big.Int) *big.Int { return new(big.Int).Xor(a, b) }},
		{LAnd, func(a, b *big.Int) *big.Int { return truth(a.Sign() != 0 && b.Sign() != 0) }},
		{LOr, func(a, b *big.Int) *big.Int { return truth(a.Sign() != 0 || b.Sign() != 0) }},
		{LXor, func(a, b *big.Int) *big.Int { return truth((a.Sign() != 0) != (b.Sign() != 0)) }},
	}
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 1<<64 - 1, 1 << 63, 1<<63 - 1}))
	rapid.Check(t, func(t *rapid.T) {
		in, inout := alignedBytes(32), alignedBytes(32)
		a, b := View[uint64](in), View[uint64](inout)
		for i := range a {
			a[i], b[i] = word.Draw(t, "in"), word.Draw(t, "inout")
		}
		c := rapid.SampledFrom(ops).Draw(t, "op")
		var want [2]*big.Int
		for i := range want {
			want[i] = c.want(bigInt128(int128(a[2*i:2*i+2])), bigInt128(int128(b[2*i:2*i+2])))
		}
		if err := c.op.Apply(in, inout, Int128, 2); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := bigInt128(int128(b[2*i : 2*i+2])); got.Cmp(w) != 0 {
				t.Errorf("%v: %v, want %v", c.op, got, w)
			}
		}
	})
}

// TestWideExternal: numbers of 16 bytes have their highest byte first in external32 (MPI-4.1,
// 14.5.2).
func TestWideExternal(t *testing.T) {
	var x [2]int128
	x[0].set(0x0102030405060708, 0x090a0b0c0d0e0f10)
	x[1].set(0x1112131415161718, 0x191a1b1c1d1e1f20)
	src := alignedBytes(32)
	copy(View[uint64](src), []uint64{x[0][0], x[0][1], x[1][0], x[1][1]})
	for k, n := range map[Kind]int{Int128: 2, Logical128: 2, Float128: 2, Complex256: 1} {
		dst, back := alignedBytes(32), alignedBytes(32)
		if err := External32.Encode(dst, src, k, n); err != nil {
			t.Fatal(err)
		}
		for i, b := range dst {
			if int(b) != i+1 {
				t.Fatalf("%v: %x", k, dst)
			}
		}
		if err := External32.Decode(back, dst, k, n); err != nil || string(back) != string(src) {
			t.Errorf("%v: %x is not %x: %v", k, back, src, err)
		}
		if err := External32.Encode(dst, dst, k, n); err != nil || dst[0] != 16 {
			t.Errorf("%v in its place: %x", k, dst)
		}
	}
}
