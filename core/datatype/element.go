package datatype

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Number is the constraint for Go's numeric types and the types derived from them.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int |
		~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Element is the constraint for the element types of a message.
type Element interface {
	Number | ~bool |
		Pair[int16] | Pair[int32] | Pair[int64] | Pair[int] | Pair[float32] | Pair[float64]
}

var reflected = [...]Kind{
	reflect.Bool: Bool, reflect.Int8: Int8, reflect.Int16: Int16, reflect.Int32: Int32,
	reflect.Int64: Int64, reflect.Int: Int, reflect.Uint8: Uint8, reflect.Uint16: Uint16,
	reflect.Uint32: Uint32, reflect.Uint64: Uint64, reflect.Uint: Uint,
	reflect.Float32: Float32, reflect.Float64: Float64,
	reflect.Complex64: Complex64, reflect.Complex128: Complex128,
}

// KindOf returns the kind of T. It is called in each MPI call on a slice: only for types with names
// of their own does it use the slower package reflect.
func KindOf[T Element]() Kind {
	switch any((*T)(nil)).(type) {
	case *bool:
		return Bool
	case *int8:
		return Int8
	case *int16:
		return Int16
	case *int32:
		return Int32
	case *int64:
		return Int64
	case *int:
		return Int
	case *uint8:
		return Uint8
	case *uint16:
		return Uint16
	case *uint32:
		return Uint32
	case *uint64:
		return Uint64
	case *uint:
		return Uint
	case *float32:
		return Float32
	case *float64:
		return Float64
	case *complex64:
		return Complex64
	case *complex128:
		return Complex128
	case *Pair[int16]:
		return PairInt16
	case *Pair[int32]:
		return PairInt32
	case *Pair[int64]:
		return PairInt64
	case *Pair[int]:
		return PairInt
	case *Pair[float32]:
		return PairFloat32
	case *Pair[float64]:
		return PairFloat64
	}
	return reflected[reflect.TypeFor[T]().Kind()]
}

// Bytes returns the memory of s as bytes, without copying. A nil slice stays nil.
func Bytes[T Element](s []T) []byte {
	if s == nil {
		return nil
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// View is the inverse of Bytes: it returns the elements in b, without copying; bytes that
// do not fill an element are left out. b must be aligned for T, as are the results of
// Bytes, slices that make returns, and a Schedule's scratch memory; otherwise View panics.
func View[T Element](b []byte) []T {
	var zero T
	if len(b) == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%unsafe.Alignof(zero) != 0 {
		panic(fmt.Sprintf("datatype: View of %T at an odd address", zero))
	}
	return unsafe.Slice((*T)(p), len(b)/int(unsafe.Sizeof(zero)))
}
