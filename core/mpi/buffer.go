package mpi

import (
	"unsafe"

	"github.com/openimpi/impi/internal/engine/proc"
)

// InPlace is the Buffer that stands for the other one of a collective operation
// (MPI_IN_PLACE).
var InPlace = Buffer(proc.InPlace)

// Of is the Buffer of all elements of s.
func Of[T Type](s []T) Buffer { return Buffer(proc.Of(s)) }

// Typed is count items of datatype t, the first of which begins where s does.
// Calls fail with ErrBuffer if the items touch memory outside s. T must not have
// pointers: what arrives is any bytes.
func Typed[T any](s []T, count int, t *Datatype) Buffer { return Buffer(proc.Typed(s, count, t)) }

// At is count items of datatype t at an address. That the items are memory of
// the program is for the caller to know. It is for bindings to other languages.
func At(p unsafe.Pointer, count int, t *Datatype) Buffer { return Buffer(proc.At(p, count, t)) }
