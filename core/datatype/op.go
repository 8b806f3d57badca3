package datatype

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrOp is wrapped by the error if an operation is not defined for a kind.
var ErrOp = errors.New("operation not defined for this kind of element")

// ErrAlign is wrapped by the error if a buffer is not aligned for its kind.
var ErrAlign = errors.New("buffer is not aligned for its elements")

// Func combines n elements of k: inout becomes in ∘ inout, element by element (MPI-4.1, 6.9.5).
// in holds the operands of the lower ranks. It may be called for parts of a buffer, and must not
// keep either slice.
type Func func(in, inout []byte, n int, k Kind)

// Op is a reduction operation. Ops are compared by address.
type Op struct {
	name        string
	commutative bool
	loops       *[kinds]loop // predefined
	fn          Func         // user-defined
	whole       bool
	only        uint64   // one bit for each kind that fn supports; 0: all
	typed       TypeFunc // user-defined, for items of any type
	target      bool     // for one-sided communication only
}

// loop runs one operation over n aligned elements.
type loop func(in, inout unsafe.Pointer, n int)

// NewOp returns an operation that calls a user's function. commutative allows operands in any
// order; associativity is always assumed (MPI-4.1, 6.9.5). kinds are those that fn supports, all if
// none is given.
func NewOp(fn Func, commutative bool, kinds ...Kind) *Op {
	op := &Op{name: "user-defined", commutative: commutative, fn: fn}
	for _, k := range kinds {
		op.only |= 1 << k
	}
	return op
}

func (o *Op) String() string {
	if o == nil {
		return "no operation"
	}
	return o.name
}

// Commutative reports whether operands may be taken in any order.
func (o *Op) Commutative() bool { return o.commutative }

// Predefined reports whether the operation is one of MPI's own, which cannot be freed.
func (o *Op) Predefined() bool { return o.loops != nil }

// Check returns ErrOp if the operation is not defined for k (MPI-4.1, 6.9.2).
func (o *Op) Check(k Kind) error {
	switch {
	case o == nil:
		return fmt.Errorf("datatype: %w: no operation given", ErrOp)
	case !k.Valid():
		return fmt.Errorf("datatype: %w: %d", ErrKind, k)
	case o.loops != nil && o.loops[k] == nil,
		o.loops == nil && o.only != 0 && o.only&(1<<k) == 0:
		return fmt.Errorf("datatype: %w: %v of %v", ErrOp, o, k)
	}
	return nil
}

// LoopOf returns a function that does Apply of a predefined operation for callers that have checked
// the memory: it sets n elements of inout, which are aligned and do not overlap those of in. The
// function is nil if the operation is not defined for k.
func LoopOf(o *Op, k Kind) func(in, inout unsafe.Pointer, n int) {
	if o == nil || o.loops == nil || !k.Valid() {
		return nil
	}
	return o.loops[k]
}

// Apply sets n elements of inout to in ∘ inout. Both hold native elements of k, aligned to
// k.Align(). They do not overlap.
func (o *Op) Apply(in, inout []byte, k Kind, n int) error {
	if err := o.Check(k); err != nil {
		return err
	}
	size := k.Size()
	if n < 0 || n > len(in)/size || n > len(inout)/size {
		return fmt.Errorf("datatype: %w: %v of %d of %v from %d into %d bytes", ErrBuffer, o, n, k, len(in), len(inout))
	}
	if n == 0 {
		return nil
	}
	a, b := unsafe.Pointer(unsafe.SliceData(in)), unsafe.Pointer(unsafe.SliceData(inout))
	if (uintptr(a)|uintptr(b))&uintptr(min(k.Align(), 8)-1) != 0 { // long doubles are not loaded as a whole
		return fmt.Errorf("datatype: %w: %v of %v", ErrAlign, o, k)
	}
	switch {
	case o.loops != nil:
		o.loops[k](a, b, n)
	case o.typed != nil:
		o.typed(a, b, n, Basic(k))
	default:
		o.fn(in[:n*size], inout[:n*size], n, k)
	}
	return nil
}

// NewWholeOp is NewOp for an operation whose elements consist of several elements of a Kind, in a
// way that the library cannot see: fn always gets a whole buffer, or a whole block of it.
func NewWholeOp(fn Func, commutative bool, kinds ...Kind) *Op {
	op := NewOp(fn, commutative, kinds...)
	op.whole = true
	return op
}

// Whole reports whether the operation must get whole buffers, or whole blocks of them, and no
// parts.
func (o *Op) Whole() bool { return o.whole }

// Typed reports whether the operation is a user's that takes items of any type.
func (o *Op) Typed() bool { return o != nil && o.typed != nil }
