package mpi

import (
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
)

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

// NewInfo makes an empty one.
func NewInfo() *Info { return (*Info)(proc.NewInfo()) }

// Dup makes a copy with the same keys and values in the same order.
func (i *Info) Dup() (d *Info, err error) { return outInfo(i.in().Dup()) }

// Free ends the use of the object.
func (i *Info) Free() error { return i.in().Free() }

// Set gives a key a value, instead of one that it may have.
func (i *Info) Set(key, value string) error { return i.in().Set(key, value) }

// Delete takes a key off. ErrInfoNoKey means that there is none.
func (i *Info) Delete(key string) error { return i.in().Delete(key) }

// Get gives the value of a key; ok is whether there is one.
func (i *Info) Get(key string) (value string, ok bool, err error) { return i.in().Get(key) }

// GetUpTo is Get of at most n bytes of the value (MPI_Info_get).
func (i *Info) GetUpTo(key string, n int) (value string, ok bool, err error) {
	return i.in().GetUpTo(key, n)
}

// GetString is Get for who has room bytes, one of them for a terminator, and
// tells how many are needed (MPI_Info_get_string). No room asks for that only.
func (i *Info) GetString(key string, room int) (value string, needed int, ok bool, err error) {
	return i.in().GetString(key, room)
}

// Len gives the number of keys.
func (i *Info) Len() (n int, err error) { return i.in().Len() }

// Key gives the nth key, from 0 to Len-1, in the order in which they were set.
func (i *Info) Key(n int) (key string, err error) { return i.in().Key(n) }

// InfoEnv tells how this proc was started (MPI_INFO_ENV), or is nil before Init:
// "command", "argv", "maxprocs", "host", "arch", "wdir" and "thread_level", as far
// as they are known. It cannot be changed.
func InfoEnv() *Info { return (*Info)(object.InfoEnv()) }
