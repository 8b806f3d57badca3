package datatype

import (
	"fmt"
	"unsafe"
)

// TypeFunc combines n items of t: each item at inout becomes in ∘ inout (MPI-4.1, 6.9.5). in and
// inout are the origins of the first items, whose layout in memory is that of t, with its gaps. It
// may be called for parts of a buffer, and must not keep either pointer.
type TypeFunc func(in, inout unsafe.Pointer, n int, t *Type)

// NewTypeOp returns an operation that calls a user's function for items of any type.
func NewTypeOp(fn TypeFunc, commutative bool) *Op {
	return &Op{name: "user-defined", commutative: commutative, typed: fn}
}

// The operations that only one-sided communication has: Replace replaces the target by the operand,
// NoOp leaves it unchanged (MPI-4.1, 12.3.4). They take every kind.
var (
	Replace = &Op{name: "replace", commutative: false, loops: &[kinds]loop{}, target: true}
	NoOp    = &Op{name: "no_op", commutative: false, loops: &[kinds]loop{}, target: true}
)

// CheckType returns ErrOp if the operation is not defined for items of t. A predefined operation
// accepts predefined types; a user's operation accepts the types that its function supports.
func (o *Op) CheckType(t *Type) error {
	if err := t.Check(); err != nil {
		return err
	}
	if o != nil && o.typed != nil {
		return nil
	}
	k, basic := t.Kind()
	if !basic {
		return fmt.Errorf("datatype: %w: %v of %v, which is not predefined", ErrOp, o, t)
	}
	return o.Check(k)
}

// CheckAccumulate returns ErrOp if the operation is not defined for items of t at the target of
// one-sided communication: the operation must be predefined, and all elements must be of one kind
// that it accepts (MPI-4.1, 12.3.4).
func (o *Op) CheckAccumulate(t *Type) error {
	if err := t.Check(); err != nil {
		return err
	}
	switch k, ok := t.Homogeneous(); {
	case o == nil || !o.Predefined():
		return fmt.Errorf("datatype: %w: %v is not predefined", ErrOp, o)
	case o.target || t.Size() == 0:
		return nil
	case !ok:
		return fmt.Errorf("datatype: %w: %v of %v, whose elements are not of one kind", ErrOp, o, t)
	default:
		return o.Check(k)
	}
}

// ApplyType sets n items at inout to in ∘ inout. Both are origins of items of t; the memory
// that Span returns must exist, be aligned, and not overlap.
func (o *Op) ApplyType(in, inout unsafe.Pointer, t *Type, n int) error {
	if err := o.CheckType(t); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("datatype: %w: %d", ErrCount, n)
	}
	if n == 0 {
		return nil
	}
	if o.typed != nil {
		o.typed(in, inout, n, t)
		return nil
	}
	k, _ := t.Kind()
	size := int64(n) * int64(k.Size())
	return o.Apply(memory(in, 0, size), memory(inout, 0, size), k, n)
}

// Accumulate is like Apply for the target of one-sided communication, and supports Replace and NoOp
// too.
func (o *Op) Accumulate(in, inout []byte, k Kind, n int) error {
	if o != Replace && o != NoOp {
		return o.Apply(in, inout, k, n)
	}
	if !k.Valid() {
		return fmt.Errorf("datatype: %w: %d", ErrKind, k)
	}
	if size := k.Size(); n < 0 || n > len(in)/size || n > len(inout)/size {
		return fmt.Errorf("datatype: %w: %v of %d of %v from %d into %d bytes", ErrBuffer, o, n, k, len(in), len(inout))
	}
	if o == Replace {
		copy(inout[:n*k.Size()], in)
	}
	return nil
}
