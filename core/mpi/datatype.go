package mpi

import "github.com/openimpi/impi/core/datatype"

// Pair is what MinLoc and MaxLoc reduce: a value and where it was found.
type Pair[V datatype.PairValue] = datatype.Pair[V]
