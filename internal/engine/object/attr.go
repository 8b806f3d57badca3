package object

import (
	"sync"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
)

// CopyFunc is called when an object that has the attribute is duplicated. The duplicate gets the
// value copied, unless keep is false. After an error no duplicate is made. The function may call
// MPI (MPI-4.1, 7.7.2).
type CopyFunc[O any] func(old O, key comm.Keyval, extra, value any) (copied any, keep bool, err error)

// DeleteFunc is called when an object loses the attribute: by its deletion, by another value or by
// the end of the object. After an error the object keeps the attribute. The function may call MPI
// (MPI-4.1, 7.7.2).
type DeleteFunc[O any] func(object O, key comm.Keyval, value, extra any) error

func NullCopy[O any](old O, key comm.Keyval, extra, value any) (copied any, keep bool, err error) {
	return nil, false, nil
}

func DupCopy[O any](old O, key comm.Keyval, extra, value any) (copied any, keep bool, err error) {
	return value, true, nil
}

func NullDelete[O any](object O, key comm.Keyval, value, extra any) error { return nil }

// Keyvals are the attribute keys of the program.
var Keyvals = comm.Keys{Guard: new(sync.Mutex)}

// NewKeyval makes a key for objects of a family, which are of type O.
func NewKeyval[O any](f comm.Family, cp CopyFunc[O], del DeleteFunc[O], extra any) (comm.Keyval, error) {
	var copier comm.Copier
	var deleter comm.Deleter
	if cp != nil {
		copier = func(old any, key comm.Keyval, extra, value any) (any, bool, error) {
			return cp(old.(O), key, extra, value)
		}
	}
	if del != nil {
		deleter = func(object any, key comm.Keyval, value, extra any) error { return del(object.(O), key, value, extra) }
	}
	return Keyvals.Create(f, copier, deleter, extra)
}

// FreeKeyval frees a key and sets the variable to KeyvalInvalid.
func FreeKeyval(f comm.Family, key *comm.Keyval) error {
	if key == nil {
		return proc.ErrArg
	}
	if err := Keyvals.Free(f, *key); err != nil {
		return err
	}
	*key = comm.KeyvalInvalid
	return nil
}

func SetAttr(c *proc.Comm, key comm.Keyval, value any) error {
	if err := c.Usable(); err != nil {
		return err
	}
	return Keyvals.Set(comm.CommFamily, &c.State().Attrs, c, key, value)
}

func Attr(c *proc.Comm, key comm.Keyval) (value any, ok bool, err error) {
	if err := c.Usable(); err != nil {
		return nil, false, err
	}
	if value, ok := predefined(c, key); ok {
		return value, true, nil
	}
	return Keyvals.Get(comm.CommFamily, &c.State().Attrs, key)
}

func DeleteAttr(c *proc.Comm, key comm.Keyval) error {
	if err := c.Usable(); err != nil {
		return err
	}
	return Keyvals.Delete(comm.CommFamily, &c.State().Attrs, c, key)
}

// CopyAttrs calls the CopyFuncs for a duplicate of c, before the members agree on it. The caller
// must add the returned copies to the duplicate or drop them, also after an error.
func CopyAttrs(c *proc.Comm) (comm.Attrs, error) { return Keyvals.Copy(&c.State().Attrs, c) }

// DropAttrs deletes copies for a duplicate of c that was not made. c is passed to the DeleteFuncs
// in its place.
func DropAttrs(c *proc.Comm, copies comm.Attrs) { Keyvals.Drop(&copies, c) }

// DeleteAttrs deletes all attributes of c, which is about to be freed. After an error c must not be
// freed (MPI-4.1, 7.4.3).
func DeleteAttrs(c *proc.Comm) error { return Keyvals.Clear(&c.State().Attrs, c) }
