package mpi

import "github.com/openimpi/impi/core/datatype"

// Type are the types that messages are made of: Go's numbers, bool, what is made
// from them, and Pair.
type Type = datatype.Element

// Pair is what MinLoc and MaxLoc reduce: a value and where it was found.
type Pair[V datatype.PairValue] = datatype.Pair[V]

// Order says which dimension of an array is dense: the last one, as in C and Go
// (OrderC), or the first one (OrderFortran).
type Order = datatype.Order

// The orders.
const (
	OrderC       = datatype.OrderC
	OrderFortran = datatype.OrderFortran
)

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
