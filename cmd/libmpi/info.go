//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

// Room for keys and values, with the terminator.
const (
	maxInfoKey   = 256
	maxInfoValue = 1024
)

// onInfo is a call on info, which can be made at any time.
func onInfo(fn string, h uintptr, f func(i *mpi.Info) error) int32 {
	return anytime(fn, func() error {
		i, err := takeInfo(h)
		if err != nil {
			return err
		}
		return f(i)
	})
}

// infoKey gives a key that has a length that keys have.
func infoKey(p uintptr) (string, error) {
	key, err := text("key", p, 1<<16)
	if err == nil && (key == "" || len(key) >= maxInfoKey) {
		err = fmt.Errorf("%w: %d bytes", mpi.ErrInfoKey, len(key))
	}
	return key, err
}

//export abiInfoCreate
func abiInfoCreate(out uintptr) int32 {
	return anytime("Info_create", func() error {
		return putInfo(out, func() (*mpi.Info, error) { return mpi.NewInfo(), nil })
	})
}

//export abiInfoCreateEnv
func abiInfoCreateEnv(argc int32, argv, out uintptr) int32 {
	return anytime("Info_create_env", func() error {
		return putInfo(out, func() (*mpi.Info, error) {
			if env := mpi.InfoEnv(); env != nil {
				return env.Dup()
			}
			return mpi.NewInfo(), nil
		})
	})
}

//export abiInfoDup
func abiInfoDup(h, out uintptr) int32 {
	return onInfo("Info_dup", h, func(i *mpi.Info) error { return putInfo(out, i.Dup) })
}

//export abiInfoFree
func abiInfoFree(p uintptr) int32 {
	return anytime("Info_free", func() error {
		h, err := result[uintptr]("info", p)
		if err != nil {
			return err
		}
		i, err := takeInfo(*h)
		if err != nil {
			return err
		}
		if err := i.Free(); err != nil {
			return err
		}
		infos.Free(*h)
		*h = infoNull
		return nil
	})
}

//export abiInfoSet
func abiInfoSet(h, key, value uintptr) int32 {
	return onInfo("Info_set", h, func(i *mpi.Info) error {
		k, err := infoKey(key)
		if err != nil {
			return err
		}
		v, err := text("value", value, 1<<16)
		if err != nil {
			return err
		}
		return i.Set(k, v)
	})
}

//export abiInfoDelete
func abiInfoDelete(h, key uintptr) int32 {
	return onInfo("Info_delete", h, func(i *mpi.Info) error {
		k, err := infoKey(key)
		if err != nil {
			return err
		}
		return i.Delete(k)
	})
}

//export abiInfoGet
func abiInfoGet(h, key uintptr, length int32, value, flag uintptr) int32 {
	return onInfo("Info_get", h, func(i *mpi.Info) error {
		k, err := infoKey(key)
		if err != nil {
			return err
		}
		if length < 0 {
			return fmt.Errorf("%w: valuelen is %d", mpi.ErrArg, length)
		}
		v, ok, err := i.GetUpTo(k, int(length))
		if err != nil {
			return err
		}
		if ok {
			if _, err := putText("value", value, int(length)+1, v); err != nil {
				return err
			}
		}
		return putFlag("flag", flag, ok)
	})
}

//export abiInfoGetString
func abiInfoGetString(h, key, length, value, flag uintptr) int32 {
	return onInfo("Info_get_string", h, func(i *mpi.Info) error {
		k, err := infoKey(key)
		if err != nil {
			return err
		}
		room, err := result[int32]("buflen", length)
		if err != nil {
			return err
		}
		v, needed, ok, err := i.GetString(k, int(*room))
		if err != nil {
			return err
		}
		if ok && *room > 0 {
			if _, err := putText("value", value, int(*room), v); err != nil {
				return err
			}
		}
		if ok {
			*room = int32(needed)
		}
		return putFlag("flag", flag, ok)
	})
}

//export abiInfoGetValuelen
func abiInfoGetValuelen(h, key, length, flag uintptr) int32 {
	return onInfo("Info_get_valuelen", h, func(i *mpi.Info) error {
		k, err := infoKey(key)
		if err != nil {
			return err
		}
		v, ok, err := i.Get(k)
		if err != nil {
			return err
		}
		if ok {
			if err := putInt("valuelen", length, len(v)); err != nil {
				return err
			}
		}
		return putFlag("flag", flag, ok)
	})
}

//export abiInfoGetNkeys
func abiInfoGetNkeys(h, out uintptr) int32 {
	return onInfo("Info_get_nkeys", h, func(i *mpi.Info) error {
		n, err := i.Len()
		if err != nil {
			return err
		}
		return putInt("nkeys", out, n)
	})
}

//export abiInfoGetNthkey
func abiInfoGetNthkey(h uintptr, n int32, key uintptr) int32 {
	return onInfo("Info_get_nthkey", h, func(i *mpi.Info) error {
		k, err := i.Key(int(n))
		if err != nil {
			return err
		}
		_, err = putText("key", key, maxInfoKey, k)
		return err
	})
}
