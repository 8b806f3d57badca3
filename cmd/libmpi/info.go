//go:build cgo && !386 && !arm

package main

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
	rooms "github.com/openimpi/impi/internal/engine/object"
)

func newInfo(pairs ...string) (*mpi.Info, error) {
	i := mpi.NewInfo()
	for k := 0; k < len(pairs); k += 2 {
		if err := i.Set(pairs[k], pairs[k+1]); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// environment returns a copy of MPI_INFO_ENV, before MPI_Init as well.
func environment() (*mpi.Info, error) {
	return (*mpi.Info)(rooms.InfoCreateEnv()).Dup()
}

// infoKey returns the key at p, whose length must be valid.
func infoKey(name string, p uintptr) (string, error) {
	key, err := text(name, p, maxText)
	if err == nil && (key == "" || len(key) >= maxInfoKey) {
		err = fmt.Errorf("%w: %d bytes", mpi.ErrInfoKey, len(key))
	}
	return key, err
}

func freeInfo(h uintptr) error {
	i, err := takeInfo(h)
	if err == nil {
		err = i.Free()
	}
	if err == nil {
		infos.Free(h)
	}
	return err
}

// getInfo stores at most length bytes of a value.
func getInfo(i *mpi.Info, key string, length int, value, flag uintptr) error {
	if length < 0 {
		return fmt.Errorf("%w: valuelen is %d", mpi.ErrArg, length)
	}
	v, ok, err := i.GetUpTo(key, length)
	if err == nil && ok {
		err = putText("value", value, length+1, v)
	}
	if err != nil {
		return err
	}
	return putFlag("flag", flag, ok)
}

// getInfoString stores a value, cut to the *length bytes that there are, and sets *length to the
// bytes that it needs.
func getInfoString(i *mpi.Info, key string, length, value, flag uintptr) error {
	room, err := result[int32]("buflen", length)
	if err != nil {
		return err
	}
	v, needed, ok, err := i.GetString(key, int(*room))
	if err == nil && ok && *room > 0 {
		err = putText("value", value, int(*room), v)
	}
	if err != nil {
		return err
	}
	if ok {
		*room = int32(needed)
	}
	return putFlag("flag", flag, ok)
}

func getInfoLength(i *mpi.Info, key string, length, flag uintptr) error {
	v, ok, err := i.Get(key)
	if err == nil && ok {
		err = putInt("valuelen", length, len(v))
	}
	if err != nil {
		return err
	}
	return putFlag("flag", flag, ok)
}
