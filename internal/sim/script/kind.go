package script

import (
	"math"
	"strings"

	"github.com/openimpi/impi/core/mpi"
)

// Kind is the type of a message's elements.
type Kind uint8

// The kinds correspond to Go's types. Pairs are for operations that find positions.
const (
	Uint8 Kind = iota
	Int8
	Int16
	Int32
	Int64
	Int
	Uint16
	Uint32
	Uint64
	Uint
	Float32
	Float64
	Complex64
	Complex128
	Bool
	PairInt32
	PairFloat64
)

type kindOf struct {
	name string
	size int // bytes, in external32 as well
	make func(n int) vector
	none vector // no buffer: in place
	ops  map[Op]mpi.Op
}

var kinds = [...]kindOf{
	Uint8:      integers[uint8]("uint8", 1),
	Int8:       integers[int8]("int8", 1),
	Int16:      integers[int16]("int16", 2),
	Int32:      integers[int32]("int32", 4),
	Int64:      integers[int64]("int64", 8),
	Int:        integers[int]("int", 8),
	Uint16:     integers[uint16]("uint16", 2),
	Uint32:     integers[uint32]("uint32", 4),
	Uint64:     integers[uint64]("uint64", 8),
	Uint:       integers[uint]("uint", 8),
	Float32:    floats[float32]("float32", 4),
	Float64:    floats[float64]("float64", 8),
	Complex64:  complexes[complex64]("complex64", 8),
	Complex128: complexes[complex128]("complex128", 16),
	Bool:       bools(),
	PairInt32: pairs("pair-int32", 8,
		func(v, i int32) mpi.Pair[int32] { return mpi.Pair[int32]{Value: v, Index: i} },
		func(p mpi.Pair[int32]) (float64, int32) { return float64(p.Value), p.Index }),
	PairFloat64: pairs("pair-float64", 16,
		func(v, i int32) mpi.Pair[float64] { return mpi.Pair[float64]{Value: float64(v), Index: i} },
		func(p mpi.Pair[float64]) (float64, int32) { return p.Value, p.Index }),
}

func (k Kind) String() string { return kinds[k].name }

// Size returns the number of bytes of an element.
func (k Kind) Size() int { return kinds[k].size }

func (k Kind) takes(op Op) bool {
	_, ok := kinds[k].ops[op]
	return ok
}

var predefined = map[Op]mpi.Op{
	OpSum: mpi.Sum, OpProd: mpi.Prod, OpMax: mpi.Max, OpMin: mpi.Min, OpLAnd: mpi.LAnd, OpLOr: mpi.LOr, OpLXor: mpi.LXor,
	OpBAnd: mpi.BAnd, OpBOr: mpi.BOr, OpBXor: mpi.BXor, OpMaxLoc: mpi.MaxLoc, OpMinLoc: mpi.MinLoc,
}

// algebra computes with elements of a kind, independently of core.
type algebra[T mpi.Type] struct {
	of      func(x uint64) T      // returns an element from random bits, with exact sums
	factor  func(x uint64) T      // returns an element of which many can be multiplied
	bits    func(v T) uint64      // different for different elements
	combine func(Op, T, T) T      // returns a ∘ b, a of the lower rank
	user    map[Op]func(a, b T) T // user-defined operations except OpRight
}

func kindFrom[T mpi.Type](name string, size int, a *algebra[T], ops ...Op) kindOf {
	k := kindOf{name: name, size: size, ops: map[Op]mpi.Op{}}
	for _, op := range ops {
		k.ops[op] = predefined[op]
	}
	k.ops[OpRight] = mpi.NewOp(func(_, _ []T) {}, false)
	for op, f := range a.user {
		k.ops[op] = mpi.NewOp(func(in, inout []T) {
			for i, v := range in {
				inout[i] = f(v, inout[i])
			}
		}, op == OpModulo)
	}
	k.make = func(n int) vector { return &elements[T]{a: a, ops: k.ops, v: make([]T, n)} }
	k.none = &elements[T]{a: a, ops: k.ops}
	return k
}

type integer interface {
	int8 | int16 | int32 | int64 | int | uint8 | uint16 | uint32 | uint64 | uint
}

func integers[T integer](name string, size int) kindOf {
	of := func(x uint64) T { return T(x) }
	a := &algebra[T]{of: of, factor: of, bits: func(v T) uint64 { return uint64(v) }, combine: combineIntegers[T]}
	a.user = map[Op]func(T, T) T{}
	if strings.HasSuffix(name, "64") { // int is smaller on some machines
		a.user[OpAffine] = func(f, g T) T { return T(affine(uint64(f), uint64(g))) }
	}
	if size >= 4 {
		a.user[OpModulo] = func(f, g T) T { return T(modulo(uint64(f), uint64(g))) }
	}
	return kindFrom(name, size, a, OpSum, OpProd, OpMax, OpMin, OpLAnd, OpLOr, OpLXor, OpBAnd, OpBOr, OpBXor)
}

// affine composes two functions a*x+b modulo 2^32, f first; a is in the upper half.
func affine(f, g uint64) uint64 {
	fa, fb, ga, gb := uint32(f>>32), uint32(f), uint32(g>>32), uint32(g)
	return uint64(fa*ga)<<32 | uint64(ga*fb+gb)
}

// modulo adds the lower 31 bits modulo a prime.
func modulo(f, g uint64) uint64 {
	const prime = 1<<31 - 1
	return (f%prime + g%prime) % prime
}

func combineIntegers[T integer](op Op, a, b T) T {
	switch op {
	case OpLAnd:
		return truth[T](a != 0 && b != 0)
	case OpLOr:
		return truth[T](a != 0 || b != 0)
	case OpLXor:
		return truth[T]((a != 0) != (b != 0))
	case OpBAnd:
		return a & b
	case OpBOr:
		return a | b
	case OpBXor:
		return a ^ b
	default:
		return combineReals(op, a, b)
	}
}

func combineReals[T integer | float32 | float64](op Op, a, b T) T {
	switch op {
	case OpSum:
		return a + b
	case OpProd:
		return a * b
	case OpMax:
		return max(a, b)
	case OpMin:
		return min(a, b)
	default: // OpRight
		return b
	}
}

func truth[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}

// floats are small whole numbers, and powers of two for products, so that the order of operations
// does not show.
func floats[T float32 | float64](name string, size int) kindOf {
	a := &algebra[T]{
		of:      func(x uint64) T { return T(int16(x)) },
		factor:  func(x uint64) T { return [...]T{1, 2, -1, 0.5, -2}[x%5] },
		bits:    func(v T) uint64 { return unsigned(float64(v)) },
		combine: combineReals[T],
	}
	return kindFrom(name, size, a, OpSum, OpProd, OpMax, OpMin)
}

func complexes[T complex64 | complex128](name string, size int) kindOf {
	a := &algebra[T]{
		of:     func(x uint64) T { return T(complex(float64(int16(x)), float64(int16(x>>16)))) },
		factor: func(x uint64) T { return [...]T{1, -1, 1i, -1i, 2, 0.5}[x%6] },
		bits: func(v T) uint64 {
			c := complex128(v)
			return mix(unsigned(real(c))) ^ unsigned(imag(c))
		},
		combine: func(op Op, a, b T) T {
			switch op {
			case OpSum:
				return a + b
			case OpProd:
				return a * b
			default: // OpRight
				return b
			}
		},
	}
	return kindFrom(name, size, a, OpSum, OpProd)
}

// unsigned returns the bits of v, and those of +0 for -0, as the sign of zero depends on the order
// of operations.
func unsigned(v float64) uint64 {
	if v == 0 {
		return 0
	}
	return math.Float64bits(v)
}

func bools() kindOf {
	of := func(x uint64) bool { return x&1 != 0 }
	a := &algebra[bool]{
		of: of, factor: of,
		bits: func(v bool) uint64 {
			if v {
				return 1
			}
			return 0
		},
		combine: func(op Op, a, b bool) bool {
			switch op {
			case OpLAnd:
				return a && b
			case OpLOr:
				return a || b
			case OpLXor:
				return a != b
			default: // OpRight
				return b
			}
		},
	}
	return kindFrom("bool", 1, a, OpLAnd, OpLOr, OpLXor)
}

// pairs have few values, so that the lower index often decides.
func pairs[P mpi.Type](name string, size int, of func(value, index int32) P, parts func(P) (value float64, index int32)) kindOf {
	few := func(x uint64) P { return of(int32(x%4), int32(x>>33)) }
	a := &algebra[P]{
		of: few, factor: few,
		bits: func(v P) uint64 {
			value, index := parts(v)
			return mix(math.Float64bits(value)) + uint64(uint32(index))
		},
		combine: func(op Op, a, b P) P {
			av, ai := parts(a)
			bv, bi := parts(b)
			first := av > bv
			switch {
			case op == OpRight:
				return b
			case av == bv:
				first = ai < bi
			case op == OpMinLoc:
				first = !first
			}
			if first {
				return a
			}
			return b
		},
	}
	return kindFrom(name, size, a, OpMaxLoc, OpMinLoc)
}

// mix scatters the bits of x: the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
