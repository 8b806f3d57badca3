package datatype

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// draw gives n elements of any bits, NaNs included.
func draw[T Element](t *rapid.T, name string, n int) []T {
	s := make([]T, n)
	b := Bytes(s)
	copy(b, rapid.SliceOfN(rapid.Byte(), len(b), len(b)).Draw(t, name))
	if KindOf[T]() == Bool {
		for i := range b {
			b[i] &= 1
		}
	}
	return s
}

// naive writes one value as encoding/binary does, an int as an int64 and a pair
// as its members.
func naive[T any](order binary.ByteOrder, v T) []byte {
	var members []any
	switch v := any(v).(type) {
	case int:
		members = []any{int64(v)}
	case uint:
		members = []any{uint64(v)}
	case complex64: // package binary would make a quiet NaN of a signalling one
		members = []any{real(v), imag(v)}
	default:
		if r := reflect.ValueOf(v); r.Kind() == reflect.Struct {
			return append(naive(order, r.Field(0).Interface()), naive(order, r.Field(1).Interface())...)
		}
		members = []any{v}
	}
	var b bytes.Buffer
	for _, m := range members {
		if err := binary.Write(&b, order, m); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

// orders are the representations with a byte order of their own.
var orders = map[Representation]binary.ByteOrder{External32: binary.BigEndian, NativeBE: binary.BigEndian, NativeLE: binary.LittleEndian, NativeX86: binary.LittleEndian}

// travels: what Encode makes is what encoding/binary makes, Decode gives the
// values back, and both leave alone what is behind.
func travels[T Element](t *testing.T) {
	k := KindOf[T]()
	t.Run(k.String(), rapid.MakeCheck(func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		values := draw[T](t, "values", n+1)
		for r, order := range orders {
			var want []byte
			for _, v := range values[:n] {
				want = append(want, naive(order, v)...)
			}
			got := bytes.Repeat([]byte{0xa5}, len(want)+3)
			if err := r.Encode(got, Bytes(values), k, n); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, append(want, 0xa5, 0xa5, 0xa5)) {
				t.Fatalf("%v of %v: % x, want % x", r, values[:n], got, want)
			}
			back := draw[T](t, "rubbish", n+1)
			behind := naive(order, back[n])
			if err := r.Decode(Bytes(back), got, k, n); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if !bytes.Equal(naive(order, back[i]), naive(order, values[i])) {
					t.Fatalf("%v: element %d came back as %v, was %v", r, i, back[i], values[i])
				}
			}
			if !bytes.Equal(naive(order, back[n]), behind) {
				t.Fatalf("%v: Decode wrote beyond element %d", r, n)
			}
		}
	}))
}

func TestEncodingAgainstStandardLibrary(t *testing.T) {
	for _, run := range []func(*testing.T){
		travels[bool], travels[int8], travels[int16], travels[int32], travels[int64], travels[int],
		travels[uint8], travels[uint16], travels[uint32], travels[uint64], travels[uint],
		travels[float32], travels[float64], travels[complex64], travels[complex128],
		travels[Pair[int16]], travels[Pair[int32]], travels[Pair[int64]], travels[Pair[int]], travels[Pair[float32]], travels[Pair[float64]],
	} {
		run(t)
	}
}

// bigOf is an integer without a width.
func bigOf(v any) *big.Int {
	r := reflect.ValueOf(v)
	if r.CanInt() {
		return big.NewInt(r.Int())
	}
	return new(big.Int).SetUint64(r.Uint())
}

func truthOf(b bool) *big.Int {
	if b {
		return big.NewInt(1)
	}
	return new(big.Int)
}

// onIntegers is every operation that integers have, by the school's rules.
var onIntegers = map[*Op]func(a, b *big.Int) *big.Int{
	Sum:  func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) },
	Prod: func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) },
	Max: func(a, b *big.Int) *big.Int {
		if a.Cmp(b) > 0 {
			return a
		}
		return b
	},
	Min: func(a, b *big.Int) *big.Int {
		if a.Cmp(b) < 0 {
			return a
		}
		return b
	},
	LAnd: func(a, b *big.Int) *big.Int { return truthOf(a.Sign() != 0 && b.Sign() != 0) },
	LOr:  func(a, b *big.Int) *big.Int { return truthOf(a.Sign() != 0 || b.Sign() != 0) },
	LXor: func(a, b *big.Int) *big.Int { return truthOf((a.Sign() != 0) != (b.Sign() != 0)) },
	BAnd: func(a, b *big.Int) *big.Int { return new(big.Int).And(a, b) },
	BOr:  func(a, b *big.Int) *big.Int { return new(big.Int).Or(a, b) },
	BXor: func(a, b *big.Int) *big.Int { return new(big.Int).Xor(a, b) },
}

// reduced applies op to vectors in two parts and compares each element with want.
func reduced[T Element](t *rapid.T, op *Op, in, inout []T, same func(in, inout, got T) bool) {
	k, n := KindOf[T](), len(in)-1
	got := append([]T(nil), inout...)
	cut := rapid.IntRange(0, n).Draw(t, "cut")
	size := k.Size()
	if err := errors.Join(
		op.Apply(Bytes(in), Bytes(got), k, cut),
		op.Apply(Bytes(in)[cut*size:], Bytes(got)[cut*size:], k, n-cut),
	); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if !same(in[i], inout[i], got[i]) {
			t.Fatalf("%v of %v and %v is %v", op, in[i], inout[i], got[i])
		}
	}
	if !bytes.Equal(Bytes(got[n:]), Bytes(inout[n:])) {
		t.Fatalf("%v wrote beyond %d elements", op, n)
	}
}

func onInteger[T Element](t *testing.T) {
	k := KindOf[T]()
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*k.Size())), big.NewInt(1))
	t.Run(k.String(), rapid.MakeCheck(func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		in, inout := draw[T](t, "in", n), draw[T](t, "inout", n)
		for i := range in { // equal values and zeros are rare among random bits
			switch rapid.IntRange(0, 5).Draw(t, "special") {
			case 0:
				in[i] = inout[i]
			case 1:
				clear(in[i : i+1])
			case 2:
				clear(inout[i : i+1])
			}
		}
		for op, school := range onIntegers {
			reduced(t, op, in, inout, func(a, b, got T) bool {
				want := school(bigOf(a), bigOf(b)) // and what fits into the type of it
				return want.And(want, mask).Cmp(new(big.Int).And(bigOf(got), mask)) == 0
			})
		}
	}))
}

func TestIntegersAgainstSchool(t *testing.T) {
	for _, run := range []func(*testing.T){
		onInteger[int8], onInteger[int16], onInteger[int32], onInteger[int64], onInteger[int],
		onInteger[uint8], onInteger[uint16], onInteger[uint32], onInteger[uint64], onInteger[uint],
	} {
		run(t)
	}
}

// float is a value as it is on paper.
func float(v any) float64 { return reflect.ValueOf(v).Float() }

// alike reports whether two numbers are the same as far as arithmetic sees it.
func alike(a, b float64) bool { return a == b || a != a && b != b }

// extremeOf is the larger or smaller of two numbers; a NaN wins.
func extremeOf(a, b float64, sign int) float64 {
	switch {
	case a != a || b != b:
		return math.NaN()
	case cmp.Compare(a, b) == sign:
		return a
	}
	return b
}

func onFloat[T float32 | float64](t *testing.T) {
	// A sum or product of float32 is exact enough in float64 to round once.
	narrow := func(v float64) float64 { return float64(T(v)) }
	onFloats := map[*Op]func(a, b float64) float64{
		Sum:  func(a, b float64) float64 { return narrow(a + b) },
		Prod: func(a, b float64) float64 { return narrow(a * b) },
		Max:  func(a, b float64) float64 { return extremeOf(a, b, 1) },
		Min:  func(a, b float64) float64 { return extremeOf(a, b, -1) },
	}
	t.Run(KindOf[T]().String(), rapid.MakeCheck(func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		in, inout := draw[T](t, "in", n), draw[T](t, "inout", n)
		in[0] = T(rapid.SampledFrom([]float64{0, math.Inf(1), math.Inf(-1), math.NaN(), 1}).Draw(t, "special"))
		for op, paper := range onFloats {
			reduced(t, op, in, inout, func(a, b, got T) bool { return alike(paper(float64(a), float64(b)), float64(got)) })
		}
	}))
}

// onComplex uses small whole parts, whose products are exact.
func onComplex[T complex64 | complex128](t *testing.T) {
	t.Run(KindOf[T]().String(), rapid.MakeCheck(func(t *rapid.T) {
		part := rapid.IntRange(-1000, 1000)
		vector := func(name string) (s []T) {
			for range 5 {
				s = append(s, T(complex(float64(part.Draw(t, name)), float64(part.Draw(t, name)))))
			}
			return s
		}
		in, inout := vector("in"), vector("inout")
		reduced(t, Sum, in, inout, func(a, b, got T) bool {
			x, y := complex128(a), complex128(b)
			return complex128(got) == complex(real(x)+real(y), imag(x)+imag(y))
		})
		reduced(t, Prod, in, inout, func(a, b, got T) bool {
			x, y := complex128(a), complex128(b)
			return complex128(got) == complex(real(x)*real(y)-imag(x)*imag(y), real(x)*imag(y)+imag(x)*real(y))
		})
	}))
}

func TestFloatsAgainstPaper(t *testing.T) {
	onFloat[float32](t)
	onFloat[float64](t)
	onComplex[complex64](t)
	onComplex[complex128](t)
}

// onPair holds MaxLoc and MinLoc to the words of the standard: the extreme value,
// and of all its places the lowest. P is a Pair.
func onPair[P Element](t *testing.T) {
	value := func(p P) any { return reflect.ValueOf(p).Field(0).Interface() }
	index := func(p P) int64 { return reflect.ValueOf(p).Field(1).Int() }
	t.Run(KindOf[P]().String(), rapid.MakeCheck(func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		in, inout := draw[P](t, "in", n), draw[P](t, "inout", n)
		for i := range in {
			if rapid.Bool().Draw(t, "equal") {
				v := reflect.ValueOf(&in[i]).Elem().Field(0)
				v.Set(reflect.ValueOf(value(inout[i])))
			}
		}
		for op, sign := range map[*Op]int{MaxLoc: 1, MinLoc: -1} {
			reduced(t, op, in, inout, func(a, b, got P) bool {
				best, place := value(a), index(a)
				switch order := compareValues(value(a), value(b), sign); {
				case order == -sign:
					best, place = value(b), index(b)
				case order == 0:
					place = min(place, index(b))
				}
				return index(got) == place && compareValues(value(got), best, sign) == 0
			})
		}
	}))
}

// compareValues gives -1, 0 or 1; a NaN is beyond everything else in the
// direction of sign.
func compareValues(a, b any, sign int) int {
	if !reflect.ValueOf(a).CanFloat() {
		return bigOf(a).Cmp(bigOf(b))
	}
	v, w := float(a), float(b)
	switch {
	case v != v && w != w:
		return 0
	case v != v:
		return sign
	case w != w:
		return -sign
	case v < w:
		return -1
	case v > w:
		return 1
	}
	return 0
}

func TestPlacesAgainstWords(t *testing.T) {
	for _, run := range []func(*testing.T){
		onPair[Pair[int16]], onPair[Pair[int32]], onPair[Pair[int64]], onPair[Pair[int]], onPair[Pair[float32]], onPair[Pair[float64]],
	} {
		run(t)
	}
}

// TestUsersOperation: a user's function sees each element once, with the operands
// in their places, and only for the kinds that it is for.
func TestUsersOperation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		only := rapid.SliceOfNDistinct(rapid.SampledFrom(allKinds()), 0, 5, rapid.ID).Draw(t, "kinds")
		op := NewOp(func(in, inout []byte, n int, k Kind) {
			a, b := View[int64](in), View[int64](inout)
			if len(a) != n || len(b) != n || k != Int64 {
				t.Fatalf("%d and %d elements, said to be %d of %v", len(a), len(b), n, k)
			}
			for i := range a {
				b[i] = 3*a[i] - b[i] // of no order at all
			}
		}, false, only...)
		for _, k := range allKinds() {
			allowed := len(only) == 0
			for _, o := range only {
				allowed = allowed || o == k
			}
			if err := op.Check(k); allowed != (err == nil) || err != nil && !errors.Is(err, ErrOp) {
				t.Fatalf("%v with %v: %v", k, only, err)
			}
		}
		if op.Check(Int64) != nil {
			return
		}
		n := rapid.IntRange(1, 20).Draw(t, "n")
		in, inout := draw[int64](t, "in", n), draw[int64](t, "inout", n)
		reduced(t, op, in, inout, func(a, b, got int64) bool { return got == 3*a-b })
	})
}
