package datatype

import (
	"unsafe"

	"github.com/openimpi/impi/core/sums"
)

// The predefined operations (MPI-4.1, 6.9.2 and 6.9.4); all are commutative. Sum and Prod take all
// numbers; Max and Min integers and floats, where one NaN makes the result NaN; LAnd, LOr and LXor
// integers and bools, with the results 1 and 0; BAnd, BOr and BXor integers and Byte; MaxLoc and
// MinLoc pairs, of which equal values give the lowest index.
var (
	Sum    = &Op{name: "sum", commutative: true, loops: withSums(arithmetic(addition))}
	Prod   = &Op{name: "prod", commutative: true, loops: arithmetic(prods)}
	Max    = &Op{name: "max", commutative: true, loops: order(maxs)}
	Min    = &Op{name: "min", commutative: true, loops: order(mins)}
	LAnd   = &Op{name: "land", commutative: true, loops: logical(lands)}
	LOr    = &Op{name: "lor", commutative: true, loops: logical(lors)}
	LXor   = &Op{name: "lxor", commutative: true, loops: logical(lxors)}
	BAnd   = &Op{name: "band", commutative: true, loops: bitwise(bands)}
	BOr    = &Op{name: "bor", commutative: true, loops: bitwise(bors)}
	BXor   = &Op{name: "bxor", commutative: true, loops: bitwise(bxors)}
	MaxLoc = &Op{name: "maxloc", commutative: true, loops: location(maxlocs)}
	MinLoc = &Op{name: "minloc", commutative: true, loops: location(minlocs)}
)

type integers interface {
	int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint
}

type ordered interface{ integers | float32 | float64 }

type numbers interface {
	ordered | complex64 | complex128
}

// which selects a loop of a family. A family is instantiated for each of its types, so that
// the loops themselves are plain machine code.
type which uint8

const (
	addition which = iota
	prods
	maxs
	mins
	lands
	lors
	lxors
	bands
	bors
	bxors
	maxlocs
	minlocs
)

func over[T any](f func(in, inout []T)) loop {
	return func(in, inout unsafe.Pointer, n int) {
		f(unsafe.Slice((*T)(in), n), unsafe.Slice((*T)(inout), n))
	}
}

func arithmetic(w which) *[kinds]loop {
	return &[kinds]loop{
		Int8: arith[int8](w), Int16: arith[int16](w), Int32: arith[int32](w), Int64: arith[int64](w), Int: arith[int](w),
		Uint8: arith[uint8](w), Uint16: arith[uint16](w), Uint32: arith[uint32](w), Uint64: arith[uint64](w), Uint: arith[uint](w),
		Float32: arith[float32](w), Float64: arith[float64](w), Complex64: arith[complex64](w), Complex128: arith[complex128](w),
		Long: arith[int](w), ULong: arith[uint](w), LongDouble: longs().arith(w), ComplexLongDouble: longs().complexArith(w),
		Float16: halfArith(w), Complex32: halfComplexArith(w), Float128: quads().arith(w), Complex256: quads().complexArith(w),
		Int128: int128Arith(w),
	}
}

func withSums(loops *[kinds]loop) *[kinds]loop {
	for k := range loops {
		switch k := Kind(k); k {
		case Float32, Float64:
			if f := sums.Floats(k.Size()); f != nil {
				loops[k] = loop(f)
			}
		case Int32, Int64, Int, Uint32, Uint64, Uint, Long, ULong:
			if f := sums.Integers(k.Size()); f != nil {
				loops[k] = loop(f)
			}
		default:
		}
	}
	return loops
}

func arith[T numbers](w which) loop {
	if w == addition {
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] = v + inout[i]
			}
		})
	}
	return over(func(in, inout []T) {
		for i, v := range in {
			inout[i] = v * inout[i]
		}
	})
}

func order(w which) *[kinds]loop {
	return &[kinds]loop{
		Int8: extreme[int8](w), Int16: extreme[int16](w), Int32: extreme[int32](w), Int64: extreme[int64](w), Int: extreme[int](w),
		Uint8: extreme[uint8](w), Uint16: extreme[uint16](w), Uint32: extreme[uint32](w), Uint64: extreme[uint64](w), Uint: extreme[uint](w),
		Float32: extreme[float32](w), Float64: extreme[float64](w),
		Long: extreme[int](w), ULong: extreme[uint](w), LongDouble: longs().extreme(w),
		Float16: halfExtreme(w), Float128: quads().extreme(w), Int128: int128Extreme(w),
	}
}

func extreme[T ordered](w which) loop {
	if w == maxs {
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] = max(v, inout[i])
			}
		})
	}
	return over(func(in, inout []T) {
		for i, v := range in {
			inout[i] = min(v, inout[i])
		}
	})
}

func logical(w which) *[kinds]loop {
	return &[kinds]loop{
		Bool: truth[uint8](w), // a Go bool is a byte of 0 or 1
		Int8: truth[int8](w), Int16: truth[int16](w), Int32: truth[int32](w), Int64: truth[int64](w), Int: truth[int](w),
		Uint8: truth[uint8](w), Uint16: truth[uint16](w), Uint32: truth[uint32](w), Uint64: truth[uint64](w), Uint: truth[uint](w),
		Long: truth[int](w), ULong: truth[uint](w),
		Logical8: truth[int8](w), Logical16: truth[int16](w), Logical32: truth[int32](w), Logical64: truth[int64](w),
		Int128: int128Truth(w), Logical128: int128Truth(w),
	}
}

func truth[T integers](w which) loop {
	one := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	switch w {
	case lands:
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] = one(v != 0 && inout[i] != 0)
			}
		})
	case lors:
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] = one(v|inout[i] != 0)
			}
		})
	default:
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] = one((v != 0) != (inout[i] != 0))
			}
		})
	}
}

func bitwise(w which) *[kinds]loop {
	return &[kinds]loop{
		Byte: bitsOf[uint8](w),
		Int8: bitsOf[int8](w), Int16: bitsOf[int16](w), Int32: bitsOf[int32](w), Int64: bitsOf[int64](w), Int: bitsOf[int](w),
		Uint8: bitsOf[uint8](w), Uint16: bitsOf[uint16](w), Uint32: bitsOf[uint32](w), Uint64: bitsOf[uint64](w), Uint: bitsOf[uint](w),
		Long: bitsOf[int](w), ULong: bitsOf[uint](w), Int128: int128Bits(w),
	}
}

func bitsOf[T integers](w which) loop {
	switch w {
	case bands:
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] &= v
			}
		})
	case bors:
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] |= v
			}
		})
	default:
		return over(func(in, inout []T) {
			for i, v := range in {
				inout[i] ^= v
			}
		})
	}
}

func location(w which) *[kinds]loop {
	return &[kinds]loop{
		PairInt16: located[int16](w), PairInt32: located[int32](w), PairInt64: located[int64](w),
		PairInt: located[int](w), PairFloat32: located[float32](w), PairFloat64: located[float64](w),
		PairLong: located[int](w), PairLongDouble: longLocated(w),
		Pair2Float32: twins[float32](w), Pair2Float64: twins[float64](w),
	}
}

func located[V PairValue](w which) loop {
	return over(func(in, inout []Pair[V]) {
		for i := range in {
			if replaces(&in[i], &inout[i], w == maxlocs) {
				inout[i] = in[i]
			}
		}
	})
}

// replaces reports whether a replaces b. NaN replaces every number, as in Max and Min, so that the
// result does not depend on the order of the operands. Of equal values the lower index wins
// (MPI-4.1, 6.9.4).
func replaces[V PairValue](a, b *Pair[V], larger bool) bool {
	return beats(a.Value, b.Value, a.Index, b.Index, larger)
}

func beats[V PairValue, I int32 | float32 | float64](a, b V, ai, bi I, larger bool) bool {
	aNaN, bNaN := a != a, b != b
	switch {
	case aNaN != bNaN:
		return aNaN
	case a == b || aNaN:
		return ai < bi
	}
	return (a > b) == larger
}

// twins is located for pairs whose index has the type of the value.
func twins[V float32 | float64](w which) loop {
	return over(func(in, inout [][2]V) {
		for i := range in {
			if beats(in[i][0], inout[i][0], in[i][1], inout[i][1], w == maxlocs) {
				inout[i] = in[i]
			}
		}
	})
}
