package mpi

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// The bounds of info objects, in bytes: MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL,
// less C's terminator.
const (
	MaxInfoKey   = 255
	MaxInfoValue = 1023
)

// The faults of info objects.
var (
	// ErrInfo means an info object that is missing, freed or not to be changed.
	ErrInfo = errors.New("invalid info object")
	// ErrInfoKey means a key that is empty or too long.
	ErrInfoKey = errors.New("invalid info key")
	// ErrInfoValue means a value that is too long.
	ErrInfoValue = errors.New("invalid info value")
	// ErrInfoNoKey means a key that the object does not have.
	ErrInfoNoKey = errors.New("no such info key")
)

// Info is a list of keys with values, in the order in which the keys were first
// set. It can be used before Init, after Finalize and by several goroutines. nil
// is MPI_INFO_NULL.
type Info struct {
	mu       sync.Mutex
	pairs    []infoPair
	freed    bool
	readOnly bool
}

type infoPair struct{ key, value string }

// NewInfo makes an empty one.
func NewInfo() *Info { return &Info{} }

// use locks i and calls f, if i can be used.
func (i *Info) use(fn string, f func() error) error {
	return failed("Info."+fn, i.locked(f))
}

func (i *Info) locked(f func() error) error {
	if i == nil {
		return fmt.Errorf("%w: nil, which is MPI_INFO_NULL", ErrInfo)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.freed {
		return fmt.Errorf("%w: it has been freed", ErrInfo)
	}
	return f()
}

// change is use for what changes i.
func (i *Info) change(fn string, f func() error) error {
	return i.use(fn, func() error {
		if i.readOnly {
			return fmt.Errorf("%w: MPI_INFO_ENV cannot be changed", ErrInfo)
		}
		return f()
	})
}

// Dup makes a copy with the same keys and values in the same order.
func (i *Info) Dup() (d *Info, err error) {
	err = i.use("Dup", func() error {
		d = &Info{pairs: slices.Clone(i.pairs)}
		return nil
	})
	return d, err
}

// Free ends the use of the object.
func (i *Info) Free() error {
	return i.change("Free", func() error {
		i.freed, i.pairs = true, nil
		return nil
	})
}

// Set gives a key a value, instead of one that it may have.
func (i *Info) Set(key, value string) error {
	return i.change("Set", func() error {
		n, err := i.index(key)
		switch {
		case err != nil:
			return err
		case len(value) > MaxInfoValue:
			return fmt.Errorf("%w: %d bytes for %q, at most %d", ErrInfoValue, len(value), key, MaxInfoValue)
		case n < 0:
			i.pairs = append(i.pairs, infoPair{key, value})
		default:
			i.pairs[n].value = value
		}
		return nil
	})
}

// Delete takes a key off. ErrInfoNoKey means that there is none.
func (i *Info) Delete(key string) error {
	return i.change("Delete", func() error {
		n, err := i.index(key)
		switch {
		case err != nil:
			return err
		case n < 0:
			return fmt.Errorf("%w: %q", ErrInfoNoKey, key)
		}
		i.pairs = slices.Delete(i.pairs, n, n+1)
		return nil
	})
}

// Get gives the value of a key; ok is whether there is one.
func (i *Info) Get(key string) (value string, ok bool, err error) {
	err = i.use("Get", func() error {
		value, ok, err = i.value(key)
		return err
	})
	return value, ok, err
}

// GetUpTo is Get of at most n bytes of the value (MPI_Info_get).
func (i *Info) GetUpTo(key string, n int) (value string, ok bool, err error) {
	err = i.use("GetUpTo", func() error {
		if n < 0 {
			return fmt.Errorf("%w: %d bytes of a value", ErrArg, n)
		}
		value, ok, err = i.value(key)
		value = value[:min(n, len(value))]
		return err
	})
	return value, ok, err
}

// GetString is Get for who has room bytes, one of them for a terminator, and
// tells how many are needed (MPI_Info_get_string). No room asks for that only.
func (i *Info) GetString(key string, room int) (value string, needed int, ok bool, err error) {
	err = i.use("GetString", func() error {
		if room < 0 {
			return fmt.Errorf("%w: room of %d bytes", ErrArg, room)
		}
		if value, ok, err = i.value(key); ok {
			needed = len(value) + 1
			value = value[:min(max(room-1, 0), len(value))]
		}
		return err
	})
	return value, needed, ok, err
}

// Len gives the number of keys.
func (i *Info) Len() (n int, err error) {
	err = i.use("Len", func() error {
		n = len(i.pairs)
		return nil
	})
	return n, err
}

// Key gives the nth key, from 0 to Len-1, in the order in which they were set.
func (i *Info) Key(n int) (key string, err error) {
	err = i.use("Key", func() error {
		if n < 0 || n >= len(i.pairs) {
			return fmt.Errorf("%w: key %d of %d", ErrArg, n, len(i.pairs))
		}
		key = i.pairs[n].key
		return nil
	})
	return key, err
}

// value gives the value of a key. i is locked.
func (i *Info) value(key string) (value string, ok bool, err error) {
	n, err := i.index(key)
	if n < 0 || err != nil {
		return "", false, err
	}
	return i.pairs[n].value, true, nil
}

// index finds a key, -1 if it is not there. i is locked.
func (i *Info) index(key string) (int, error) {
	if key == "" || len(key) > MaxInfoKey {
		return -1, fmt.Errorf("%w: %q, of %d bytes; 1 to %d are possible", ErrInfoKey, key, len(key), MaxInfoKey)
	}
	return slices.IndexFunc(i.pairs, func(p infoPair) bool { return p.key == key }), nil
}
