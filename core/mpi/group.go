package mpi

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Comparison is how two groups or two communicators relate.
type Comparison = comm.Comparison

// The results of comparisons. Groups are never Congruent.
const (
	Identical = proc.Identical // the same members in the same order; of communicators: the same object
	Congruent = proc.Congruent // communicators of the same groups
	Similar   = proc.Similar   // the same members in another order
	Unequal   = proc.Unequal
)

// Range stands for the ranks First, First+Stride, … that do not pass Last.
type Range = comm.Range

// Group is an ordered set of procs, ranked from 0. It does not change, and stays
// what it is when the communicator that it comes from is freed. nil is
// MPI_GROUP_NULL. What it takes does not grow with its size as long as it is made
// of ranges.
type Group proc.Group

// GroupEmpty is the group without members. It cannot be freed: Free of it, which
// is right as many operations give it, does nothing.
var GroupEmpty = (*Group)(proc.GroupEmpty)
