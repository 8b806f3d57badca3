package mpi

import (
	"unsafe"

	"github.com/openimpi/impi/internal/engine/proc"
)

// InPlace is the Buffer that stands for the other buffer of a collective operation (MPI_IN_PLACE).
var InPlace = Buffer(proc.InPlace)

// Of returns the Buffer of all elements of s, with the datatype that stands for T. It keeps s
// itself, not a copy.
func Of[T Type](s []T) Buffer { return Buffer(proc.Of(s)) }

// Typed returns the Buffer of count items of datatype t, the first of which begins where s does.
// Calls fail with ErrBuffer if the items touch memory outside s. T must not contain pointers: any
// bytes may arrive.
func Typed[T any](s []T, count int, t *Datatype) Buffer { return Buffer(proc.Typed(s, count, t)) }

// At returns the Buffer of count items of datatype t at an address. The caller must make sure that
// the items are memory of the program. It is for bindings to other languages.
func At(p unsafe.Pointer, count int, t *Datatype) Buffer { return Buffer(proc.At(p, count, t)) }
