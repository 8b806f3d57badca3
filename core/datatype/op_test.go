package datatype

import (
	"errors"
	"math"
	"slices"
	"testing"
	"unsafe"
)

var predefined = []*Op{Sum, Prod, Max, Min, LAnd, LOr, LXor, BAnd, BOr, BXor, MaxLoc, MinLoc}

func apply[T Element](t *testing.T, op *Op, in, inout, want []T) {
	t.Helper()
	got := slices.Clone(inout)
	if err := op.Apply(Bytes(in), Bytes(got), KindOf[T](), len(in)); err != nil {
		t.Fatalf("%v of %v: %v", op, KindOf[T](), err)
	}
	for i := range want {
		if any(got[i]) != any(want[i]) {
			t.Errorf("%v of %v: %v with %v is %v, want %v", op, KindOf[T](), in[i], inout[i], got[i], want[i])
		}
	}
}

func TestArithmetic(t *testing.T) {
	apply(t, Sum, []int8{100, -1}, []int8{100, 3}, []int8{-56, 2})
	apply(t, Sum, []uint64{1 << 63}, []uint64{1<<63 + 5}, []uint64{5})
	apply(t, Sum, []float32{0.5}, []float32{0.25}, []float32{0.75})
	apply(t, Sum, []complex128{1 + 2i}, []complex128{3 - 1i}, []complex128{4 + 1i})
	apply(t, Prod, []int16{300}, []int16{-3}, []int16{-900})
	apply(t, Prod, []complex64{1 + 2i}, []complex64{3 - 1i}, []complex64{5 + 5i})
	apply(t, Prod, []celsius{2}, []celsius{2.5}, []celsius{5})
}

func TestExtremes(t *testing.T) {
	apply(t, Max, []int{-5, 3}, []int{-7, 4}, []int{-5, 4})
	apply(t, Min, []int{-5, 3}, []int{-7, 4}, []int{-7, 3})
	apply(t, Max, []uint8{200}, []uint8{100}, []uint8{200})
	apply(t, Min, []float64{math.Inf(1)}, []float64{2}, []float64{2})
	for _, op := range []*Op{Max, Min} {
		for _, pair := range [][2]float64{{math.NaN(), 1}, {1, math.NaN()}} {
			got := []float64{pair[1]}
			if err := op.Apply(Bytes(pair[:1]), Bytes(got), Float64, 1); err != nil || !math.IsNaN(got[0]) {
				t.Errorf("%v of %v is %v, error %v", op, pair, got, err)
			}
		}
	}
}

func TestLogical(t *testing.T) {
	a, b := []int32{0, 0, 5, -5}, []int32{0, 2, 0, 2}
	apply(t, LAnd, a, b, []int32{0, 0, 0, 1})
	apply(t, LOr, a, b, []int32{0, 1, 1, 1})
	apply(t, LXor, a, b, []int32{0, 1, 1, 0})
	x, y := []bool{false, false, true, true}, []bool{false, true, false, true}
	apply(t, LAnd, x, y, []bool{false, false, false, true})
	apply(t, LOr, x, y, []bool{false, true, true, true})
	apply(t, LXor, x, y, []bool{false, true, true, false})
}

func TestBitwise(t *testing.T) {
	a, b := []uint16{0x0ff0}, []uint16{0x3c3c}
	apply(t, BAnd, a, b, []uint16{0x0c30})
	apply(t, BOr, a, b, []uint16{0x3ffc})
	apply(t, BXor, a, b, []uint16{0x33cc})
	got := []byte{0x3c}
	if err := BXor.Apply([]byte{0x0f}, got, Byte, 1); err != nil || got[0] != 0x33 {
		t.Errorf("bxor of bytes: % x, %v", got, err)
	}
}

// Of equal values the lowest index wins, from whichever side.
func TestLocation(t *testing.T) {
	type p = Pair[int32]
	apply(t, MaxLoc, []p{{5, 3}, {5, 1}, {4, 0}, {6, 9}}, []p{{5, 2}, {5, 2}, {5, 2}, {5, 2}}, []p{{5, 2}, {5, 1}, {5, 2}, {6, 9}})
	apply(t, MinLoc, []p{{5, 3}, {5, 1}, {4, 7}, {6, 0}}, []p{{5, 2}, {5, 2}, {5, 2}, {5, 2}}, []p{{5, 2}, {5, 1}, {4, 7}, {5, 2}})
	type f = Pair[float64]
	nan := math.NaN()
	for _, op := range []*Op{MaxLoc, MinLoc} {
		for _, c := range []struct {
			a, b f
			want int32
		}{{f{nan, 4}, f{1, 0}, 4}, {f{1, 0}, f{nan, 4}, 4}, {f{nan, 4}, f{nan, 2}, 2}, {f{nan, 2}, f{nan, 4}, 2}} {
			got := []f{c.b}
			if err := op.Apply(Bytes([]f{c.a}), Bytes(got), PairFloat64, 1); err != nil || got[0].Index != c.want {
				t.Errorf("%v of %v and %v is %v, error %v", op, c.a, c.b, got[0], err)
			}
		}
	}
}

// TestCombinations is the standard's table of operations and groups of types.
func TestCombinations(t *testing.T) {
	integers := []Kind{Int8, Int16, Int32, Int64, Int, Uint8, Uint16, Uint32, Uint64, Uint, Long, ULong, Int128}
	floats := []Kind{Float32, Float64, LongDouble, Float16, Float128}
	complexes := []Kind{Complex64, Complex128, ComplexLongDouble, Complex32, Complex256}
	logicals := []Kind{Bool, Logical8, Logical16, Logical32, Logical64, Logical128}
	pairs := []Kind{PairInt16, PairInt32, PairInt64, PairInt, PairFloat32, PairFloat64, PairLong, PairLongDouble, Pair2Float32, Pair2Float64}
	allowed := map[*Op][][]Kind{
		Sum: {integers, floats, complexes}, Prod: {integers, floats, complexes},
		Max: {integers, floats}, Min: {integers, floats},
		LAnd: {integers, logicals}, LOr: {integers, logicals}, LXor: {integers, logicals},
		BAnd: {integers, {Byte}}, BOr: {integers, {Byte}}, BXor: {integers, {Byte}},
		MaxLoc: {pairs}, MinLoc: {pairs},
	}
	for _, op := range predefined {
		if !op.Predefined() || !op.Commutative() {
			t.Errorf("%v is not predefined and commutative", op)
		}
		for _, k := range allKinds() {
			want := slices.Contains(slices.Concat(allowed[op]...), k)
			b, c := alignedBytes(k.Size()), alignedBytes(k.Size())
			err := op.Apply(b, c, k, 1)
			if want != (err == nil) || err != nil && !errors.Is(err, ErrOp) {
				t.Errorf("%v of %v: %v", op, k, err)
			}
		}
		if err := op.Check(Invalid); !errors.Is(err, ErrKind) {
			t.Errorf("%v of nothing: %v", op, err)
		}
	}
	var none *Op
	if err := none.Check(Int); !errors.Is(err, ErrOp) {
		t.Errorf("no operation: %v", err)
	}
}

func alignedBytes(n int) []byte { return Bytes(make([]uint64, (n+7)/8))[:n] }

func TestApplyBounds(t *testing.T) {
	b, c := alignedBytes(32), alignedBytes(32)
	for name, tc := range map[string]struct {
		err, want error
	}{
		"in too small":    {Sum.Apply(b[:15], c, Int64, 2), ErrBuffer},
		"inout too small": {Sum.Apply(b, c[:15], Int64, 2), ErrBuffer},
		"negative":        {Sum.Apply(b, c, Int64, -1), ErrBuffer},
		"huge":            {Sum.Apply(b, c, Int64, math.MaxInt), ErrBuffer},
		"odd in":          {Sum.Apply(b[1:], c, Int16, 2), ErrAlign},
		"odd inout":       {Sum.Apply(b, c[2:], Int32, 2), ErrAlign},
		"nothing":         {Sum.Apply(nil, nil, Int64, 0), nil},
	} {
		if !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: %v", name, tc.err)
		}
	}
	if err := Sum.Apply(alignedBytes(4), c[:4], Int8, 2); err != nil || c[2] != 0 {
		t.Errorf("touched more than two elements: % x, %v", c[:4], err)
	}
}

func TestUserDefined(t *testing.T) {
	var count int
	first := NewOp(func(in, inout []byte, n int, k Kind) {
		count = n
		copy(inout, in)
		if len(in) != n*k.Size() || len(inout) != len(in) {
			t.Errorf("%d and %d bytes for %d of %v", len(in), len(inout), n, k)
		}
	}, false, Int32, PairFloat64)
	if first.Commutative() || first.Predefined() {
		t.Error("a user's operation that is commutative or predefined")
	}
	apply(t, first, []int32{7, 8}, []int32{1, 2}, []int32{7, 8})
	if count != 2 {
		t.Errorf("called for %d elements", count)
	}
	if err := first.Check(Int64); !errors.Is(err, ErrOp) {
		t.Errorf("int64: %v", err)
	}
	if err := first.Check(PairFloat64); err != nil {
		t.Error(err)
	}
	if err := NewOp(func(_, _ []byte, _ int, _ Kind) {}, true).Check(Bool); err != nil {
		t.Error(err)
	}
}

func TestApplyAllocates(t *testing.T) {
	for _, op := range predefined {
		for _, k := range allKinds() {
			if op.Check(k) != nil {
				continue
			}
			in, inout := alignedBytes(10*k.Size()), alignedBytes(10*k.Size())
			if n := testing.AllocsPerRun(50, func() { _ = op.Apply(in, inout, k, 10) }); n > 0 {
				t.Errorf("%v of %v allocates", op, k)
			}
		}
	}
}

func BenchmarkSum(b *testing.B) {
	for _, k := range []Kind{Int32, Float64} {
		b.Run(k.String(), func(b *testing.B) {
			in, inout := alignedBytes(1<<15), alignedBytes(1<<15)
			b.SetBytes(1 << 15)
			for b.Loop() {
				_ = Sum.Apply(in, inout, k, len(in)/k.Size())
			}
		})
	}
}

// TestSumsOfAllLengths has sums of every number of elements up to several times what is added at a
// time, at every alignment that elements may have, and looks at what is beside them.
func TestSumsOfAllLengths(t *testing.T) {
	sumsOfAllLengths[float64](t)
	sumsOfAllLengths[float32](t)
	sumsOfAllLengths[int64](t)
	sumsOfAllLengths[uint64](t)
	sumsOfAllLengths[int](t)
	sumsOfAllLengths[int32](t)
	sumsOfAllLengths[uint32](t)
}

func sumsOfAllLengths[T int | int32 | int64 | uint32 | uint64 | float32 | float64](t *testing.T) {
	t.Helper()
	for n := range 70 {
		for from := range 4 {
			in, inout := make([]T, n+from+1), make([]T, n+from+1)
			for i := range in {
				in[i], inout[i] = T(i+1), T(1000*i)
			}
			if err := Sum.Apply(Bytes(in[from:from+n]), Bytes(inout[from:from+n]), KindOf[T](), n); err != nil {
				t.Fatal(err)
			}
			for i, got := range inout {
				want := T(1000 * i)
				if i >= from && i < from+n {
					want += T(i + 1)
				}
				if got != want {
					t.Fatalf("%T: element %d of %d from %d on is %v, want %v", got, i, n, from, got, want)
				}
			}
		}
	}
}

// A loop is there for what a predefined operation is defined for, and does what Apply does.
func TestLoopOf(t *testing.T) {
	for _, op := range predefined {
		for _, k := range allKinds() {
			if got := LoopOf(op, k) != nil; got != (op.Check(k) == nil) {
				t.Errorf("%v of %v: there is a loop: %v", op, k, got)
			}
		}
	}
	user := NewOp(func(_, _ []byte, _ int, _ Kind) {}, true)
	if LoopOf(nil, Int64) != nil || LoopOf(user, Int64) != nil || LoopOf(Replace, Int64) != nil || LoopOf(Sum, Invalid) != nil || LoopOf(Sum, kinds) != nil {
		t.Error("there is a loop where no operation of MPI's combines anything")
	}
	in, inout := []int64{1, -2, 3}, []int64{10, 20, 30}
	LoopOf(Sum, Int64)(unsafe.Pointer(&in[0]), unsafe.Pointer(&inout[0]), len(in))
	if !slices.Equal(inout, []int64{11, 18, 33}) {
		t.Errorf("sums %v", inout)
	}
}
