package mpi

import (
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
)

// Put is Win.Put of a slice to as many elements disp units up in a rank's window.
func Put[T Type](w *Win, buf []T, rank int, disp int64) error {
	return w.Put(Of(buf), elementsAt(buf, rank, disp))
}

// Get is Win.Get of as many elements as buf has.
func Get[T Type](w *Win, buf []T, rank int, disp int64) error {
	return w.Get(Of(buf), elementsAt(buf, rank, disp))
}

// Accumulate is Win.Accumulate of a slice into as many elements.
func Accumulate[T Type](w *Win, buf []T, rank int, disp int64, op Op) error {
	return w.Accumulate(Of(buf), elementsAt(buf, rank, disp), op)
}

// GetAccumulate is Win.GetAccumulate of slices of one length. With NoOp buf can be
// nil.
func GetAccumulate[T Type](w *Win, buf, result []T, rank int, disp int64, op Op) error {
	return w.GetAccumulate(Of(buf), Of(result), elementsAt(result, rank, disp), op)
}

// FetchAndOp is Win.FetchAndOp of a value; result gets what was there, once the
// operation is complete. The value is taken at once.
func FetchAndOp[T Type](w *Win, value T, result *T, rank int, disp int64, op Op) error {
	return w.FetchAndOp(Of([]T{value}), one(result), rank, disp, op)
}

// CompareAndSwap is Win.CompareAndSwap of values; result gets what was there, once
// the operation is complete. The values are taken at once.
func CompareAndSwap[T Type](w *Win, value, compare T, result *T, rank int, disp int64) error {
	return w.CompareAndSwap(Of([]T{value}), Of([]T{compare}), one(result), rank, disp)
}

// one is a Buffer of a single element; nil is no memory.
func one[T Type](x *T) Buffer {
	if x == nil {
		return Buffer{count: 1, typ: datatype.Basic(datatype.KindOf[T]())}
	}
	return Of(unsafe.Slice(x, 1))
}

func elementsAt[T Type](buf []T, rank int, disp int64) Target {
	return Target{rank, disp, len(buf), datatype.Basic(datatype.KindOf[T]())}
}
