package datatype

import (
	"math/bits"
	"runtime"
	"strconv"
	"unsafe"
)

// Kind is a basic element type (MPI-4.1, 3.2.2).
type Kind uint8

// The kinds. Byte is uninterpreted and never converted; Uint8 is Go's byte, a number. Int
// and Uint are Go's own; 8 bytes are sent for them, whatever the host's word size. The Pair
// kinds are Pair[int16] and so on.
//
// The kinds after PairFloat64 are further ones of C and Fortran. Packed is uninterpreted
// like Byte; Char is text and not a number; Long and ULong are C's long, a word in memory
// and 4 bytes in external32; WChar has 4 bytes in memory and 2 in external32; LongDouble is
// C's long double. The Logical kinds are Fortran's, by their size in bits. Pair2Float32 and
// Pair2Float64 are a value and an index of the same type. The last ones are types that not every
// Fortran has: IEEE numbers of 16 and 128 bits, complex numbers of two of these, and integers and
// logicals of 128 bits.
const (
	Invalid Kind = iota
	Byte
	Bool
	Int8
	Int16
	Int32
	Int64
	Int
	Uint8
	Uint16
	Uint32
	Uint64
	Uint
	Float32
	Float64
	Complex64
	Complex128
	PairInt16
	PairInt32
	PairInt64
	PairInt
	PairFloat32
	PairFloat64
	Packed
	Char
	WChar
	Long
	ULong
	LongDouble
	ComplexLongDouble
	Logical8
	Logical16
	Logical32
	Logical64
	PairLong
	PairLongDouble
	Pair2Float32
	Pair2Float64
	Float16
	Float128
	Complex32
	Complex256
	Int128
	Logical128

	kinds // the number of kinds
)

// Pair is the operand of MinLoc and MaxLoc (MPI-4.1, 6.9.4): a value and its location.
type Pair[V PairValue] struct {
	Value V
	Index int32
}

// PairValue is the constraint for the type of a Pair's value.
type PairValue interface {
	int16 | int32 | int64 | int | float32 | float64
}

const word = bits.UintSize / 8

// layout is the form of one kind in memory and in streams. A number is count components of
// width bytes (wireWidth in native-le and native-be, external in external32). A pair is a
// value of width bytes and an int32 at offset index.
type layout struct {
	name      string
	size      uint8 // bytes of an element in memory, with padding
	align     uint8
	width     uint8
	wireWidth uint8
	external  uint8
	count     uint8
	signed    bool
	index     uint8 // offset of the index; 0: not a pair
	twin      bool  // the second component is an index
	quad      bool  // components are long doubles; sent as IEEE quads
}

var layouts = [kinds]layout{
	Invalid:     {name: "invalid"},
	Byte:        number("byte", 1, 1, 1, false),
	Bool:        number("bool", 1, 1, 1, false),
	Int8:        number("int8", 1, 1, 1, true),
	Int16:       number("int16", 2, 2, 1, true),
	Int32:       number("int32", 4, 4, 1, true),
	Int64:       number("int64", 8, 8, 1, true),
	Int:         number("int", word, 8, 1, true),
	Uint8:       number("uint8", 1, 1, 1, false),
	Uint16:      number("uint16", 2, 2, 1, false),
	Uint32:      number("uint32", 4, 4, 1, false),
	Uint64:      number("uint64", 8, 8, 1, false),
	Uint:        number("uint", word, 8, 1, false),
	Float32:     number("float32", 4, 4, 1, false),
	Float64:     number("float64", 8, 8, 1, false),
	Complex64:   number("complex64", 4, 4, 2, false),
	Complex128:  number("complex128", 8, 8, 2, false),
	PairInt16:   pair[int16]("pair[int16]", 2),
	PairInt32:   pair[int32]("pair[int32]", 4),
	PairInt64:   pair[int64]("pair[int64]", 8),
	PairInt:     pair[int]("pair[int]", 8),
	PairFloat32: pair[float32]("pair[float32]", 4),
	PairFloat64: pair[float64]("pair[float64]", 8),

	Packed:            number("packed", 1, 1, 1, false),
	Char:              number("char", 1, 1, 1, false),
	WChar:             narrowed(number("wchar", 4, 4, 1, false), 2),
	Long:              narrowed(number("long", word, 8, 1, true), 4),
	ULong:             narrowed(number("ulong", word, 8, 1, false), 4),
	LongDouble:        longDouble("longdouble", 1),
	ComplexLongDouble: longDouble("complexlongdouble", 2),
	Logical8:          number("logical8", 1, 1, 1, true),
	Logical16:         number("logical16", 2, 2, 1, true),
	Logical32:         number("logical32", 4, 4, 1, true),
	Logical64:         number("logical64", 8, 8, 1, true),
	PairLong:          narrowed(pair[int]("pair[long]", 8), 4),
	PairLongDouble:    longDoublePair("pair[longdouble]"),
	Pair2Float32:      twin("pair2[float32]", 4),
	Pair2Float64:      twin("pair2[float64]", 8),
	Float16:           number("float16", 2, 2, 1, false),
	Float128:          number("float128", 16, 16, 1, false),
	Complex32:         number("complex32", 2, 2, 2, false),
	Complex256:        number("complex256", 16, 16, 2, false),
	Int128:            number("int128", 16, 16, 1, true),
	Logical128:        number("logical128", 16, 16, 1, true),
}

func (l *layout) pair() bool { return l.index > 0 || l.twin }

func number(name string, width, wire, count uint8, signed bool) layout {
	align := width
	if width == 8 {
		align = uint8(unsafe.Alignof(float64(0))) // 4 on 386
	}
	return layout{name: name, size: width * count, align: align, width: width,
		wireWidth: wire, external: wire, count: count, signed: signed}
}

// narrowed returns l with another number of bytes in external32 (MPI-4.1, 14.5.2).
func narrowed(l layout, external uint8) layout {
	l.external = external
	return l
}

func twin(name string, width uint8) layout {
	l := number(name, width, width, 2, false)
	l.twin = true
	return l
}

// C's long double: on x86 the 80 bits of the x87 and padding, elsewhere an IEEE quad, which is also
// its form in external32 (MPI-4.1, 14.5.2).
const (
	x87       = runtime.GOARCH == "amd64" || runtime.GOARCH == "386"
	quadWidth = 16
)

func longDouble(name string, count uint8) layout {
	width, align := uint8(quadWidth), uint8(quadWidth)
	switch runtime.GOARCH {
	case "386":
		width, align = 12, 4
	case "s390x":
		align = 8
	}
	return layout{name: name, size: width * count, align: align, width: width,
		wireWidth: quadWidth, external: quadWidth, count: count, quad: true}
}

func longDoublePair(name string) layout {
	l := longDouble(name, 1)
	l.index = l.width
	l.size = (l.width + 4 + l.align - 1) / l.align * l.align
	return l
}

func pair[V PairValue](name string, wire uint8) layout {
	var p Pair[V]
	return layout{name: name, size: uint8(unsafe.Sizeof(p)), align: uint8(unsafe.Alignof(p)),
		width: uint8(unsafe.Sizeof(p.Value)), wireWidth: wire, external: wire, signed: true,
		index: uint8(unsafe.Offsetof(p.Index))}
}

// Valid reports whether k is a kind other than Invalid, as a number from outside may not be.
func (k Kind) Valid() bool { return k > Invalid && k < kinds }

func (k Kind) String() string {
	if k < kinds {
		return layouts[k].name
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Size returns the size in bytes of one element in this host's memory, with padding, or 0 if k is
// not a kind.
func (k Kind) Size() int {
	if k < kinds {
		return int(layouts[k].size)
	}
	return 0
}

// Align returns the alignment that elements of the kind need in this host's memory.
func (k Kind) Align() int {
	if k.Valid() {
		return int(layouts[k].align)
	}
	return 1
}
