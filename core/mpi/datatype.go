package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/object"
)

// CreateTypeKeyval makes a key for attributes of datatypes, as CreateKeyval does
// for communicators. Datatypes are duplicated by TypeDup and end by TypeFree.
func CreateTypeKeyval(cp CopyFunc[*Datatype], del DeleteFunc[*Datatype], extra any) (Keyval, error) {
	return object.CreateTypeKeyval(object.CopyFunc[*Datatype](cp), object.DeleteFunc[*Datatype](del), extra)
}

// FreeTypeKeyval is FreeKeyval for a key of datatypes.
func FreeTypeKeyval(key *Keyval) error { return object.FreeTypeKeyval(key) }

// TypeSetAttr is SetAttr for datatypes, the predefined ones included.
func TypeSetAttr(t *Datatype, key Keyval, value any) error { return object.TypeSetAttr(t, key, value) }

// TypeAttr is Attr for datatypes.
func TypeAttr(t *Datatype, key Keyval) (value any, ok bool, err error) {
	return object.TypeAttr(t, key)
}

// TypeDeleteAttr is DeleteAttr for datatypes.
func TypeDeleteAttr(t *Datatype, key Keyval) error { return object.TypeDeleteAttr(t, key) }

// TypeDup makes a datatype like t, committed if t is, with those attributes that
// their CopyFuncs say.
func TypeDup(t *Datatype) (*Datatype, error) { return object.TypeDup(t) }

// TypeFree deletes the attributes of t and then frees it. If the first fails t
// stays.
func TypeFree(t *Datatype) error { return object.TypeFree(t) }

// Type are the types that messages are made of: Go's numbers, bool, what is made
// from them, and Pair.
type Type = datatype.Element

// Pair is what MinLoc and MaxLoc reduce: a value and where it was found.
type Pair[V datatype.PairValue] = datatype.Pair[V]

// TypeOf gives the datatype of Go's T.
func TypeOf[T Type]() *Datatype { return object.TypeOf[T]() }

// TypeContiguous is count items one after the other.
func TypeContiguous(count int64, old *Datatype) (*Datatype, error) {
	return object.TypeContiguous(count, old)
}

// TypeVector is count blocks of length items, whose beginnings are stride items
// apart.
func TypeVector(count, length, stride int64, old *Datatype) (*Datatype, error) {
	return object.TypeVector(count, length, stride, old)
}

// TypeHvector is TypeVector with a stride in bytes.
func TypeHvector(count, length, stride int64, old *Datatype) (*Datatype, error) {
	return object.TypeHvector(count, length, stride, old)
}

// TypeIndexed is blocks of lens items at disps.
func TypeIndexed(lens, disps []int64, old *Datatype) (*Datatype, error) {
	return object.TypeIndexed(lens, disps, old)
}

// TypeHindexed is TypeIndexed with displacements in bytes.
func TypeHindexed(lens, disps []int64, old *Datatype) (*Datatype, error) {
	return object.TypeHindexed(lens, disps, old)
}

// TypeIndexedBlock is blocks of one length at disps.
func TypeIndexedBlock(length int64, disps []int64, old *Datatype) (*Datatype, error) {
	return object.TypeIndexedBlock(length, disps, old)
}

// TypeHindexedBlock is TypeIndexedBlock with displacements in bytes.
func TypeHindexedBlock(length int64, disps []int64, old *Datatype) (*Datatype, error) {
	return object.TypeHindexedBlock(length, disps, old)
}

// TypeStruct is lens items of types at disps, which are in bytes.
func TypeStruct(lens, disps []int64, types []*Datatype) (*Datatype, error) {
	return object.TypeStruct(lens, disps, types)
}

// TypeResized is old with another lower bound and extent, in bytes.
func TypeResized(old *Datatype, lb, extent int64) (*Datatype, error) {
	return object.TypeResized(old, lb, extent)
}

// Order says which dimension of an array is dense: the last one, as in C and Go
// (OrderC), or the first one (OrderFortran).
type Order = datatype.Order

// The orders.
const (
	OrderC       = object.OrderC
	OrderFortran = object.OrderFortran
)

// TypeSubarray is the part with subsizes, from starts on, of an array with sizes.
func TypeSubarray(sizes, subsizes, starts []int64, order Order, old *Datatype) (*Datatype, error) {
	return object.TypeSubarray(sizes, subsizes, starts, order, old)
}

// Spread is how one dimension of an array is spread over processes, for TypeDarray.
type Spread = datatype.Spread

// The ways to spread a dimension, and the argument that leaves the block's size to
// the library.
const (
	DistributeBlock   = object.DistributeBlock
	DistributeCyclic  = object.DistributeCyclic
	DistributeNone    = object.DistributeNone
	DistributeDefault = object.DistributeDefault
)

// TypeDarray is the part that a rank of size processes has of a spread array.
func TypeDarray(size, rank int64, spreads []Spread, order Order, old *Datatype) (*Datatype, error) {
	return object.TypeDarray(size, rank, spreads, order, old)
}
