package proc

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

// The errors of info objects.
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
	pairs    []InfoPair
	freed    bool
	readOnly bool
}

// InfoPair is a key with its value.
type InfoPair struct{ Key, Value string }

func NewInfo() *Info { return &Info{} }

// Locked calls f while i is locked, or returns an error if i cannot be used.
func (i *Info) Locked(f func() error) error {
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

// change is Locked for functions that change i.
func (i *Info) change(f func() error) error {
	return i.Locked(func() error {
		if i.readOnly {
			return fmt.Errorf("%w: MPI_INFO_ENV cannot be changed", ErrInfo)
		}
		return f()
	})
}

func (i *Info) Dup() (d *Info, err error) {
	err = i.Locked(func() error {
		d = &Info{pairs: slices.Clone(i.pairs)}
		return nil
	})
	return d, err
}

func (i *Info) Free() error {
	return i.change(func() error {
		i.freed, i.pairs = true, nil
		return nil
	})
}

func (i *Info) Set(key, value string) error {
	return i.change(func() error {
		n, err := i.index(key)
		switch {
		case err != nil:
			return err
		case len(value) > MaxInfoValue:
			return fmt.Errorf("%w: %d bytes for %q, at most %d", ErrInfoValue, len(value), key, MaxInfoValue)
		case n < 0:
			i.pairs = append(i.pairs, InfoPair{key, value})
		default:
			i.pairs[n].Value = value
		}
		return nil
	})
}

func (i *Info) Delete(key string) error {
	return i.change(func() error {
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

func (i *Info) Get(key string) (value string, ok bool, err error) {
	err = i.Locked(func() error {
		value, ok, err = i.Value(key)
		return err
	})
	return value, ok, err
}

func (i *Info) GetUpTo(key string, n int) (value string, ok bool, err error) {
	err = i.Locked(func() error {
		if n < 0 {
			return fmt.Errorf("%w: %d bytes of a value", ErrArg, n)
		}
		value, ok, err = i.Value(key)
		value = value[:min(n, len(value))]
		return err
	})
	return value, ok, err
}

func (i *Info) GetString(key string, room int) (value string, needed int, ok bool, err error) {
	err = i.Locked(func() error {
		if room < 0 {
			return fmt.Errorf("%w: room of %d bytes", ErrArg, room)
		}
		if value, ok, err = i.Value(key); ok {
			needed = len(value) + 1
			value = value[:min(max(room-1, 0), len(value))]
		}
		return err
	})
	return value, needed, ok, err
}

func (i *Info) Len() (n int, err error) {
	err = i.Locked(func() error {
		n = len(i.pairs)
		return nil
	})
	return n, err
}

func (i *Info) Key(n int) (key string, err error) {
	err = i.Locked(func() error {
		if n < 0 || n >= len(i.pairs) {
			return fmt.Errorf("%w: key %d of %d", ErrArg, n, len(i.pairs))
		}
		key = i.pairs[n].Key
		return nil
	})
	return key, err
}

// Value returns the value of a key; ok is false if i does not have it. i is locked.
func (i *Info) Value(key string) (value string, ok bool, err error) {
	n, err := i.index(key)
	if n < 0 || err != nil {
		return "", false, err
	}
	return i.pairs[n].Value, true, nil
}

// index returns the index of a key, -1 if i does not have it. i is locked.
func (i *Info) index(key string) (int, error) {
	if key == "" || len(key) > MaxInfoKey {
		return -1, fmt.Errorf("%w: %q, of %d bytes; 1 to %d are possible", ErrInfoKey, key, len(key), MaxInfoKey)
	}
	return slices.IndexFunc(i.pairs, func(p InfoPair) bool { return p.Key == key }), nil
}

// InfoWith returns an info object with these pairs.
func InfoWith(pairs []InfoPair) *Info { return &Info{pairs: pairs} }

// FixedInfo returns an empty info object that the program cannot change.
func FixedInfo() *Info { return &Info{readOnly: true} }

// With returns a copy of i with the pairs of other, which replace those of equal keys. Either may
// be nil. The caller must be the only one to use them.
func (i *Info) With(other *Info) *Info {
	all := &Info{}
	if i != nil {
		all.pairs = slices.Clone(i.pairs)
	}
	if other == nil {
		return all
	}
	for _, x := range other.pairs {
		if n := slices.IndexFunc(all.pairs, func(y InfoPair) bool { return y.Key == x.Key }); n >= 0 {
			all.pairs[n] = x
		} else {
			all.pairs = append(all.pairs, x)
		}
	}
	return all
}

// Pairs returns a pointer to keys and values; the object is locked.
func (i *Info) Pairs() *[]InfoPair { return &i.pairs }
