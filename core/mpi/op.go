package mpi

import (
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Op is a reduction operation. Ops are equal if they are the same one.
type Op = *datatype.Op

// The predefined operations; all are commutative. See package datatype for the
// types that each takes. MaxLoc and MinLoc reduce Pairs.
var (
	Sum    = collective.Sum
	Prod   = collective.Prod
	Max    = collective.Max
	Min    = collective.Min
	LAnd   = collective.LAnd
	LOr    = collective.LOr
	LXor   = collective.LXor
	BAnd   = collective.BAnd
	BOr    = collective.BOr
	BXor   = collective.BXor
	MaxLoc = collective.MaxLoc
	MinLoc = collective.MinLoc
)

// NewOp makes an operation over T of f, which sets each element of inout to
// in ∘ inout. in belongs to the lower ranks. f must be associative; commutative
// says that the order of operands does not matter either. f may be called for
// parts of the buffers, must not keep them, and must not communicate.
func NewOp[T Type](f func(in, inout []T), commutative bool) Op {
	return collective.NewOp(f, commutative)
}

// ReduceLocal sets each element of inout to in ∘ inout.
func ReduceLocal[T Type](in, inout []T, op Op) error { return collective.ReduceLocal(in, inout, op) }

// NewTypeOp makes an operation over items of any datatype of f, which sets each of
// the n items of t at inout to in ∘ inout. They lie in memory as t says. in belongs
// to the lower ranks. What NewOp says of its function holds for f.
func NewTypeOp(f func(in, inout unsafe.Pointer, n int, t *Datatype), commutative bool) Op {
	return collective.NewTypeOp(f, commutative)
}

// ReduceLocalItems is ReduceLocal for Buffers: it sets each item of inout to
// in ∘ inout.
func ReduceLocalItems(in, inout Buffer, op Op) error {
	return collective.ReduceLocalItems(proc.Buffer(in), proc.Buffer(inout), op)
}
