package mpi

import (
	"github.com/openimpi/impi/internal/engine/object"
)

// CopyFunc is called when an object that has the attribute is duplicated. The
// duplicate gets copied, unless keep is false. After an error there is no
// duplicate. It may call MPI.
type CopyFunc[O any] func(old O, key Keyval, extra, value any) (copied any, keep bool, err error)

// DeleteFunc is called when an object loses the attribute: by its deletion, by another value or by
// the end of the object. After an error the object keeps the attribute. It may call MPI.
type DeleteFunc[O any] func(object O, key Keyval, value, extra any) error

// NullCopy is the CopyFunc of attributes that are not copied to duplicates.
func NullCopy[O any](old O, key Keyval, extra, value any) (copied any, keep bool, err error) {
	return object.NullCopy(old, key, extra, value)
}

// DupCopy is the CopyFunc of attributes whose value is copied to duplicates.
func DupCopy[O any](old O, key Keyval, extra, value any) (copied any, keep bool, err error) {
	return object.DupCopy(old, key, extra, value)
}

// NullDelete is the DeleteFunc of attributes that need no action when they are deleted.
func NullDelete[O any](o O, key Keyval, value, extra any) error {
	return object.NullDelete(o, key, value, extra)
}
