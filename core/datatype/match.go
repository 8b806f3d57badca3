package datatype

import (
	"fmt"
	"maps"
	"sync/atomic"
)

// TypeClass is a family of Fortran types (MPI-4.1, 19.1.9). The values are those of MPI's ABI.
type TypeClass int

// The families.
const (
	TypeClassInteger TypeClass = 192
	TypeClassReal    TypeClass = 193
	TypeClassComplex TypeClass = 194
)

var sized = map[TypeClass]map[int64]string{
	TypeClassInteger: {1: "MPI_INTEGER1", 2: "MPI_INTEGER2", 4: "MPI_INTEGER4", 8: "MPI_INTEGER8"},
	TypeClassReal:    {4: "MPI_REAL4", 8: "MPI_REAL8", 16: "MPI_LONG_DOUBLE"},
	TypeClassComplex: {8: "MPI_COMPLEX8", 16: "MPI_COMPLEX16", 32: "MPI_C_LONG_DOUBLE_COMPLEX"},
}

// MatchSize returns the predefined Fortran type of a family that has size bytes (MPI-4.1, 19.1.9).
// For 16 bytes, which no Fortran type here has, it is the C compiler's long double if that has 16.
func MatchSize(family TypeClass, size int64) (*Type, error) {
	if t := ByName(sized[family][size]); t != nil && t.Size() == size {
		return t, nil
	}
	return nil, fmt.Errorf("datatype: %w: no type of %d bytes in the family %d", ErrArg, size, family)
}

// ValueIndex returns the predefined pair of a value and an index of these types; nil without an
// error if there is none (MPI-4.1, 6.9.4).
func ValueIndex(value, index *Type) (*Type, error) {
	v, err := usable(value)
	if err != nil {
		return nil, err
	}
	i, err := usable(index)
	if err != nil {
		return nil, err
	}
	if v.form != formBasic || i.form != formBasic {
		return nil, nil
	}
	switch {
	case i.kind == Int32:
		return Basic(pairsOfInt[v.kind]), nil
	case i.kind == v.kind && i.kind == Float32:
		return Basic(Pair2Float32), nil
	case i.kind == v.kind && i.kind == Float64:
		return Basic(Pair2Float64), nil
	}
	return nil, nil
}

var pairsOfInt = [kinds]Kind{
	Int16: PairInt16, Int32: PairInt32, Int64: PairInt64, Int: PairInt, Float32: PairFloat32, Float64: PairFloat64,
	Long: PairLong, LongDouble: PairLongDouble,
}

// parameters are the arguments that a parameterized Fortran type was requested with.
type parameters struct {
	combiner Combiner
	p, r     int64
}

// parameterized are the types made so far: the same request gives the same handle (MPI-4.1,
// 19.1.9). The map is replaced as a whole, and never changed.
var parameterized atomic.Pointer[map[parameters]*Type]

// The decimal digits and exponents of the IEEE types, and digits of integers.
var (
	realDigits    = []struct{ p, r, size int64 }{{6, 37, 4}, {15, 307, 8}}
	integerDigits = []struct{ r, size int64 }{{2, 1}, {4, 2}, {9, 4}, {18, 8}}
)

// F90Real returns the predefined Fortran type of reals with precision p and range r; one of them
// may be Undefined (MPI-4.1, 19.1.9).
func F90Real(p, r int64) (*Type, error) { return f90(CombinerF90Real, TypeClassReal, 1, p, r) }

// F90Complex is F90Real for complex numbers.
func F90Complex(p, r int64) (*Type, error) { return f90(CombinerF90Complex, TypeClassComplex, 2, p, r) }

// F90Integer returns the predefined Fortran type of integers with range r.
func F90Integer(r int64) (*Type, error) {
	for _, d := range integerDigits {
		if r <= d.r && r >= 0 {
			return parameterize(parameters{CombinerF90Integer, 0, r}, TypeClassInteger, d.size, r)
		}
	}
	return nil, fmt.Errorf("datatype: %w: no integer of %d digits", ErrArg, r)
}

func f90(combiner Combiner, family TypeClass, components, p, r int64) (*Type, error) {
	given := func(v int64) bool { return v >= 0 || v == Undefined }
	if given(p) && given(r) && (p != Undefined || r != Undefined) {
		for _, d := range realDigits {
			if p <= d.p && r <= d.r {
				return parameterize(parameters{combiner, p, r}, family, components*d.size, p, r)
			}
		}
	}
	return nil, fmt.Errorf("datatype: %w: no real of %d digits and exponent %d", ErrArg, p, r)
}

func parameterize(key parameters, family TypeClass, size int64, args ...int64) (*Type, error) {
	basic, err := MatchSize(family, size)
	if err != nil {
		return nil, err
	}
	var made *Type
	for {
		old := parameterized.Load()
		types := map[parameters]*Type{}
		if old != nil {
			if t := (*old)[key]; t != nil {
				return t, nil
			}
			types = maps.Clone(*old)
		}
		if made == nil {
			d := alias(basic.def)
			d.shape, d.how = basic.def.shape, how{combiner: key.combiner, args: args}
			made = own(d)
		}
		types[key] = made
		if parameterized.CompareAndSwap(old, &types) {
			return made, nil
		}
	}
}
