package comm

import (
	"errors"
	"fmt"
)

// ErrKeyval is wrapped by the errors for attribute keys that are unknown, freed, predefined
// or for another kind of object.
var ErrKeyval = errors.New("invalid attribute key")

// ErrKeyvals is wrapped by the error if there are no keys left.
var ErrKeyvals = errors.New("out of attribute keys")

// Family is the kind of objects that a key applies to.
type Family uint8

// The families.
const (
	CommFamily Family = iota
	TypeFamily
	WinFamily
)

// String returns the name of the family's objects.
func (f Family) String() string {
	return [...]string{"communicators", "datatypes", "windows"}[f]
}

// Keyval is the key of an attribute, which is a value that a program attaches to a communicator, a
// datatype or a window (MPI-4.1, 7.7.1). Keys below FirstKeyval are MPI's own.
type Keyval int

const (
	// KeyvalInvalid is no key (MPI_KEYVAL_INVALID).
	KeyvalInvalid Keyval = 0
	// FirstKeyval is the smallest key that Create returns.
	FirstKeyval Keyval = 1 << 16
	lastKeyval  Keyval = 1<<31 - 1 // maximum of C's int
	familyBits         = 2         // bits of a key that encode its family
)

// Copier makes the value for a duplicate of an object; keep is false if the duplicate gets
// none.
type Copier func(old any, key Keyval, extra, value any) (copied any, keep bool, err error)

// Deleter is called when an object loses a value. An error keeps the value attached.
type Deleter func(object any, key Keyval, value, extra any) error

// Locker is a lock such as sync.Mutex.
type Locker interface {
	Lock()
	Unlock()
}

// Keys are the attribute keys of a process; they also guard the Attrs of its objects.
// Callbacks are called without the lock, so they may use Keys and the same Attrs.
type Keys struct {
	Guard Locker // locked during each call, but not around callbacks; nil: calls must not overlap

	next Keyval
	keys map[Keyval]*key
}

type key struct {
	number  Keyval
	copy    Copier  // nil: not copied
	delete  Deleter // nil: nothing to be done
	extra   any
	freed   bool
	holders int // attributes and calls under way that need the key
}

func (k *Keys) lock() {
	if k.Guard != nil {
		k.Guard.Lock()
	}
}

func (k *Keys) unlock() {
	if k.Guard != nil {
		k.Guard.Unlock()
	}
}

// Create returns a key that was never used before. With a nil cp the attribute is not
// copied; with a nil del nothing is called. extra is passed to both.
func (k *Keys) Create(f Family, cp Copier, del Deleter, extra any) (Keyval, error) {
	k.lock()
	defer k.unlock()
	if k.keys == nil {
		k.keys, k.next = make(map[Keyval]*key), FirstKeyval
	}
	if k.next > lastKeyval-(1<<familyBits-1) {
		return KeyvalInvalid, fmt.Errorf("comm: %w: all %d were given out", ErrKeyvals, (k.next-FirstKeyval)>>familyBits)
	}
	n := k.next | Keyval(f)
	k.next += 1 << familyBits
	k.keys[n] = &key{number: n, copy: cp, delete: del, extra: extra}
	return n, nil
}

// Free marks a key as freed: no values will be attached with it any more. The key is removed with
// its last attribute; until then it can be used, and freed again (MPI-4.1, 7.7.2).
func (k *Keys) Free(f Family, n Keyval) error {
	k.lock()
	defer k.unlock()
	x, err := k.find(f, n)
	if err != nil {
		return err
	}
	x.freed = true
	k.bury(x)
	return nil
}

func (k *Keys) find(f Family, n Keyval) (*key, error) {
	x := k.keys[n]
	switch {
	case n == KeyvalInvalid:
		return nil, fmt.Errorf("comm: %w: MPI_KEYVAL_INVALID", ErrKeyval)
	case n < FirstKeyval:
		return nil, fmt.Errorf("comm: %w: %d is predefined, or none", ErrKeyval, n)
	case x == nil:
		return nil, fmt.Errorf("comm: %w: %d was never made, or is freed", ErrKeyval, n)
	case Family(n&(1<<familyBits-1)) != f:
		return nil, fmt.Errorf("comm: %w: %d is for %v, not for %v", ErrKeyval, n, Family(n&(1<<familyBits-1)), f)
	}
	return x, nil
}

func (k *Keys) release(x *key) {
	x.holders--
	k.bury(x)
}

func (k *Keys) bury(x *key) {
	if x.freed && x.holders == 0 {
		delete(k.keys, x.number)
	}
}
