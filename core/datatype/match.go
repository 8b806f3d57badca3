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
	TypeClassInteger: {1: "MPI_INTEGER1", 2: "MPI_INTEGER2", 4: "MPI_INTEGER4", 8: "MPI_INTEGER8", 16: "MPI_INTEGER16"},
	TypeClassReal:    {2: "MPI_REAL2", 4: "MPI_REAL4", 8: "MPI_REAL8", 16: "MPI_REAL16"},
	TypeClassComplex: {4: "MPI_COMPLEX4", 8: "MPI_COMPLEX8", 16: "MPI_COMPLEX16", 32: "MPI_COMPLEX32"},
}

// MatchSize returns the predefined Fortran type of a family that has size bytes (MPI-4.1, 19.1.9).
func MatchSize(family TypeClass, size int64) (*Type, error) {
	if t := ByName(sized[family][size]); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("datatype: %w: no type of %d bytes in the family %d", ErrArg, size, family)
}

// ValueIndex returns the predefined pair of a value and an index of these types, or nil without an
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

// realDigits are reals by their decimal digits and exponents, and the complex numbers of two of
// them. The third line is what Fortran compilers for x86 that have C's long double choose for so
// many digits.
var realDigits = func() []reals {
	all := []reals{{6, 37, "MPI_REAL4", "MPI_COMPLEX8"}, {15, 307, "MPI_REAL8", "MPI_COMPLEX16"}}
	if x87 {
		all = append(all, reals{18, 4931, "MPI_LONG_DOUBLE", "MPI_C_LONG_DOUBLE_COMPLEX"})
	}
	return append(all, reals{33, 4931, "MPI_REAL16", "MPI_COMPLEX32"})
}()

type reals struct {
	p, r          int64
	real, complex string
}

var integerDigits = []struct {
	r    int64
	name string
}{{2, "MPI_INTEGER1"}, {4, "MPI_INTEGER2"}, {9, "MPI_INTEGER4"}, {18, "MPI_INTEGER8"}, {38, "MPI_INTEGER16"}}

// F90Real returns the predefined Fortran type of reals with precision p and range r; one of them
// may be Undefined (MPI-4.1, 19.1.9).
func F90Real(p, r int64) (*Type, error) {
	d, err := realOf(p, r)
	if err != nil {
		return nil, err
	}
	return parameterize(parameters{CombinerF90Real, p, r}, d.real, p, r)
}

// F90Complex is F90Real for complex numbers.
func F90Complex(p, r int64) (*Type, error) {
	d, err := realOf(p, r)
	if err != nil {
		return nil, err
	}
	return parameterize(parameters{CombinerF90Complex, p, r}, d.complex, p, r)
}

// F90Integer returns the predefined Fortran type of integers with range r.
func F90Integer(r int64) (*Type, error) {
	for _, d := range integerDigits {
		if r <= d.r && r >= 0 {
			return parameterize(parameters{CombinerF90Integer, 0, r}, d.name, r)
		}
	}
	return nil, fmt.Errorf("datatype: %w: no integer of %d digits", ErrArg, r)
}

func realOf(p, r int64) (reals, error) {
	given := func(v int64) bool { return v >= 0 || v == Undefined }
	if given(p) && given(r) && (p != Undefined || r != Undefined) {
		for _, d := range realDigits {
			if p <= d.p && r <= d.r {
				return d, nil
			}
		}
	}
	return reals{}, fmt.Errorf("datatype: %w: no real of %d digits and exponent %d", ErrArg, p, r)
}

func parameterize(key parameters, name string, args ...int64) (*Type, error) {
	basic := ByName(name)
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
