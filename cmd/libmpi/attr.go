//go:build cgo && !386 && !arm

package main

import "C"

import (
	"sync"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
)

// What stands for copy functions: none, and that which copies the value. A delete
// function of 0 is none.
const (
	nullFunction = 0
	dupFunction  = 1
)

// copier makes the function that copies attributes, of one of C's. handle gives
// the handle of an object.
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

// deleter is copier for functions that delete attributes.
func deleter[O any](fn uintptr, handle func(O) uintptr) mpi.DeleteFunc[O] {
	if fn <= dupFunction {
		return mpi.NullDelete[O]
	}
	return func(object O, key mpi.Keyval, value, extra any) error {
		return codeError(callDelete(fn, handle(object), int32(key), value.(uintptr), extra.(uintptr)))
	}
}

// commHandles and winHandles find the handles of what callbacks get.
var commHandles, winHandles sync.Map

func commHandle(c *mpi.Comm) uintptr { return known(&commHandles, c, commNull) }

func winHandle(w *mpi.Win) uintptr { return known(&winHandles, w, winNull) }

func known(m *sync.Map, object any, null uintptr) uintptr {
	if h, ok := m.Load(object); ok {
		return h.(uintptr)
	}
	return null
}

// createKeyval makes a key.
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

// freeKeyval frees the key at p.
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

// putAttr stores the value of an attribute, if there is one.
func putAttr(out, flag uintptr, value any, ok bool, err error) error {
	if err != nil {
		return err
	}
	if ok {
		if err := put("attribute_val", out, value.(uintptr)); err != nil {
			return err
		}
	}
	return putFlag("flag", flag, ok)
}

//export abiCommCreateKeyval
func abiCommCreateKeyval(cp, del, key, extra uintptr) int32 {
	return createKeyval("Comm_create_keyval", cp, del, key, extra, commHandle, mpi.CreateKeyval)
}

//export abiKeyvalCreate
func abiKeyvalCreate(cp, del, key, extra uintptr) int32 {
	return createKeyval("Keyval_create", cp, del, key, extra, commHandle, mpi.CreateKeyval)
}

//export abiTypeCreateKeyval
func abiTypeCreateKeyval(cp, del, key, extra uintptr) int32 {
	return createKeyval("Type_create_keyval", cp, del, key, extra, typeHandle, mpi.CreateTypeKeyval)
}

//export abiWinCreateKeyval
func abiWinCreateKeyval(cp, del, key, extra uintptr) int32 {
	return createKeyval("Win_create_keyval", cp, del, key, extra, winHandle, mpi.CreateWinKeyval)
}

//export abiCommFreeKeyval
func abiCommFreeKeyval(key uintptr) int32 {
	return freeKeyval("Comm_free_keyval", key, mpi.FreeKeyval)
}

//export abiKeyvalFree
func abiKeyvalFree(key uintptr) int32 { return freeKeyval("Keyval_free", key, mpi.FreeKeyval) }

//export abiTypeFreeKeyval
func abiTypeFreeKeyval(key uintptr) int32 {
	return freeKeyval("Type_free_keyval", key, mpi.FreeTypeKeyval)
}

//export abiWinFreeKeyval
func abiWinFreeKeyval(key uintptr) int32 {
	return freeKeyval("Win_free_keyval", key, mpi.FreeWinKeyval)
}

func setCommAttr(fn string, c uintptr, key int32, value uintptr) int32 {
	return onComm(fn, 0, c, func(c *commObject) error { return c.SetAttr(mpi.Keyval(key), value) })
}

func deleteCommAttr(fn string, c uintptr, key int32) int32 {
	return onComm(fn, 0, c, func(c *commObject) error { return c.DeleteAttr(mpi.Keyval(key)) })
}

// predefinedKeys are MPI's, from MPI_TAG_UB on, and IMPI's, from IMPI_CLIENT_SIZE on.
const (
	mpiKeys        = 7
	impiKeys       = 4
	predefinedKeys = mpiKeys + impiKeys
)

// predefinedSlot is the place of a predefined key's value.
func predefinedSlot(key mpi.Keyval) (slot int, ok bool) {
	switch {
	case key >= mpi.TagUB && key < mpi.TagUB+mpiKeys:
		return int(key - mpi.TagUB), true
	case key >= mpi.ClientSize && key < mpi.ClientSize+impiKeys:
		return mpiKeys + int(key-mpi.ClientSize), true
	}
	return 0, false
}

// getCommAttr stores a value. That of a predefined key is the address of an int,
// which is there as long as the communicator is: Go does not move it.
func getCommAttr(fn string, c uintptr, key int32, out, flag uintptr) int32 {
	return onComm(fn, 0, c, func(c *commObject) error {
		value, ok, err := c.Attr(mpi.Keyval(key))
		if n, is := value.(int); is && ok && err == nil {
			slot, known := predefinedSlot(mpi.Keyval(key))
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
	})
}

//export abiCommSetAttr
func abiCommSetAttr(c uintptr, key int32, value uintptr) int32 {
	return setCommAttr("Comm_set_attr", c, key, value)
}

//export abiAttrPut
func abiAttrPut(c uintptr, key int32, value uintptr) int32 {
	return setCommAttr("Attr_put", c, key, value)
}

//export abiCommGetAttr
func abiCommGetAttr(c uintptr, key int32, out, flag uintptr) int32 {
	return getCommAttr("Comm_get_attr", c, key, out, flag)
}

//export abiAttrGet
func abiAttrGet(c uintptr, key int32, out, flag uintptr) int32 {
	return getCommAttr("Attr_get", c, key, out, flag)
}

//export abiCommDeleteAttr
func abiCommDeleteAttr(c uintptr, key int32) int32 {
	return deleteCommAttr("Comm_delete_attr", c, key)
}

//export abiAttrDelete
func abiAttrDelete(c uintptr, key int32) int32 { return deleteCommAttr("Attr_delete", c, key) }

//export abiTypeSetAttr
func abiTypeSetAttr(t uintptr, key int32, value uintptr) int32 {
	return onType("Type_set_attr", 0, t, func(t *mpi.Datatype) error {
		return mpi.TypeSetAttr(t, mpi.Keyval(key), value)
	})
}

//export abiTypeGetAttr
func abiTypeGetAttr(t uintptr, key int32, out, flag uintptr) int32 {
	return onType("Type_get_attr", 0, t, func(t *mpi.Datatype) error {
		value, ok, err := mpi.TypeAttr(t, mpi.Keyval(key))
		return putAttr(out, flag, value, ok, err)
	})
}

//export abiTypeDeleteAttr
func abiTypeDeleteAttr(t uintptr, key int32) int32 {
	return onType("Type_delete_attr", 0, t, func(t *mpi.Datatype) error {
		return mpi.TypeDeleteAttr(t, mpi.Keyval(key))
	})
}

//export abiWinSetAttr
func abiWinSetAttr(w uintptr, key int32, value uintptr) int32 {
	return onWin("Win_set_attr", 0, w, func(w *winObject) error { return w.SetAttr(mpi.Keyval(key), value) })
}

//export abiWinDeleteAttr
func abiWinDeleteAttr(w uintptr, key int32) int32 {
	return onWin("Win_delete_attr", 0, w, func(w *winObject) error { return w.DeleteAttr(mpi.Keyval(key)) })
}

// winValues are those of the predefined attributes of a window but its base, as C
// has them: they stay where they are as long as the window is there.
type winValues struct {
	size                int64
	unit, flavor, model int32
}

//export abiWinGetAttr
func abiWinGetAttr(w uintptr, key int32, out, flag uintptr) int32 {
	return onWin("Win_get_attr", 0, w, func(w *winObject) error {
		value, ok, err := w.Attr(mpi.Keyval(key))
		if err == nil && ok {
			v := w.values
			n, _ := value.(int)
			switch mpi.Keyval(key) {
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
			default: // the program's own
			}
		}
		return putAttr(out, flag, value, ok, err)
	})
}
