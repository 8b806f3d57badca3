//go:build cgo && !386 && !arm

package main

/*
#include <stdlib.h>
*/
import "C"

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/engine/proc"
)

// numbered has the tables whose handles have numbers, by kind.
var numbered = [...]interface{ FromInt(n int32) handles.Handle }{
	handles.Comm: comms, handles.Group: groups, handles.Datatype: types, handles.Op: ops, handles.Request: requests,
	handles.Info: infos, handles.Errhandler: errhandlers, handles.Win: wins, handles.File: files, handles.Session: sessions, handles.Message: messages,
}

// handleFromInt returns the handle of the object of a kind that has a number, 0 if there
// is none.
//
//export handleFromInt
func handleFromInt(kind, n int32) uintptr {
	switch {
	case handles.Kind(kind) == handles.Request && isFastPath(uintptr(n)):
		return fastPathFromInt(n)
	case uint32(kind) >= uint32(len(numbered)) || numbered[kind] == nil:
		return 0
	}
	return numbered[kind].FromInt(n)
}

// fortran is what the program, or one of its libraries, has told about Fortran by
// MPI_Abi_set_fortran_info and the like.
var fortran struct {
	sync.Mutex
	info     *mpi.Info
	booleans map[int][2][]byte
}

// errABI returns the error if the program tells something about Fortran a second time.
func errABI(what string) error {
	return fault(mpierr.ABI, "%s was set before", what)
}

func fortranInfo() (uintptr, error) {
	fortran.Lock()
	defer fortran.Unlock()
	if fortran.info == nil {
		return infoNull, nil
	}
	i, err := fortran.info.Dup()
	return infos.Add(i), err
}

func setFortranInfo(i *mpi.Info) (err error) {
	fortran.Lock()
	defer fortran.Unlock()
	if fortran.info != nil {
		return errABI("information about Fortran")
	}
	fortran.info, err = i.Dup()
	return err
}

func logicalSize(n int) error {
	if n < 1 || n > 16 || n&(n-1) != 0 {
		return fmt.Errorf("%w: logical_size is %d", mpi.ErrArg, n)
	}
	return nil
}

// logicals returns the bytes of .TRUE. and .FALSE. in a LOGICAL of n bytes.
func logicals(n int, yes, no uintptr) (values [2][]byte, err error) {
	if err = logicalSize(n); err != nil {
		return values, err
	}
	if values[0], err = array[byte]("logical_true", yes, n); err == nil {
		values[1], err = array[byte]("logical_false", no, n)
	}
	return values, err
}

func fortranBooleans(n int, yes, no uintptr) (known bool, err error) {
	fortran.Lock()
	defer fortran.Unlock()
	values, known := fortran.booleans[n]
	if !known {
		return false, logicalSize(n)
	}
	to, err := logicals(n, yes, no)
	copy(to[0], values[0])
	copy(to[1], values[1])
	return known, err
}

func setFortranBooleans(n int, yes, no uintptr) error {
	values, err := logicals(n, yes, no)
	if err != nil {
		return err
	}
	fortran.Lock()
	defer fortran.Unlock()
	if _, ok := fortran.booleans[n]; ok {
		return errABI("the values of a LOGICAL of this size")
	}
	if fortran.booleans == nil {
		fortran.booleans = map[int][2][]byte{}
	}
	fortran.booleans[n] = [2][]byte{bytes.Clone(values[0]), bytes.Clone(values[1])}
	return nil
}

// allocate returns the address of memory that C code may keep.
func allocate(size int64, _ *mpi.Info) (uintptr, error) {
	if size < 0 {
		return 0, fmt.Errorf("%w: size is %d", mpi.ErrArg, size)
	}
	if b := proc.AllocMem(int(size)); b != nil {
		return uintptr(unsafe.Pointer(&b[0])), nil // mapped memory, which is not Go's
	}
	p := C.calloc(1, C.size_t(max(size, 1)))
	if p == nil {
		return 0, fault(mpierr.NoMem, "%d bytes are not there", size)
	}
	return uintptr(p), nil
}

func free(p uintptr) error {
	if p != 0 && p < firstAddress {
		return fmt.Errorf("%w: base is %#x", mpi.ErrArg, p)
	}
	if !proc.FreeMem(p) {
		C.free(pointer(p))
	}
	return nil
}
