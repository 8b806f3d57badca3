package mpi

import "github.com/openimpi/impi/core/datatype"

// Op is a reduction operation. Ops are equal if they are the same one.
type Op = *datatype.Op

// The predefined operations; all are commutative. See package datatype for the
// types that each takes. MaxLoc and MinLoc reduce Pairs.
var (
	Sum    Op = datatype.Sum
	Prod   Op = datatype.Prod
	Max    Op = datatype.Max
	Min    Op = datatype.Min
	LAnd   Op = datatype.LAnd
	LOr    Op = datatype.LOr
	LXor   Op = datatype.LXor
	BAnd   Op = datatype.BAnd
	BOr    Op = datatype.BOr
	BXor   Op = datatype.BXor
	MaxLoc Op = datatype.MaxLoc
	MinLoc Op = datatype.MinLoc
)

// NewOp makes an operation over T of f, which sets each element of inout to
// in ∘ inout. in belongs to the lower ranks. f must be associative; commutative
// says that the order of operands does not matter either. f may be called for
// parts of the buffers, must not keep them, and must not communicate.
func NewOp[T Type](f func(in, inout []T), commutative bool) Op {
	return datatype.NewOp(func(in, inout []byte, _ int, _ datatype.Kind) {
		f(datatype.View[T](in), datatype.View[T](inout))
	}, commutative, datatype.KindOf[T]())
}

// ReduceLocal sets each element of inout to in ∘ inout.
func ReduceLocal[T Type](in, inout []T, op Op) error {
	return failed("ReduceLocal", op.Apply(datatype.Bytes(in), datatype.Bytes(inout), datatype.KindOf[T](), len(in)))
}
