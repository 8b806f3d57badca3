package datatype

import (
	"errors"
	"testing"
)

func TestMatchSize(t *testing.T) {
	for _, c := range []struct {
		family TypeClass
		size   int64
		want   string
	}{
		{TypeClassInteger, 1, "MPI_INTEGER1"}, {TypeClassInteger, 2, "MPI_INTEGER2"}, {TypeClassInteger, 4, "MPI_INTEGER4"}, {TypeClassInteger, 8, "MPI_INTEGER8"},
		{TypeClassInteger, 16, "MPI_INTEGER16"}, {TypeClassReal, 2, "MPI_REAL2"}, {TypeClassReal, 16, "MPI_REAL16"}, {TypeClassComplex, 4, "MPI_COMPLEX4"}, {TypeClassComplex, 32, "MPI_COMPLEX32"},
		{TypeClassReal, 4, "MPI_REAL4"}, {TypeClassReal, 8, "MPI_REAL8"}, {TypeClassComplex, 8, "MPI_COMPLEX8"}, {TypeClassComplex, 16, "MPI_COMPLEX16"},
	} {
		if got, err := MatchSize(c.family, c.size); err != nil || got != ByName(c.want) || got.Size() != c.size {
			t.Errorf("%d bytes of %d: %v, %v", c.size, c.family, got, err)
		}
	}
	for _, c := range []struct {
		family TypeClass
		size   int64
	}{{TypeClassInteger, 3}, {TypeClassReal, 5}, {TypeClassReal, 0}, {TypeClassReal, 32}, {191, 4}} {
		if got, err := MatchSize(c.family, c.size); got != nil || !errors.Is(err, ErrArg) {
			t.Errorf("%d bytes of %d: %v, %v", c.size, c.family, got, err)
		}
	}
}

func TestParameterized(t *testing.T) {
	long, size := LongDouble, int64(LongDouble.Size())
	if !x87 {
		long, size = Float128, 16
	}
	for _, c := range []struct {
		name string
		got  func() (*Type, error)
		size int64
		kind Kind
	}{
		{"float", func() (*Type, error) { return F90Real(6, 37) }, 4, Float32},
		{"digits", func() (*Type, error) { return F90Real(7, Undefined) }, 8, Float64},
		{"exponent", func() (*Type, error) { return F90Real(Undefined, 38) }, 8, Float64},
		{"complex", func() (*Type, error) { return F90Complex(15, 307) }, 16, Complex128},
		{"1 byte", func() (*Type, error) { return F90Integer(2) }, 1, Int8},
		{"2 bytes", func() (*Type, error) { return F90Integer(3) }, 2, Int16},
		{"4 bytes", func() (*Type, error) { return F90Integer(9) }, 4, Int32},
		{"8 bytes", func() (*Type, error) { return F90Integer(18) }, 8, Int64},
		{"16 bytes", func() (*Type, error) { return F90Integer(38) }, 16, Int128},
		{"as many digits as a long double", func() (*Type, error) { return F90Real(18, 4931) }, size, long},
		{"more digits", func() (*Type, error) { return F90Real(19, Undefined) }, 16, Float128},
		{"complex of more digits", func() (*Type, error) { return F90Complex(33, 4931) }, 32, Complex256},
	} {
		typ, err := c.got()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		again, _ := c.got()
		if k, ok := typ.Kind(); typ.Size() != c.size || !ok || k != c.kind || again != typ || !typ.Committed() || typ.Named() {
			t.Errorf("%s: %v of %d bytes, the same again: %v", c.name, k, typ.Size(), again == typ)
		}
		if err := Sum.CheckType(typ); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if in, err := must(Contiguous(2, typ)).Contents(); err != nil || in.Types[0] != typ {
			t.Errorf("%s: as a component it is %v, %v", c.name, in.Types, err)
		}
	}
	for name, make := range map[string]func() (*Type, error){
		"nothing asked": func() (*Type, error) { return F90Real(Undefined, Undefined) },
		"34 digits":     func() (*Type, error) { return F90Real(34, 10) },
		"exponent 4932": func() (*Type, error) { return F90Complex(6, 4932) },
		"negative":      func() (*Type, error) { return F90Real(-1, 10) },
		"39 digits":     func() (*Type, error) { return F90Integer(39) },
		"-1 digits":     func() (*Type, error) { return F90Integer(-1) },
	} {
		if got, err := make(); got != nil || !errors.Is(err, ErrArg) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestValueIndex(t *testing.T) {
	for _, c := range []struct{ value, index, want string }{
		{"MPI_FLOAT", "MPI_INT", "MPI_FLOAT_INT"}, {"MPI_DOUBLE", "MPI_INT", "MPI_DOUBLE_INT"}, {"MPI_LONG", "MPI_INT", "MPI_LONG_INT"},
		{"MPI_INT", "MPI_INT", "MPI_2INT"}, {"MPI_SHORT", "MPI_INT", "MPI_SHORT_INT"}, {"MPI_LONG_DOUBLE", "MPI_INT", "MPI_LONG_DOUBLE_INT"},
		{"MPI_REAL", "MPI_REAL", "MPI_2REAL"}, {"MPI_DOUBLE_PRECISION", "MPI_DOUBLE_PRECISION", "MPI_2DOUBLE_PRECISION"},
		{"MPI_CHAR", "MPI_INT", ""}, {"MPI_DOUBLE", "MPI_LONG", ""},
	} {
		if got, err := ValueIndex(ByName(c.value), ByName(c.index)); err != nil || got != ByName(c.want) {
			t.Errorf("%s and %s: %v, %v, want %s", c.value, c.index, got, err, c.want)
		}
	}
	if _, err := ValueIndex(nil, Basic(Int32)); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if _, err := ValueIndex(Basic(Int32), nil); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if got, err := ValueIndex(must(Contiguous(1, Basic(Int32))), Basic(Int32)); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
