package mpi

import "github.com/openimpi/impi/core/datatype"

// Datatypes are made from others, of which the first are those of TypeOf. Counts
// and block lengths are in items of the old type, as are displacements and strides
// but for those of the functions with an H in their name, Struct and Resized, which
// are in bytes. A new datatype must be committed (Datatype.Commit) before it is used
// in a Buffer; what it is made from can be freed at any time (TypeFree).

// TypeOf gives the datatype of Go's T.
func TypeOf[T Type]() *Datatype { return datatype.Basic(datatype.KindOf[T]()) }

// TypeContiguous is count items one after the other.
func TypeContiguous(count int64, old *Datatype) (*Datatype, error) {
	return newType("TypeContiguous")(datatype.Contiguous(count, old))
}

// TypeVector is count blocks of length items, whose beginnings are stride items
// apart.
func TypeVector(count, length, stride int64, old *Datatype) (*Datatype, error) {
	return newType("TypeVector")(datatype.Vector(count, length, stride, old))
}

// TypeHvector is TypeVector with a stride in bytes.
func TypeHvector(count, length, stride int64, old *Datatype) (*Datatype, error) {
	return newType("TypeHvector")(datatype.Hvector(count, length, stride, old))
}

// TypeIndexed is blocks of lens items at disps.
func TypeIndexed(lens, disps []int64, old *Datatype) (*Datatype, error) {
	return newType("TypeIndexed")(datatype.Indexed(lens, disps, old))
}

// TypeHindexed is TypeIndexed with displacements in bytes.
func TypeHindexed(lens, disps []int64, old *Datatype) (*Datatype, error) {
	return newType("TypeHindexed")(datatype.Hindexed(lens, disps, old))
}

// TypeIndexedBlock is blocks of one length at disps.
func TypeIndexedBlock(length int64, disps []int64, old *Datatype) (*Datatype, error) {
	return newType("TypeIndexedBlock")(datatype.IndexedBlock(length, disps, old))
}

// TypeHindexedBlock is TypeIndexedBlock with displacements in bytes.
func TypeHindexedBlock(length int64, disps []int64, old *Datatype) (*Datatype, error) {
	return newType("TypeHindexedBlock")(datatype.HindexedBlock(length, disps, old))
}

// TypeStruct is lens items of types at disps, which are in bytes.
func TypeStruct(lens, disps []int64, types []*Datatype) (*Datatype, error) {
	return newType("TypeStruct")(datatype.Struct(lens, disps, types))
}

// TypeResized is old with another lower bound and extent, in bytes.
func TypeResized(old *Datatype, lb, extent int64) (*Datatype, error) {
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

// TypeSubarray is the part with subsizes, from starts on, of an array with sizes.
func TypeSubarray(sizes, subsizes, starts []int64, order Order, old *Datatype) (*Datatype, error) {
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

// TypeDarray is the part that a rank of size processes has of a spread array.
func TypeDarray(size, rank int64, spreads []Spread, order Order, old *Datatype) (*Datatype, error) {
	return newType("TypeDarray")(datatype.Darray(size, rank, spreads, order, old))
}

// newType gives what a constructor has made, and its fault the function's name.
func newType(fn string) func(*Datatype, error) (*Datatype, error) {
	return func(t *Datatype, err error) (*Datatype, error) { return t, failed(fn, err) }
}
