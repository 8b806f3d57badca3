package rma

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
)

// Items are count items of a committed datatype in a window. Mem is the origin of the
// first, Rep the representation in which they are sent.
type Items struct {
	Mem   unsafe.Pointer
	Count int
	Type  *datatype.Type
	Rep   datatype.Representation
}

// Size returns the number of bytes of the items in a message.
func (x *Items) Size() int64 { return int64(x.Count) * x.Type.Packed(x.Rep) }

// PacksWithinSpan reports whether the items take no more bytes in a message than the memory that
// they touch. That is so for the items of accumulates, which may not overlap.
func (x *Items) PacksWithinSpan() bool {
	lo, hi, err := x.Type.Span(x.Count)
	return err == nil && int64(x.Count)*x.Type.Packed(datatype.Native) <= hi-lo
}

const batch = 4096

// Scratch is memory for combining elements. It can be reused.
type Scratch struct{ in, inout [batch / 8]uint64 } // aligned for every kind

func room(words *[batch / 8]uint64, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(words)), batch)[:n]
}

// Accumulate combines each item by op with the corresponding item of data (MPI-4.1, 12.3.4), which
// has Size bytes in the representation Rep. If old is not nil it is filled with the previous values
// of the items, in the same representation. The caller has checked op against the datatype.
func (x *Items) Accumulate(op *datatype.Op, data, old []byte, s *Scratch) error {
	if old != nil {
		x.Type.Encode(x.Rep, old, x.Mem, x.Count, 0)
	}
	switch {
	case op == datatype.NoOp:
		return nil
	case int64(len(data)) != x.Size():
		return fmt.Errorf("%w: %d bytes for %d", ErrHeader, len(data), x.Size())
	case op == datatype.Replace:
		var c datatype.Carry
		x.Type.Decode(x.Rep, x.Mem, x.Count, 0, data, &c)
		return nil
	}
	if k, ok := x.Type.Homogeneous(); ok { // otherwise the items have no elements
		return x.combine(op, k, data, s)
	}
	return nil
}

// combine is Accumulate for items whose elements are all of kind k.
func (x *Items) combine(op *datatype.Op, k datatype.Kind, data []byte, s *Scratch) error {
	wire, size := x.Rep.Size(k), k.Size()
	if there, ok := x.plain(k, data); ok && wire == size {
		return op.Accumulate(data, there, k, len(data)/size)
	}
	step := batch / max(size, wire)
	for first := 0; first < len(data)/wire; first += step {
		n := min(step, len(data)/wire-first)
		part, off := data[first*wire:(first+n)*wire], int64(first)*int64(size)
		in, inout := room(&s.in, n*size), room(&s.inout, n*size)
		if err := x.Rep.Decode(in, part, k, n); err != nil {
			return err
		}
		x.Type.Pack(inout, x.Mem, x.Count, off)
		if err := op.Accumulate(in, inout, k, n); err != nil {
			return err
		}
		x.Type.Unpack(x.Mem, x.Count, off, inout)
	}
	return nil
}

// plain returns the memory of the items if they and data are elements of kind k as they are in
// memory, in one piece and aligned.
func (x *Items) plain(k datatype.Kind, data []byte) (mem []byte, ok bool) {
	disp, ok := x.Type.Run(x.Count)
	if !ok || !x.Type.Identity(x.Rep) || len(data) == 0 {
		return nil, false
	}
	at := unsafe.Add(x.Mem, disp)
	if (uintptr(at)|uintptr(unsafe.Pointer(unsafe.SliceData(data))))%uintptr(k.Align()) != 0 {
		return nil, false
	}
	return unsafe.Slice((*byte)(at), len(data)), true
}

// Swappable reports whether CompareAndSwap is defined for a kind: integers, logical values and
// bytes (MPI-4.1, 12.3.4).
func Swappable(k datatype.Kind) bool {
	switch k {
	case datatype.Packed:
		return false
	case datatype.Bool, datatype.Byte, datatype.Char, datatype.WChar:
		return true
	default:
		return k.Valid() && (datatype.BAnd.Check(k) == nil || datatype.LAnd.Check(k) == nil)
	}
}

// CompareAndSwap replaces the single element of x by the first half of data if it equals the second
// half, and fills old with the previous value of the element.
func (x *Items) CompareAndSwap(data, old []byte) {
	n := len(data) / 2
	x.Type.Encode(x.Rep, old, x.Mem, 1, 0)
	if string(old) == string(data[n:]) {
		x.Type.Decode(x.Rep, x.Mem, 1, 0, data[:n], nil)
	}
}
