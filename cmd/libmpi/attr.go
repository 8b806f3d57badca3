//go:build cgo && !386 && !arm

package main

import (
	"sync"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
)

// The predefined copy functions: MPI_COMM_NULL_COPY_FN and MPI_COMM_DUP_FN, and the same for other
// objects. A delete function of 0 is the null function.
const (
	nullFunction = 0
	dupFunction  = 1
)

// copier returns the function that copies attributes by calling a function of C. handle returns the
// handle of an object.
func copier[O any](fn uintptr, handle func(O) uintptr) mpi.CopyFunc[O] {
	switch fn {
	case nullFunction:
		return mpi.NullCopy[O]
	case dupFunction:
		return mpi.DupCopy[O]
	}
	return func(old O, key mpi.Keyval, extra, value any) (any, bool, error) {
		v, keep, code := callCopy(fn, handle(old), int32(key), extra.(uintptr), value.(uintptr))
		return v, keep, codeError(code)
	}
}

func deleter[O any](fn uintptr, handle func(O) uintptr) mpi.DeleteFunc[O] {
	if fn <= dupFunction {
		return mpi.NullDelete[O]
	}
	return func(object O, key mpi.Keyval, value, extra any) error {
		return codeError(callDelete(fn, handle(object), int32(key), value.(uintptr), extra.(uintptr)))
	}
}

// commHandles and winHandles map a *mpi.Comm or *mpi.Win to its handle, for callbacks.
var commHandles, winHandles sync.Map

func commHandle(c *mpi.Comm) uintptr { return known(&commHandles, c, commNull) }

func winHandle(w *mpi.Win) uintptr { return known(&winHandles, w, winNull) }

func known(m *sync.Map, object any, null uintptr) uintptr {
	if h, ok := m.Load(object); ok {
		return h.(uintptr)
	}
	return null
}

func createKeyval[O any](name string, cp, del, key, extra uintptr, handle func(O) uintptr, f func(mpi.CopyFunc[O], mpi.DeleteFunc[O], any) (mpi.Keyval, error)) int32 {
	return on(name, 0, func() error {
		to, err := result[int32]("keyval", key)
		if err != nil {
			return err
		}
		k, err := f(copier(cp, handle), deleter(del, handle), extra)
		*to = int32(k)
		return err
	})
}

func freeKeyval(name string, p uintptr, f func(*mpi.Keyval) error) int32 {
	return on(name, 0, func() error {
		key, err := result[int32]("keyval", p)
		if err != nil {
			return err
		}
		k := mpi.Keyval(*key)
		err = f(&k)
		*key = int32(k)
		return err
	})
}

// putAttr stores the value of an attribute at out, and at flag whether there is one.
func putAttr(out, flag uintptr, value any, ok bool, err error) error {
	if err == nil && ok {
		err = put("attribute_val", out, value.(uintptr))
	}
	if err != nil {
		return err
	}
	return putFlag("flag", flag, ok)
}

func storeTypeAttr(t *mpi.Datatype, key mpi.Keyval, out, flag uintptr) error {
	value, ok, err := mpi.TypeAttr(t, key)
	return putAttr(out, flag, value, ok, err)
}

// predefinedKeys are those of MPI, starting with MPI_TAG_UB, and those of IMPI, starting with
// IMPI_CLIENT_SIZE.
const (
	mpiKeys        = 7
	impiKeys       = 4
	predefinedKeys = mpiKeys + impiKeys
)

// predefinedSlot returns the index of a predefined key's value in ints.
func predefinedSlot(key mpi.Keyval) (slot int, ok bool) {
	switch {
	case key >= mpi.TagUB && key < mpi.TagUB+mpiKeys:
		return int(key - mpi.TagUB), true
	case key >= mpi.ClientSize && key < mpi.ClientSize+impiKeys:
		return mpiKeys + int(key-mpi.ClientSize), true
	}
	return 0, false
}

// storeAttr stores a value. The value of a predefined key is the address of an int, in memory that
// exists as long as the communicator.
func (c *commObject) storeAttr(key mpi.Keyval, out, flag uintptr) error {
	value, ok, err := c.Attr(key)
	if n, is := value.(int); is && ok && err == nil {
		slot, known := predefinedSlot(key)
		if !known {
			return putFlag("flag", flag, false)
		}
		ints := c.ints.Load()
		if ints == nil {
			c.ints.CompareAndSwap(nil, new([predefinedKeys]int32))
			ints = c.ints.Load()
		}
		ints[slot] = int32(n)
		value = uintptr(unsafe.Pointer(&ints[slot]))
	}
	return putAttr(out, flag, value, ok, err)
}

// winValues has the values of a window's predefined attributes except its base. C has their
// addresses, so they stay where they are as long as the window exists.
type winValues struct {
	size                int64
	unit, flavor, model int32
}

func (w *winObject) storeAttr(key mpi.Keyval, out, flag uintptr) error {
	value, ok, err := w.Attr(key)
	if err == nil && ok {
		v := w.values
		n, _ := value.(int)
		switch key {
		case mpi.WinBase:
			value = uintptr(value.(unsafe.Pointer))
		case mpi.WinSize:
			v.size = int64(n)
			value = uintptr(unsafe.Pointer(&v.size))
		case mpi.WinDispUnit:
			v.unit = int32(n)
			value = uintptr(unsafe.Pointer(&v.unit))
		case mpi.WinCreateFlavor:
			v.flavor = int32(n)
			value = uintptr(unsafe.Pointer(&v.flavor))
		case mpi.WinModel:
			v.model = int32(n)
			value = uintptr(unsafe.Pointer(&v.model))
		default: // a key created by the program
		}
	}
	return putAttr(out, flag, value, ok, err)
}
