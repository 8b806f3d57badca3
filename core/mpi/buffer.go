package mpi

import (
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// BsendOverhead is what each Bsend takes of the attached memory besides its
// data, in bytes (MPI_BSEND_OVERHEAD).
const BsendOverhead = proc.BsendOverhead

// Unlimited is the size of a buffer that any number of messages fit in
// (MPI_BUFFER_AUTOMATIC).
const Unlimited = proc.Unlimited

// SendBuffer is memory that the buffered sends of some communicators take from,
// instead of that of BufferAttach, while there is some attached.
type SendBuffer proc.SendBuffer

// Datatype says what the items of a Buffer are: a basic type or one derived from
// others. nil is MPI_DATATYPE_NULL.
type Datatype = datatype.Type

// Buffer is memory that messages come from and go to: count items of a datatype.
// It is a value and costs no allocation; the memory stays the caller's.
type Buffer proc.Buffer

// InPlace is the Buffer that stands for the other one of a collective operation
// (MPI_IN_PLACE).
var InPlace = Buffer(proc.InPlace)

// Of is all of s.
func Of[T Type](s []T) Buffer { return Buffer(proc.Of(s)) }

// Typed is count items of datatype t, the first of which begins where s does.
// Calls fail with ErrBuffer if the items touch memory outside s. T must not have
// pointers: what arrives is any bytes.
func Typed[T any](s []T, count int, t *Datatype) Buffer { return Buffer(proc.Typed(s, count, t)) }

// At is count items of datatype t at an address. That the items are memory of
// the program is for the caller to know. It is for bindings to other languages.
func At(p unsafe.Pointer, count int, t *Datatype) Buffer { return Buffer(proc.At(p, count, t)) }
