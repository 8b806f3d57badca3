package collective

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Op is a reduction operation (MPI-4.1, 6.9.1). Ops are equal if they are the same one.
type Op = *datatype.Op

// NewOp makes an operation of a function that the program has for elements of one kind. It must be
// associative (MPI-4.1, 6.9.5).
func NewOp[T proc.Type](f func(in, inout []T), commutative bool) Op {
	return datatype.NewOp(func(in, inout []byte, _ int, _ datatype.Kind) {
		f(datatype.View[T](in), datatype.View[T](inout))
	}, commutative, datatype.KindOf[T]())
}

// ReduceLocal combines in with inout at this proc alone, into inout (MPI-4.1, 6.9.7).
func ReduceLocal(in, inout proc.Buffer, op Op) error {
	for _, b := range []*proc.Buffer{&in, &inout} {
		if err := b.Check(); err != nil {
			return err
		}
	}
	if in.Count() != inout.Count() || in.Datatype() != inout.Datatype() {
		return fmt.Errorf("%w: %d items of %v into %d of %v", proc.ErrArg, in.Count(), in.Datatype(), inout.Count(), inout.Datatype())
	}
	if in.Count() > 0 && in.Memory() == inout.Memory() {
		return fmt.Errorf("%w: both buffers are the same memory", proc.ErrBuffer)
	}
	return op.ApplyType(in.Memory(), inout.Memory(), in.Datatype(), in.Count())
}
