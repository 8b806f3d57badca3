package datatype

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// TestX87 has long doubles of x86 and the quads that they are.
func TestX87(t *testing.T) {
	for _, c := range []struct {
		name string
		top  uint16
		mant uint64
		hi   uint64
		lo   uint64
	}{
		{"0", 0, 0, 0, 0},
		{"-0", 0x8000, 0, 1 << 63, 0},
		{"1", 0x3fff, 1 << 63, 0x3fff << 48, 0},
		{"-2", 0xc000, 1 << 63, 0xc000 << 48, 0},
		{"1 + 2^-63", 0x3fff, 1<<63 | 1, 0x3fff << 48, 1 << 49},
		{"largest", 0x7ffe, math.MaxUint64, 0x7ffe<<48 | quadFrac, 0xfffe << 48},
		{"infinity", 0x7fff, 1 << 63, 0x7fff << 48, 0},
		{"quiet NaN", 0xffff, 3 << 62, 0xffff<<48 | 1<<47, 0},
		{"smallest normal", 1, 1 << 63, 1 << 48, 0},
		{"smallest of all", 0, 1, 0, 1 << 49},
	} {
		q := fromX87(c.top, c.mant)
		if want := (quad{c.hi, c.lo}); q != want {
			t.Errorf("%s: %#x, want %#x", c.name, q, want)
		}
		if top, mant := q.x87(); top != c.top || mant != c.mant {
			t.Errorf("%s: back as %#x %#x", c.name, top, mant)
		}
	}
	if q := fromX87(0, 1<<63|5); q != fromX87(1, 1<<63|5) {
		t.Errorf("a denormal with the integer bit: %#x", q)
	}
	if q := fromX87(0x3fff, 12345); !q.nan() {
		t.Errorf("a number without the integer bit: %#x", q)
	}
}

// TestRoundingToX87 has quads with more digits than an x87 number.
func TestRoundingToX87(t *testing.T) {
	const one = 0x3fff << 48
	for _, c := range []struct {
		name string
		q    quad
		top  uint16
		mant uint64
	}{
		{"below half", quad{one, 1<<48 - 1}, 0x3fff, 1 << 63},
		{"half to even", quad{one, 1 << 48}, 0x3fff, 1 << 63},
		{"half to even, up", quad{one, 3 << 48}, 0x3fff, 1<<63 + 2},
		{"above half", quad{one, 1<<48 + 1}, 0x3fff, 1<<63 + 1},
		{"carry", quad{one | quadFrac, math.MaxUint64}, 0x4000, 1 << 63},
		{"to infinity", quad{0x7ffe<<48 | quadFrac, math.MaxUint64}, 0x7fff, 1 << 63},
		{"denormal to normal", quad{quadFrac, math.MaxUint64}, 1, 1 << 63},
		{"to zero", quad{0, 1}, 0, 0},
		{"NaN stays one", quad{0x7fff << 48, 1}, 0x7fff, 3 << 62},
	} {
		if top, mant := c.q.x87(); top != c.top || mant != c.mant {
			t.Errorf("%s: %#x %#x, want %#x %#x", c.name, top, mant, c.top, c.mant)
		}
	}
}

// reference is the value of a finite quad.
func (q quad) reference() *big.Float {
	exp := int(q.hi >> 48 & quadExp)
	mant := new(big.Int).Lsh(new(big.Int).SetUint64(q.hi&quadFrac), 64)
	mant.Add(mant, new(big.Int).SetUint64(q.lo))
	if exp == 0 {
		exp = 1
	} else {
		mant.SetBit(mant, 112, 1)
	}
	f := new(big.Float).SetInt(mant)
	f.SetMantExp(f, exp-quadBias-112)
	if q.neg() {
		f.Neg(f)
	}
	return f
}

// drawQuad draws numbers with the given digits, near each other often.
func drawQuad(t *rapid.T, name string, digits uint) quad {
	exp := rapid.OneOf(rapid.Uint64Range(0, quadExp-1), rapid.Uint64Range(quadBias-70, quadBias+70), rapid.Uint64Range(0, 140), rapid.Uint64Range(quadExp-3, quadExp-1)).Draw(t, name+" exponent")
	q := quad{exp<<48 | rapid.Uint64().Draw(t, name+" high")&quadFrac, rapid.Uint64().Draw(t, name+" low")}
	switch rapid.IntRange(0, 4).Draw(t, name+" kind") {
	case 0:
		q.hi, q.lo = q.hi&^quadFrac, 0
	case 1:
		q.hi, q.lo = q.hi|quadFrac, math.MaxUint64
	case 2:
		q.lo = 0
	}
	q.lo &^= 1<<(113-digits) - 1
	if rapid.Bool().Draw(t, name+" negative") {
		q = q.negated()
	}
	return q
}

// TestLongDoubleArithmetic compares sums and products with those of package big,
// where results are normal numbers, and to one unit of the last place elsewhere.
func TestLongDoubleArithmetic(t *testing.T) {
	for _, digits := range []uint{64, 113} {
		t.Run(fmt.Sprint(digits), rapid.MakeCheck(func(t *rapid.T) {
			a, b := drawQuad(t, "a", digits), drawQuad(t, "b", digits)
			exact := func() *big.Float { return new(big.Float).SetPrec(40000) }
			agrees(t, "sum", a, b, a.plus(b, int(digits)), exact().Add(a.reference(), b.reference()), digits)
			agrees(t, "product", a, b, a.by(b, int(digits)), exact().Mul(a.reference(), b.reference()), digits)
			if a.less(b) != (a.reference().Cmp(b.reference()) < 0) {
				t.Fatalf("%#x < %#x is %v", a, b, a.less(b))
			}
		}))
	}
}

// agrees rounds the exact result as the standard says, below the normal numbers too.
func agrees(t *rapid.T, what string, a, b, got quad, exact *big.Float, digits uint) {
	const lowest = 1 - quadBias
	precision := int(digits)
	if exp := exact.MantExp(nil) - 1; exact.Sign() != 0 && exp < lowest {
		precision -= lowest - exp
	}
	want := new(big.Float).SetMode(big.ToNearestEven)
	switch {
	case precision >= 1:
		want.SetPrec(uint(precision)).Set(exact)
	case precision == 0: // between nothing and the smallest number
		small := new(big.Float).SetMantExp(big.NewFloat(1), lowest-int(digits)+1)
		half := new(big.Float).SetMantExp(small, -1)
		if new(big.Float).Abs(exact).Cmp(half) > 0 {
			want.Copy(small)
		}
		if exact.Signbit() {
			want.Neg(want)
		}
	}
	if want.Sign() != 0 && want.MantExp(nil)-1 > quadBias {
		if !got.inf() || got.nan() || got.neg() != want.Signbit() {
			t.Fatalf("%s of %#x and %#x is %#x, want an infinity", what, a, b, got)
		}
		return
	}
	if got.nan() || got.inf() || got.reference().Cmp(want) != 0 {
		t.Fatalf("%s of %#x and %#x is %#x (%v), want %v", what, a, b, got, got.reference(), want)
	}
}

// TestLongDoubleSpecials are what is no number, or zero.
func TestLongDoubleSpecials(t *testing.T) {
	inf, nan, one, zero := quad{hi: quadExp << 48}, quad{hi: quadNaN}, quad{hi: quadBias << 48}, quad{}
	for _, c := range []struct {
		name      string
		got, want quad
	}{
		{"inf + 1", inf.plus(one, 113), inf}, {"1 + -inf", one.plus(inf.negated(), 113), inf.negated()},
		{"inf - inf", inf.plus(inf.negated(), 113), nan}, {"NaN + 1", nan.plus(one, 64), nan}, {"1 + NaN", one.plus(nan, 64), nan},
		{"0 + 1", zero.plus(one, 64), one}, {"1 + 0", one.plus(zero, 64), one}, {"1 - 1", one.plus(one.negated(), 64), zero},
		{"-0 + -0", zero.negated().plus(zero.negated(), 64), zero.negated()}, {"0 + -0", zero.plus(zero.negated(), 64), zero},
		{"inf * 0", inf.by(zero, 113), nan}, {"0 * inf", zero.by(inf, 113), nan}, {"inf * -1", inf.by(one.negated(), 113), inf.negated()},
		{"1 + 2^-64, half way", one.plus(quad{hi: (quadBias - 64) << 48}, 64), one},
		{"1 + 2^-63 + 2^-64, half way", quad{one.hi, 1 << 49}.plus(quad{hi: (quadBias - 64) << 48}, 64), quad{one.hi, 2 << 49}},
		{"a little more than half way", one.plus(quad{(quadBias - 64) << 48, 1 << 49}, 64), quad{one.hi, 1 << 49}},
		{"1 - 2^-65, half way below", one.plus(quad{hi: (quadBias - 65) << 48}.negated(), 64), one},
		{"0 * -1", zero.by(one.negated(), 64), zero.negated()}, {"NaN * 0", nan.by(zero, 64), nan},
	} {
		if c.got != c.want {
			t.Errorf("%s is %#x, want %#x", c.name, c.got, c.want)
		}
	}
}

// longDoubles are this host's, of integers.
func longDoubles(values ...int64) []byte { return longs().of(values...) }

func (w *wide) of(values ...int64) []byte {
	var b []byte
	for _, v := range values {
		f, element := new(big.Float).SetInt64(v), make([]byte, w.real.Size())
		w.store(element, quadOf(f))
		b = append(b, element...)
	}
	return b
}

// quadOf is the quad of a small integer.
func quadOf(f *big.Float) quad {
	v, _ := f.Int64()
	q := quad{}
	for range max(v, -v) {
		q = q.plus(quad{hi: quadBias << 48}, 113)
	}
	if v < 0 {
		q = q.negated()
	}
	return q
}

func TestWideOperations(t *testing.T) {
	for _, c := range []struct {
		op              *Op
		complex         bool
		in, inout, want []int64
	}{
		{Sum, false, i64(2, -3), i64(5, 1), i64(7, -2)},
		{Prod, false, i64(2, -3), i64(5, 4), i64(10, -12)},
		{Max, false, i64(2, -3), i64(5, -4), i64(5, -3)},
		{Min, false, i64(2, -3), i64(5, -4), i64(2, -4)},
		{Sum, true, i64(2, -3), i64(5, 1), i64(7, -2)},
		{Prod, true, i64(1, 2), i64(3, -1), i64(5, 5)},
	} {
		for _, w := range []*wide{longs(), quads()} {
			k := w.real
			if c.complex {
				k = w.complex
			}
			inout := alignedBytes(2 * w.real.Size())
			copy(inout, w.of(c.inout...))
			if err := c.op.Apply(w.of(c.in...), inout, k, len(inout)/k.Size()); err != nil || !bytes.Equal(inout, w.of(c.want...)) {
				t.Errorf("%v of %v %v and %v: % x, %v", c.op, k, c.in, c.inout, inout, err)
			}
		}
	}
}

func TestLongDoublePairs(t *testing.T) {
	pair := func(v int64, index byte) []byte {
		b := alignedBytes(PairLongDouble.Size())
		copy(b, longDoubles(v))
		b[layouts[PairLongDouble].index], b[layouts[PairLongDouble].index+3] = index, index
		return b
	}
	for _, c := range []struct {
		op      *Op
		a, b    []byte
		changed bool
	}{
		{op: MaxLoc, a: pair(3, 9), b: pair(2, 1), changed: true}, {op: MaxLoc, a: pair(1, 1), b: pair(2, 9)},
		{op: MinLoc, a: pair(3, 1), b: pair(2, 9)}, {op: MinLoc, a: pair(-1, 9), b: pair(2, 1), changed: true},
		{op: MaxLoc, a: pair(2, 1), b: pair(2, 9), changed: true}, {op: MaxLoc, a: pair(2, 9), b: pair(2, 1)},
		{op: MinLoc, a: pair(2, 1), b: pair(2, 9), changed: true},
	} {
		want := c.b
		if c.changed {
			want = c.a
		}
		want = bytes.Clone(want)
		if err := c.op.Apply(c.a, c.b, PairLongDouble, 1); err != nil || !bytes.Equal(c.b, want) {
			t.Errorf("%v: % x, want % x, %v", c.op, c.b, want, err)
		}
	}
}

func TestTwins(t *testing.T) {
	apply := func(op *Op, in, inout, want []float64) {
		t.Helper()
		if err := op.Apply(Bytes(in), Bytes(inout), Pair2Float64, len(in)/2); err != nil || !bytes.Equal(Bytes(inout), Bytes(want)) {
			t.Errorf("%v: %v, want %v, %v", op, inout, want, err)
		}
	}
	apply(MaxLoc, []float64{3, 9, 1, 1, 2, 1}, []float64{2, 1, 2, 9, 2, 5}, []float64{3, 9, 2, 9, 2, 1})
	apply(MinLoc, []float64{3, 9, 1, 1, 2, 6}, []float64{2, 1, 2, 9, 2, 5}, []float64{2, 1, 1, 1, 2, 5})
}

// TestNativeX86 has long doubles as a C library on x86-64 packs them: ten bytes
// of the x87 and six of padding, which are zero.
func TestNativeX86(t *testing.T) {
	for _, c := range []struct {
		k    Kind
		mem  []byte
		want string
	}{
		{LongDouble, longDoubles(1), "00 00 00 00 00 00 00 80 ff 3f 00 00 00 00 00 00"},
		{LongDouble, longDoubles(-3), "00 00 00 00 00 00 00 c0 00 c0 00 00 00 00 00 00"},
		{ComplexLongDouble, longDoubles(1, -3), "00 00 00 00 00 00 00 80 ff 3f 00 00 00 00 00 00 00 00 00 00 00 00 00 c0 00 c0 00 00 00 00 00 00"},
	} {
		wire := make([]byte, NativeX86.Size(c.k))
		if err := NativeX86.Encode(wire, c.mem, c.k, 1); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("% x", wire); got != c.want {
			t.Errorf("%v: %s, want %s", c.k, got, c.want)
		}
		back := make([]byte, len(c.mem))
		if err := NativeX86.Decode(back, wire, c.k, 1); err != nil || !bytes.Equal(back, c.mem) {
			t.Errorf("%v came back as % x (%v), was % x", c.k, back, err, c.mem)
		}
	}
	if want := runtime.GOARCH == "amd64"; NativeX86.Identity(LongDouble) != want {
		t.Errorf("on %s long doubles travel as they are: %v", runtime.GOARCH, !want)
	}
	if n := NativeX86.Size(PairLongDouble); n != 20 {
		t.Errorf("a long double and an index take %d bytes, want 20", n)
	}
}
