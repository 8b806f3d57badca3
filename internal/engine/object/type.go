package object

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Datatypes are made from others, of which the first are those of TypeOf. Counts
// and block lengths are in items of the old type, as are displacements and strides
// but for those of the functions with an H in their name, Struct and Resized, which
// are in bytes. A new datatype must be committed (Datatype.Commit) before it is used
// in a Buffer; what it is made from can be freed at any time (TypeFree).

func TypeOf[T proc.Type]() *proc.Datatype { return datatype.Basic(datatype.KindOf[T]()) }

func TypeContiguous(count int64, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeContiguous")(datatype.Contiguous(count, old))
}

func TypeVector(count, length, stride int64, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeVector")(datatype.Vector(count, length, stride, old))
}

func TypeHvector(count, length, stride int64, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeHvector")(datatype.Hvector(count, length, stride, old))
}

func TypeIndexed(lens, disps []int64, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeIndexed")(datatype.Indexed(lens, disps, old))
}

func TypeHindexed(lens, disps []int64, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeHindexed")(datatype.Hindexed(lens, disps, old))
}

func TypeIndexedBlock(length int64, disps []int64, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeIndexedBlock")(datatype.IndexedBlock(length, disps, old))
}

func TypeHindexedBlock(length int64, disps []int64, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeHindexedBlock")(datatype.HindexedBlock(length, disps, old))
}

func TypeStruct(lens, disps []int64, types []*proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeStruct")(datatype.Struct(lens, disps, types))
}

func TypeResized(old *proc.Datatype, lb, extent int64) (*proc.Datatype, error) {
	return newType("TypeResized")(datatype.Resized(old, lb, extent))
}

// Order says which dimension of an array is dense: the last one, as in C and Go
// (OrderC), or the first one (OrderFortran).
type Order = datatype.Order

// The orders.
const (
	OrderC       = datatype.OrderC
	OrderFortran = datatype.OrderFortran
)

func TypeSubarray(sizes, subsizes, starts []int64, order Order, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeSubarray")(datatype.Subarray(sizes, subsizes, starts, order, old))
}

// Spread is how one dimension of an array is spread over processes, for TypeDarray.
type Spread = datatype.Spread

// The ways to spread a dimension, and the argument that leaves the block's size to
// the library.
const (
	DistributeBlock   = datatype.DistributeBlock
	DistributeCyclic  = datatype.DistributeCyclic
	DistributeNone    = datatype.DistributeNone
	DistributeDefault = datatype.DistributeDefault
)

func TypeDarray(size, rank int64, spreads []Spread, order Order, old *proc.Datatype) (*proc.Datatype, error) {
	return newType("TypeDarray")(datatype.Darray(size, rank, spreads, order, old))
}

// newType gives what a constructor has made, and its fault the function's name.
func newType(fn string) func(*proc.Datatype, error) (*proc.Datatype, error) {
	return func(t *proc.Datatype, err error) (*proc.Datatype, error) { return t, proc.Failed(fn, err) }
}
