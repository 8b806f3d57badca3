package window

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Operations begin in an epoch that a synchronisation has opened, and are complete when one ends
// it. Until then, or until a Flush, the program must not change memory that they read, nor access
// memory that they write (MPI-4.1, 12.7).

// Put writes b into the window of a member (MPI-4.1, 12.3.1). With request the result completes
// when b may be used again (MPI-4.1, 12.3.5); without it is the null request. fn is the name for
// errors.
func (o *Origin) Put(fn string, b proc.Buffer, to Target, request bool) (proc.Request, error) {
	if o.putPlain(&b, &to, request) {
		return o.nothing(request), nil
	}
	size, none, err := o.mayGo(&to, &b)
	if none || err != nil {
		return o.nothing(request), err
	}
	if size.here > size.there {
		return proc.Request{}, fmt.Errorf("%w: %d bytes into %d", rma.ErrSize, size.here, size.there)
	}
	h := rma.Header{Kind: rma.Put, Disp: to.Disp, Count: int64(to.Count)}
	return o.operate(fn, &to, h, parts{out: &b}, size.here, request)
}

// Get reads from the window of a member into b (MPI-4.1, 12.3.2). With request the result completes
// when the data are in b.
func (o *Origin) Get(fn string, b proc.Buffer, from Target, request bool) (proc.Request, error) {
	if o.getPlain(&b, &from, request) {
		return o.nothing(request), nil
	}
	size, none, err := o.mayGo(&from, &b)
	if none || err != nil {
		return o.nothing(request), err
	}
	if size.there > size.here {
		return proc.Request{}, fmt.Errorf("%w: %d bytes into %d", rma.ErrSize, size.there, size.here)
	}
	h := rma.Header{Kind: rma.Get, Disp: from.Disp, Count: int64(from.Count)}
	return o.operate(fn, &from, h, parts{in: &b}, size.there, request)
}

// Accumulate combines b with what is in the window, element by element (MPI-4.1, 12.3.4). It fails
// for an operation that is not predefined, and for elements of different types. request is as in
// Put.
func (o *Origin) Accumulate(fn string, b proc.Buffer, to Target, op collective.Op, request bool) (proc.Request, error) {
	if o.combinePlain(&b, nil, &to, op, request) {
		return o.nothing(request), nil
	}
	size, none, err := o.mayGo(&to, &b)
	if none || err != nil {
		return o.nothing(request), err
	}
	if err := combines(op, &to, b.Datatype()); err != nil {
		return proc.Request{}, err
	}
	if size.there != size.here {
		return proc.Request{}, fmt.Errorf("%w: %d bytes with %d", rma.ErrSize, size.here, size.there)
	}
	h := rma.Header{Kind: rma.Accumulate, Op: op, Disp: to.Disp, Count: int64(to.Count)}
	return o.operate(fn, &to, h, parts{out: &b}, size.here, request)
}

// GetAccumulate is Accumulate that first reads what was there into result; with datatype.NoOp it
// only reads, and b is not looked at (MPI-4.1, 12.3.4).
func (o *Origin) GetAccumulate(fn string, b, result proc.Buffer, to Target, op collective.Op, request bool) (proc.Request, error) {
	if o.combinePlain(operand(&b, op), &result, &to, op, request) {
		return o.nothing(request), nil
	}
	size, none, err := o.mayGo(&to, &result)
	if none || err != nil {
		return o.nothing(request), err
	}
	if err := combines(op, &to, result.Datatype()); err != nil {
		return proc.Request{}, err
	}
	x := parts{in: &result}
	if op != datatype.NoOp {
		mine, _, err := o.mayGo(&to, &b)
		if err != nil {
			return proc.Request{}, err
		}
		if err := combines(op, &to, b.Datatype()); err != nil {
			return proc.Request{}, err
		}
		size.here, x.out = min(size.here, mine.here), &b
		size.there = max(size.there, mine.here)
	}
	if size.there != size.here {
		return proc.Request{}, fmt.Errorf("%w: of the three, one has %d bytes and one %d", rma.ErrSize, size.here, size.there)
	}
	h := rma.Header{Kind: rma.GetAccumulate, Op: op, Disp: to.Disp, Count: int64(to.Count)}
	return o.operate(fn, &to, h, x, size.there, request)
}

// combines returns an error unless op may combine items of these two types (MPI-4.1, 12.3.4), and
// those at the target do not lie on each other.
func combines(op collective.Op, to *Target, here *proc.Datatype) error {
	for _, t := range []*proc.Datatype{to.Type, here} {
		if err := op.CheckAccumulate(t); err != nil {
			return err
		}
	}
	mine, ok1 := here.Homogeneous()
	theirs, ok2 := to.Type.Homogeneous()
	if ok1 && ok2 && mine != theirs {
		return fmt.Errorf("%w: %v here, and %v at the target", datatype.ErrType, here, to.Type)
	}
	if at := (rma.Items{Count: to.Count, Type: to.Type}); !at.PacksWithinSpan() {
		return fmt.Errorf("%w: %d items of %v lie on each other at the target", datatype.ErrType, to.Count, to.Type)
	}
	return nil
}

// operand returns what op combines, or nil if that is nothing.
func operand(b *proc.Buffer, op collective.Op) *proc.Buffer {
	if op == datatype.NoOp {
		return nil
	}
	return b
}

// FetchAndOp is GetAccumulate for one element of a predefined type (MPI-4.1, 12.3.4).
func (o *Origin) FetchAndOp(b, result proc.Buffer, rank int, disp int64, op collective.Op) error {
	to := Target{rank, disp, 1, result.Datatype()}
	if o.combinePlain(operand(&b, op), &result, &to, op, false) {
		return nil
	}
	if err := o.single(&result); err != nil {
		return err
	}
	if op != datatype.NoOp {
		if err := o.single(&b); err != nil {
			return err
		}
		if err := alike(&b, &result); err != nil {
			return err
		}
	}
	_, err := o.GetAccumulate("FetchAndOp", b, result, to, op, false)
	return err
}

func (o *Origin) single(b *proc.Buffer) error {
	if err := o.w.Check(); err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return err
	}
	if _, predefined := b.Datatype().Kind(); !predefined {
		return fmt.Errorf("%w: %v is not predefined", datatype.ErrType, b.Datatype())
	}
	if b.Count() != 1 {
		return fmt.Errorf("%w: %d instead of 1", datatype.ErrCount, b.Count())
	}
	return nil
}

func alike(a, b *proc.Buffer) error {
	k, _ := a.Datatype().Kind()
	if other, _ := b.Datatype().Kind(); k != other {
		return fmt.Errorf("%w: %v and %v", datatype.ErrType, a.Datatype(), b.Datatype())
	}
	return nil
}

// CompareAndSwap replaces an element of the window by b if it equals compare, and reads what was
// there into result (MPI-4.1, 12.3.4). The element is an integer, a boolean or a byte.
func (o *Origin) CompareAndSwap(b, compare, result proc.Buffer, rank int, disp int64) error {
	to := Target{rank, disp, 1, b.Datatype()}
	if o.swapPlain(&b, &compare, &result, &to) {
		return nil
	}
	for _, x := range []*proc.Buffer{&b, &compare, &result} {
		if err := o.single(x); err != nil {
			return err
		}
		if err := alike(&b, x); err != nil {
			return err
		}
	}
	if k, _ := b.Datatype().Kind(); !rma.Swappable(k) {
		return fmt.Errorf("%w: %v cannot be compared and swapped", datatype.ErrType, b.Datatype())
	}
	size, none, err := o.mayGo(&to, &b)
	if none || err != nil {
		return err
	}
	h := rma.Header{Kind: rma.CompareAndSwap, Disp: disp, Count: 1}
	_, err = o.operate("CompareAndSwap", &to, h, parts{out: &b, swap: &compare, in: &result}, size.there, false)
	return err
}

// Single returns a Buffer of a single element; nil is no memory.
func Single[T proc.Type](x *T) proc.Buffer {
	if x == nil {
		return proc.At(nil, 1, datatype.Basic(datatype.KindOf[T]()))
	}
	return proc.Of(unsafe.Slice(x, 1))
}

// ElementsAt returns the target for len(buf) elements in the window of a rank.
func ElementsAt[T proc.Type](buf []T, rank int, disp int64) Target {
	return Target{rank, disp, len(buf), datatype.Basic(datatype.KindOf[T]())}
}
