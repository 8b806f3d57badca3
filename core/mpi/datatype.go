package mpi

import (
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/p2p"
)

// CreateTypeKeyval makes a key for attributes of datatypes, as CreateKeyval does
// for communicators. Datatypes are duplicated by TypeDup and end by TypeFree.
func CreateTypeKeyval(cp CopyFunc[*Datatype], del DeleteFunc[*Datatype], extra any) (Keyval, error) {
	return p2p.CreateTypeKeyval(p2p.CopyFunc[*Datatype](cp), p2p.DeleteFunc[*Datatype](del), extra)
}

// FreeTypeKeyval is FreeKeyval for a key of datatypes.
func FreeTypeKeyval(key *Keyval) error { return p2p.FreeTypeKeyval(key) }

// TypeSetAttr is SetAttr for datatypes, the predefined ones included.
func TypeSetAttr(t *Datatype, key Keyval, value any) error { return p2p.TypeSetAttr(t, key, value) }

// TypeAttr is Attr for datatypes.
func TypeAttr(t *Datatype, key Keyval) (value any, ok bool, err error) { return p2p.TypeAttr(t, key) }

// TypeDeleteAttr is DeleteAttr for datatypes.
func TypeDeleteAttr(t *Datatype, key Keyval) error { return p2p.TypeDeleteAttr(t, key) }

// TypeDup makes a datatype like t, committed if t is, with those attributes that
// their CopyFuncs say.
func TypeDup(t *Datatype) (*Datatype, error) { return p2p.TypeDup(t) }

// TypeFree deletes the attributes of t and then frees it. If the first fails t
// stays.
func TypeFree(t *Datatype) error { return p2p.TypeFree(t) }

// Type are the types that messages are made of: Go's numbers, bool, what is made
// from them, and Pair.
type Type = datatype.Element

// Pair is what MinLoc and MaxLoc reduce: a value and where it was found.
type Pair[V datatype.PairValue] = datatype.Pair[V]

// TypeOf gives the datatype of Go's T.
func TypeOf[T Type]() *Datatype { return p2p.TypeOf[T]() }

// TypeContiguous is count items one after the other.
func TypeContiguous(count int64, old *Datatype) (*Datatype, error) {
	return p2p.TypeContiguous(count, old)
}

// TypeVector is count blocks of length items, whose beginnings are stride items
// apart.
func TypeVector(count, length, stride int64, old *Datatype) (*Datatype, error) {
	return p2p.TypeVector(count, length, stride, old)
}

// TypeHvector is TypeVector with a stride in bytes.
func TypeHvector(count, length, stride int64, old *Datatype) (*Datatype, error) {
	return p2p.TypeHvector(count, length, stride, old)
}

// TypeIndexed is blocks of lens items at disps.
func TypeIndexed(lens, disps []int64, old *Datatype) (*Datatype, error) {
	return p2p.TypeIndexed(lens, disps, old)
}

// TypeHindexed is TypeIndexed with displacements in bytes.
func TypeHindexed(lens, disps []int64, old *Datatype) (*Datatype, error) {
	return p2p.TypeHindexed(lens, disps, old)
}

// TypeIndexedBlock is blocks of one length at disps.
func TypeIndexedBlock(length int64, disps []int64, old *Datatype) (*Datatype, error) {
	return p2p.TypeIndexedBlock(length, disps, old)
}

// TypeHindexedBlock is TypeIndexedBlock with displacements in bytes.
func TypeHindexedBlock(length int64, disps []int64, old *Datatype) (*Datatype, error) {
	return p2p.TypeHindexedBlock(length, disps, old)
}

// TypeStruct is lens items of types at disps, which are in bytes.
func TypeStruct(lens, disps []int64, types []*Datatype) (*Datatype, error) {
	return p2p.TypeStruct(lens, disps, types)
}

// TypeResized is old with another lower bound and extent, in bytes.
func TypeResized(old *Datatype, lb, extent int64) (*Datatype, error) {
	return p2p.TypeResized(old, lb, extent)
}

// Order says which dimension of an array is dense: the last one, as in C and Go
// (OrderC), or the first one (OrderFortran).
type Order = datatype.Order

// The orders.
const (
	OrderC       = p2p.OrderC
	OrderFortran = p2p.OrderFortran
)

// TypeSubarray is the part with subsizes, from starts on, of an array with sizes.
func TypeSubarray(sizes, subsizes, starts []int64, order Order, old *Datatype) (*Datatype, error) {
	return p2p.TypeSubarray(sizes, subsizes, starts, order, old)
}

// Spread is how one dimension of an array is spread over processes, for TypeDarray.
type Spread = datatype.Spread

// The ways to spread a dimension, and the argument that leaves the block's size to
// the library.
const (
	DistributeBlock   = p2p.DistributeBlock
	DistributeCyclic  = p2p.DistributeCyclic
	DistributeNone    = p2p.DistributeNone
	DistributeDefault = p2p.DistributeDefault
)

// TypeDarray is the part that a rank of size processes has of a spread array.
func TypeDarray(size, rank int64, spreads []Spread, order Order, old *Datatype) (*Datatype, error) {
	return p2p.TypeDarray(size, rank, spreads, order, old)
}
