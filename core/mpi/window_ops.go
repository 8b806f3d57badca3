package mpi

import (
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/engine/window"
)

// Replace and NoOp are operations of accumulates alone: one puts the operand in the
// place of what is there, the other leaves that as it is.
var (
	Replace = window.Replace
	NoOp    = window.NoOp
)

// Put puts b into a window. The items there may be more, never fewer bytes.
func (w *Win) Put(b Buffer, to Target) error {
	return w.in().Origin().Put(proc.Buffer(b), window.Target(to))
}

// Rput is Put with a Request, which is complete once b can be used again. Requests
// are for epochs of Lock and LockAll.
func (w *Win) Rput(b Buffer, to Target) (Request, error) {
	return outRequest(w.in().Origin().Rput(proc.Buffer(b), window.Target(to)))
}

// Get gets items of a window into b, which may be more, never fewer bytes.
func (w *Win) Get(b Buffer, from Target) error {
	return w.in().Origin().Get(proc.Buffer(b), window.Target(from))
}

// Rget is Get with a Request, which is complete once b has the items.
func (w *Win) Rget(b Buffer, from Target) (Request, error) {
	return outRequest(w.in().Origin().Rget(proc.Buffer(b), window.Target(from)))
}

// Accumulate combines b into a window, element by element, by an operation that is
// not the program's own. Nobody's accumulates to an element come in between, and
// those of one proc happen in the order in which they were begun.
func (w *Win) Accumulate(b Buffer, to Target, op Op) error {
	return w.in().Origin().Accumulate(proc.Buffer(b), window.Target(to), op)
}

// Raccumulate is Accumulate with a Request, which is complete once b can be used
// again.
func (w *Win) Raccumulate(b Buffer, to Target, op Op) (Request, error) {
	return outRequest(w.in().Origin().Raccumulate(proc.Buffer(b), window.Target(to), op))
}

// GetAccumulate is Accumulate that also gets, into result, what was there before.
// With NoOp b is not looked at.
func (w *Win) GetAccumulate(b, result Buffer, to Target, op Op) error {
	return w.in().Origin().GetAccumulate(proc.Buffer(b), proc.Buffer(result), window.Target(to), op)
}

// RgetAccumulate is GetAccumulate with a Request, which is complete once result has
// what was there.
func (w *Win) RgetAccumulate(b, result Buffer, to Target, op Op) (Request, error) {
	return outRequest(w.in().Origin().RgetAccumulate(proc.Buffer(b), proc.Buffer(result), window.Target(to), op))
}

// FetchAndOp is GetAccumulate of one element: b and result are one item each of the
// same predefined datatype, and so is the target.
func (w *Win) FetchAndOp(b, result Buffer, rank int, disp int64, op Op) error {
	return w.in().Origin().FetchAndOp(proc.Buffer(b), proc.Buffer(result), rank, disp, op)
}

// CompareAndSwap puts b in the place of the element of a window if that is what
// compare has, and gets, into result, what was there before. All are one item of
// the same predefined datatype: an integer, a logical value or a byte.
func (w *Win) CompareAndSwap(b, compare, result Buffer, rank int, disp int64) error {
	return w.in().Origin().CompareAndSwap(proc.Buffer(b), proc.Buffer(compare), proc.Buffer(result), rank, disp)
}

// Put is Win.Put of a slice to as many elements disp units up in a rank's window.
func Put[T Type](w *Win, buf []T, rank int, disp int64) error {
	return window.Put(w.in(), buf, rank, disp)
}

// Get is Win.Get of as many elements as buf has.
func Get[T Type](w *Win, buf []T, rank int, disp int64) error {
	return window.Get(w.in(), buf, rank, disp)
}

// Accumulate is Win.Accumulate of a slice into as many elements.
func Accumulate[T Type](w *Win, buf []T, rank int, disp int64, op Op) error {
	return window.Accumulate(w.in(), buf, rank, disp, op)
}

// GetAccumulate is Win.GetAccumulate of slices of one length. With NoOp buf can be
// nil.
func GetAccumulate[T Type](w *Win, buf, result []T, rank int, disp int64, op Op) error {
	return window.GetAccumulate(w.in(), buf, result, rank, disp, op)
}

// FetchAndOp is Win.FetchAndOp of a value; result gets what was there, once the
// operation is complete. The value is taken at once.
func FetchAndOp[T Type](w *Win, value T, result *T, rank int, disp int64, op Op) error {
	return window.FetchAndOp(w.in(), value, result, rank, disp, op)
}

// CompareAndSwap is Win.CompareAndSwap of values; result gets what was there, once
// the operation is complete. The values are taken at once.
func CompareAndSwap[T Type](w *Win, value, compare T, result *T, rank int, disp int64) error {
	return window.CompareAndSwap(w.in(), value, compare, result, rank, disp)
}
