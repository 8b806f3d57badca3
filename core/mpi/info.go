package mpi

import "github.com/openimpi/impi/internal/engine/proc"

// The bounds of info objects, in bytes: MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL,
// less C's terminator.
const (
	MaxInfoKey   = proc.MaxInfoKey
	MaxInfoValue = proc.MaxInfoValue
)

// The faults of info objects.
var (
	// ErrInfo means an info object that is missing, freed or not to be changed.
	ErrInfo = proc.ErrInfo
	// ErrInfoKey means a key that is empty or too long.
	ErrInfoKey = proc.ErrInfoKey
	// ErrInfoValue means a value that is too long.
	ErrInfoValue = proc.ErrInfoValue
	// ErrInfoNoKey means a key that the object does not have.
	ErrInfoNoKey = proc.ErrInfoNoKey
)

// Info is a list of keys with values, in the order in which the keys were first
// set. It can be used before Init, after Finalize and by several goroutines. nil
// is MPI_INFO_NULL.
type Info proc.Info
