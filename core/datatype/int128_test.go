package datatype

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

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

// TestWideExternal: numbers of 16 bytes have their highest byte first in external32 (MPI-4.1, 14.5.2).
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
