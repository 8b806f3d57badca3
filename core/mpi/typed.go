package mpi

import (
	"errors"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
)

// Datatype says what the items of a Buffer are: a basic type or one derived from
// others. nil is MPI_DATATYPE_NULL.
type Datatype = datatype.Type

// Buffer is memory that messages come from and go to: count items of a datatype.
// It is a value and costs no allocation; the memory stays the caller's.
type Buffer struct {
	mem     unsafe.Pointer // origin of the first item
	len     int64          // bytes of memory from mem on; unknown: not known
	count   int
	typ     *Datatype
	inPlace bool
}

// unknown is the length of memory that only the caller knows.
const unknown = -1

// The faults of buffers.
var (
	// ErrBuffer means a buffer without memory, or with less than its items touch.
	ErrBuffer = errors.New("invalid buffer")
	// ErrCount means a negative count.
	ErrCount = errors.New("invalid count")
)

// InPlace is the Buffer that stands for the other one of a collective operation
// (MPI_IN_PLACE).
var InPlace = Buffer{inPlace: true}

// Of is all of s.
func Of[T Type](s []T) Buffer {
	b := datatype.Bytes(s)
	return Buffer{mem: unsafe.Pointer(unsafe.SliceData(b)), len: int64(len(b)), count: len(s), typ: datatype.Basic(datatype.KindOf[T]())}
}

// Typed is count items of datatype t, the first of which begins where s does.
// Calls fail with ErrBuffer if the items touch memory outside s.
func Typed[T any](s []T, count int, t *Datatype) Buffer {
	var zero T
	return Buffer{mem: unsafe.Pointer(unsafe.SliceData(s)), len: int64(len(s)) * int64(unsafe.Sizeof(zero)), count: count, typ: t}
}

// At is count items of datatype t at an address. That the items are memory of
// the program is for the caller to know. It is for bindings to other languages.
func At(p unsafe.Pointer, count int, t *Datatype) Buffer {
	return Buffer{mem: p, len: unknown, count: count, typ: t}
}

// Count gives how many items b has.
func (b Buffer) Count() int { return b.count }

// Datatype gives what b's items are.
func (b Buffer) Datatype() *Datatype { return b.typ }
