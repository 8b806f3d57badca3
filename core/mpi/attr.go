package mpi

import (
	"sync"

	"github.com/openimpi/impi/core/comm"
)

// Keyval names an attribute: a value that a program attaches to a communicator,
// a datatype or a window.
type Keyval = comm.Keyval

// KeyvalInvalid is no key.
const KeyvalInvalid = comm.KeyvalInvalid

// CopyFunc is called when an object that has the attribute is duplicated. The
// duplicate gets copied, unless keep is false. After an error there is no
// duplicate. It may call MPI.
type CopyFunc[O any] func(old O, key Keyval, extra, value any) (copied any, keep bool, err error)

// DeleteFunc is called when an object loses the attribute: by its deletion, by
// another value or by the end of the object. After an error it keeps it. It may
// call MPI.
type DeleteFunc[O any] func(object O, key Keyval, value, extra any) error

// NullCopy is the CopyFunc of attributes that duplicates do not get.
func NullCopy[O any](O, Keyval, any, any) (copied any, keep bool, err error) {
	return nil, false, nil
}

// DupCopy is the CopyFunc of attributes whose value duplicates get.
func DupCopy[O any](_ O, _ Keyval, _, value any) (copied any, keep bool, err error) {
	return value, true, nil
}

// NullDelete is the DeleteFunc of attributes that may just go.
func NullDelete[O any](O, Keyval, any, any) error { return nil }

// keyvals are those of the program.
var keyvals = comm.Keys{Guard: new(sync.Mutex)}

// createKeyval makes a key for objects of type O.
func createKeyval[O any](f comm.Family, cp CopyFunc[O], del DeleteFunc[O], extra any) (Keyval, error) {
	var copier comm.Copier
	var deleter comm.Deleter
	if cp != nil {
		copier = func(old any, key Keyval, extra, value any) (any, bool, error) {
			return cp(old.(O), key, extra, value)
		}
	}
	if del != nil {
		deleter = func(object any, key Keyval, value, extra any) error { return del(object.(O), key, value, extra) }
	}
	return keyvals.Create(f, copier, deleter, extra)
}

// freeKeyval frees a key and makes the variable invalid.
func freeKeyval(f comm.Family, key *Keyval) error {
	if key == nil {
		return ErrArg
	}
	if err := keyvals.Free(f, *key); err != nil {
		return err
	}
	*key = KeyvalInvalid
	return nil
}

// CreateKeyval makes a key for attributes of communicators. A nil cp is
// NullCopy, a nil del NullDelete. extra is given to both.
func CreateKeyval(cp CopyFunc[*Comm], del DeleteFunc[*Comm], extra any) (Keyval, error) {
	key, err := createKeyval(comm.CommFamily, cp, del, extra)
	return key, failed("CreateKeyval", err)
}

// FreeKeyval frees a key of communicators and makes the variable KeyvalInvalid.
// Attributes of it stay, and its functions are still called for them.
func FreeKeyval(key *Keyval) error {
	return failed("FreeKeyval", freeKeyval(comm.CommFamily, key))
}

// SetAttr attaches a value to c. One that is there is deleted first; where its
// DeleteFunc fails it stays.
func (c *Comm) SetAttr(key Keyval, value any) error {
	if err := c.check(); err != nil {
		return c.failed("SetAttr", err)
	}
	return c.failed("SetAttr", keyvals.Set(comm.CommFamily, &c.attrs, c, key, value))
}

// Attr gives the value that c has for a key; ok is whether it has one. The
// predefined keys have ints.
func (c *Comm) Attr(key Keyval) (value any, ok bool, err error) {
	if err := c.check(); err != nil {
		return nil, false, c.failed("Attr", err)
	}
	if value, ok := c.predefined(key); ok {
		return value, true, nil
	}
	value, ok, err = keyvals.Get(comm.CommFamily, &c.attrs, key)
	return value, ok, c.failed("Attr", err)
}

// DeleteAttr deletes the value that c has for a key. If there is none, nothing
// happens.
func (c *Comm) DeleteAttr(key Keyval) error {
	if err := c.check(); err != nil {
		return c.failed("DeleteAttr", err)
	}
	return c.failed("DeleteAttr", keyvals.Delete(comm.CommFamily, &c.attrs, c, key))
}

// copyAttrs asks the CopyFuncs what a duplicate of c gets, before anything of
// the duplicate is agreed on. Whatever the error, what was copied has to become
// the duplicate's or be dropped.
func (c *Comm) copyAttrs() (comm.Attrs, error) { return keyvals.Copy(&c.attrs, c) }

// dropAttrs deletes copies for a duplicate of c that came to nothing. As that
// does not exist, c stands for it.
func (c *Comm) dropAttrs(copies comm.Attrs) { keyvals.Drop(&copies, c) }

// deleteAttrs deletes all attributes of c, which ceases to be. After an error c
// has to stay.
func (c *Comm) deleteAttrs() error { return keyvals.Clear(&c.attrs, c) }
