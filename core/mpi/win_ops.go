package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
)

// Operations begin in an epoch that a synchronisation has opened, and are complete
// when one ends it. Until then, or until a Flush, neither the memory that they take
// from nor what they change may be used for anything else.

// Replace and NoOp are operations of accumulates alone: one puts the operand in the
// place of what is there, the other leaves that as it is.
var (
	Replace Op = datatype.Replace
	NoOp    Op = datatype.NoOp
)

// Put puts b into a window. The items there may be more, never fewer bytes.
func (w *Win) Put(b Buffer, to Target) error {
	_, err := w.put("Put", b, to, false)
	return w.failed("Put", err)
}

// Rput is Put with a Request, which is complete once b can be used again. Requests
// are for epochs of Lock and LockAll.
func (w *Win) Rput(b Buffer, to Target) (Request, error) {
	q, err := w.put("Rput", b, to, true)
	return q, w.failed("Rput", err)
}

// Get gets items of a window into b, which may be more, never fewer bytes.
func (w *Win) Get(b Buffer, from Target) error {
	_, err := w.get("Get", b, from, false)
	return w.failed("Get", err)
}

// Rget is Get with a Request, which is complete once b has the items.
func (w *Win) Rget(b Buffer, from Target) (Request, error) {
	q, err := w.get("Rget", b, from, true)
	return q, w.failed("Rget", err)
}

// Accumulate combines b into a window, element by element, by an operation that is
// not the program's own. Nobody's accumulates to an element come in between, and
// those of one proc happen in the order in which they were begun.
func (w *Win) Accumulate(b Buffer, to Target, op Op) error {
	_, err := w.accumulate("Accumulate", b, to, op, false)
	return w.failed("Accumulate", err)
}

// Raccumulate is Accumulate with a Request, which is complete once b can be used
// again.
func (w *Win) Raccumulate(b Buffer, to Target, op Op) (Request, error) {
	q, err := w.accumulate("Raccumulate", b, to, op, true)
	return q, w.failed("Raccumulate", err)
}

// GetAccumulate is Accumulate that also gets, into result, what was there before.
// With NoOp b is not looked at.
func (w *Win) GetAccumulate(b, result Buffer, to Target, op Op) error {
	_, err := w.getAccumulate("GetAccumulate", b, result, to, op, false)
	return w.failed("GetAccumulate", err)
}

// RgetAccumulate is GetAccumulate with a Request, which is complete once result has
// what was there.
func (w *Win) RgetAccumulate(b, result Buffer, to Target, op Op) (Request, error) {
	q, err := w.getAccumulate("RgetAccumulate", b, result, to, op, true)
	return q, w.failed("RgetAccumulate", err)
}

// FetchAndOp is GetAccumulate of one element: b and result are one item each of the
// same predefined datatype, and so is the target.
func (w *Win) FetchAndOp(b, result Buffer, rank int, disp int64, op Op) error {
	return w.failed("FetchAndOp", w.fetchAndOp(b, result, rank, disp, op))
}

// CompareAndSwap puts b in the place of the element of a window if that is what
// compare has, and gets, into result, what was there before. All are one item of
// the same predefined datatype: an integer, a logical value or a byte.
func (w *Win) CompareAndSwap(b, compare, result Buffer, rank int, disp int64) error {
	return w.failed("CompareAndSwap", w.compareAndSwap(b, compare, result, rank, disp))
}

func (w *Win) put(fn string, b Buffer, to Target, request bool) (Request, error) {
	size, none, err := w.mayGo(&to, &b)
	if none || err != nil {
		return w.nothing(), err
	}
	if size.here > size.there {
		return Request{}, fmt.Errorf("%w: %d bytes into %d", rma.ErrSize, size.here, size.there)
	}
	h := rma.Header{Kind: rma.Put, Disp: to.Disp, Count: int64(to.Count)}
	return w.operate(fn, &to, h, parts{out: &b}, size.here, request)
}

func (w *Win) get(fn string, b Buffer, from Target, request bool) (Request, error) {
	size, none, err := w.mayGo(&from, &b)
	if none || err != nil {
		return w.nothing(), err
	}
	if size.there > size.here {
		return Request{}, fmt.Errorf("%w: %d bytes into %d", rma.ErrSize, size.there, size.here)
	}
	h := rma.Header{Kind: rma.Get, Disp: from.Disp, Count: int64(from.Count)}
	return w.operate(fn, &from, h, parts{in: &b}, size.there, request)
}

func (w *Win) accumulate(fn string, b Buffer, to Target, op Op, request bool) (Request, error) {
	size, none, err := w.mayGo(&to, &b)
	if none || err != nil {
		return w.nothing(), err
	}
	if err := combines(op, &to, b.typ); err != nil {
		return Request{}, err
	}
	if size.there != size.here {
		return Request{}, fmt.Errorf("%w: %d bytes with %d", rma.ErrSize, size.here, size.there)
	}
	h := rma.Header{Kind: rma.Accumulate, Op: op, Disp: to.Disp, Count: int64(to.Count)}
	return w.operate(fn, &to, h, parts{out: &b}, size.here, request)
}

func (w *Win) getAccumulate(fn string, b, result Buffer, to Target, op Op, request bool) (Request, error) {
	size, none, err := w.mayGo(&to, &result)
	if none || err != nil {
		return w.nothing(), err
	}
	if err := combines(op, &to, result.typ); err != nil {
		return Request{}, err
	}
	x := parts{in: &result}
	if op != NoOp {
		mine, _, err := w.mayGo(&to, &b)
		if err != nil {
			return Request{}, err
		}
		if err := combines(op, &to, b.typ); err != nil {
			return Request{}, err
		}
		size.here, x.out = min(size.here, mine.here), &b
		size.there = max(size.there, mine.here)
	}
	if size.there != size.here {
		return Request{}, fmt.Errorf("%w: of the three, one has %d bytes and one %d", rma.ErrSize, size.here, size.there)
	}
	h := rma.Header{Kind: rma.GetAccumulate, Op: op, Disp: to.Disp, Count: int64(to.Count)}
	return w.operate(fn, &to, h, x, size.there, request)
}

// combines tells whether an accumulate can have a target and a datatype at this
// side.
func combines(op Op, to *Target, here *Datatype) error {
	for _, t := range []*Datatype{to.Type, here} {
		if err := op.CheckAccumulate(t); err != nil {
			return err
		}
	}
	mine, ok1 := here.Homogeneous()
	theirs, ok2 := to.Type.Homogeneous()
	if ok1 && ok2 && mine != theirs {
		return fmt.Errorf("%w: %v here, and %v at the target", datatype.ErrType, here, to.Type)
	}
	if at := (rma.Items{Count: to.Count, Type: to.Type}); !at.Whole() {
		return fmt.Errorf("%w: %d items of %v lie on each other at the target", datatype.ErrType, to.Count, to.Type)
	}
	return nil
}

func (w *Win) fetchAndOp(b, result Buffer, rank int, disp int64, op Op) error {
	if err := w.single(&result); err != nil {
		return err
	}
	if op != NoOp {
		if err := w.single(&b); err != nil {
			return err
		}
		if err := alike(&b, &result); err != nil {
			return err
		}
	}
	to := Target{rank, disp, 1, result.typ}
	_, err := w.getAccumulate("FetchAndOp", b, result, to, op, false)
	return err
}

// single checks a Buffer that is to be one item of a predefined datatype.
func (w *Win) single(b *Buffer) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	if _, predefined := b.typ.Kind(); !predefined {
		return fmt.Errorf("%w: %v is not predefined", datatype.ErrType, b.typ)
	}
	if b.count != 1 {
		return fmt.Errorf("%w: %d instead of 1", datatype.ErrCount, b.count)
	}
	return nil
}

// alike tells whether two items are of one predefined datatype.
func alike(a, b *Buffer) error {
	k, _ := a.typ.Kind()
	if other, _ := b.typ.Kind(); k != other {
		return fmt.Errorf("%w: %v and %v", datatype.ErrType, a.typ, b.typ)
	}
	return nil
}

func (w *Win) compareAndSwap(b, compare, result Buffer, rank int, disp int64) error {
	for _, x := range []*Buffer{&b, &compare, &result} {
		if err := w.single(x); err != nil {
			return err
		}
		if err := alike(&b, x); err != nil {
			return err
		}
	}
	if k, _ := b.typ.Kind(); !rma.Swappable(k) {
		return fmt.Errorf("%w: %v cannot be compared and swapped", datatype.ErrType, b.typ)
	}
	to := Target{rank, disp, 1, b.typ}
	size, none, err := w.mayGo(&to, &b)
	if none || err != nil {
		return err
	}
	h := rma.Header{Kind: rma.CompareAndSwap, Disp: disp, Count: 1}
	_, err = w.operate("CompareAndSwap", &to, h, parts{out: &b, swap: &compare, in: &result}, size.there, false)
	return err
}
