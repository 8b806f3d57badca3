package mpi

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
)

// NewTypeOp makes an operation over items of any datatype of f, which sets each of
// the n items of t at inout to in ∘ inout. They lie in memory as t says. in belongs
// to the lower ranks. What NewOp says of its function holds for f.
func NewTypeOp(f func(in, inout unsafe.Pointer, n int, t *Datatype), commutative bool) Op {
	return datatype.NewTypeOp(f, commutative)
}

// ReduceLocalItems is ReduceLocal for Buffers: it sets each item of inout to
// in ∘ inout.
func ReduceLocalItems(in, inout Buffer, op Op) error {
	return failed("ReduceLocal", reduceLocal(in, inout, op))
}

func reduceLocal(in, inout Buffer, op Op) error {
	for _, b := range []*Buffer{&in, &inout} {
		if err := b.check(); err != nil {
			return err
		}
	}
	if in.count != inout.count || in.typ != inout.typ {
		return fmt.Errorf("%w: %d items of %v into %d of %v", ErrArg, in.count, in.typ, inout.count, inout.typ)
	}
	return op.ApplyType(in.mem, inout.mem, in.typ, in.count)
}
