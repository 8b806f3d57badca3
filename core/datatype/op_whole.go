package datatype

// NewWholeOp is NewOp for an operation whose elements are several of a Kind's,
// which the library does not know of: it always gets all of a buffer, or of a
// block of it, and never a part.
func NewWholeOp(fn Func, commutative bool, kinds ...Kind) *Op {
	op := NewOp(fn, commutative, kinds...)
	op.whole = true
	return op
}

// Whole tells whether buffers must not be cut for the operation.
func (o *Op) Whole() bool { return o.whole }

// Typed tells whether the operation is a user's that takes items of any type.
func (o *Op) Typed() bool { return o != nil && o.typed != nil }
