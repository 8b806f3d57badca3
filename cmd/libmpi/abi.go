//go:build cgo && !386 && !arm

package main

/*
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi/handles"
)

// handleFromInt gives the handle of the object of a kind that has a number, 0 if there
// is none.
//
//export handleFromInt
func handleFromInt(kind, n int32) uintptr {
	switch handles.Kind(kind) {
	case handles.Comm:
		return comms.FromInt(n)
	case handles.Group:
		return groups.FromInt(n)
	case handles.Datatype:
		return types.FromInt(n)
	case handles.Op:
		return ops.FromInt(n)
	case handles.Request:
		if isFastPath(uintptr(n)) {
			return fastPathFromInt(n)
		}
		return requests.FromInt(n)
	case handles.Info:
		return infos.FromInt(n)
	case handles.Errhandler:
		return errhandlers.FromInt(n)
	case handles.Win:
		return wins.FromInt(n)
	case handles.File:
		return files.FromInt(n)
	case handles.Session:
		return sessions.FromInt(n)
	case handles.Message:
		return messages.FromInt(n)
	case handles.FastPath: // of requests, to the program
	case handles.ToolControl, handles.ToolMeasure, handles.ToolSession: // have no numbers
	}
	return 0
}

// newInfo makes info of keys and values.
func newInfo(pairs ...string) (*mpi.Info, error) {
	i := mpi.NewInfo()
	for k := 0; k < len(pairs); k += 2 {
		if err := i.Set(pairs[k], pairs[k+1]); err != nil {
			return nil, err
		}
	}
	return i, nil
}

//export abiAbiGetInfo
func abiAbiGetInfo(out uintptr) int32 {
	return anytime("Abi_get_info", func() error {
		return putInfo(out, func() (*mpi.Info, error) {
			return newInfo("mpi_aint_size", "8", "mpi_count_size", "8", "mpi_offset_size", "8")
		})
	})
}

// fortran is what the program, or a library of it, has said about Fortran.
var fortran struct {
	sync.Mutex
	info     *mpi.Info
	booleans map[int32][2][]byte
}

// errABI is the error of a second word about Fortran.
func errABI(what string) error {
	return &mpierr.Error{Code: mpierr.ABI, Class: mpierr.ABI, Text: what + " was set before"}
}

//export abiAbiGetFortranInfo
func abiAbiGetFortranInfo(out uintptr) int32 {
	return anytime("Abi_get_fortran_info", func() error {
		fortran.Lock()
		defer fortran.Unlock()
		if fortran.info == nil {
			return put("info", out, uintptr(infoNull))
		}
		return putInfo(out, fortran.info.Dup)
	})
}

//export abiAbiSetFortranInfo
func abiAbiSetFortranInfo(info uintptr) int32 {
	return anytime("Abi_set_fortran_info", func() error {
		i, err := takeInfo(info)
		if err != nil {
			return err
		}
		fortran.Lock()
		defer fortran.Unlock()
		if fortran.info != nil {
			return errABI("information about Fortran")
		}
		fortran.info, err = i.Dup()
		return err
	})
}

// logicalSize checks the size of a LOGICAL.
func logicalSize(n int32) error {
	switch n {
	case 1, 2, 4, 8, 16:
		return nil
	}
	return fmt.Errorf("%w: logical_size is %d", mpi.ErrArg, n)
}

//export abiAbiGetFortranBooleans
func abiAbiGetFortranBooleans(size int32, yes, no, flag uintptr) int32 {
	return anytime("Abi_get_fortran_booleans", func() error {
		if err := logicalSize(size); err != nil {
			return err
		}
		fortran.Lock()
		defer fortran.Unlock()
		values, ok := fortran.booleans[size]
		for i, p := range []uintptr{yes, no} {
			if !ok {
				break
			}
			to, err := array[byte]("logical", p, int(size))
			if err != nil {
				return err
			}
			copy(to, values[i])
		}
		return putFlag("is_set", flag, ok)
	})
}

//export abiAbiSetFortranBooleans
func abiAbiSetFortranBooleans(size int32, yes, no uintptr) int32 {
	return anytime("Abi_set_fortran_booleans", func() error {
		if err := logicalSize(size); err != nil {
			return err
		}
		var values [2][]byte
		for i, p := range []uintptr{yes, no} {
			from, err := array[byte]("logical", p, int(size))
			if err != nil {
				return err
			}
			values[i] = append(values[i], from...)
		}
		fortran.Lock()
		defer fortran.Unlock()
		if _, ok := fortran.booleans[size]; ok {
			return errABI("the values of a LOGICAL of this size")
		}
		if fortran.booleans == nil {
			fortran.booleans = map[int32][2][]byte{}
		}
		fortran.booleans[size] = values
		return nil
	})
}

//export abiAllocMem
func abiAllocMem(size int64, info, out uintptr) int32 {
	return on("Alloc_mem", 0, func() error {
		to, err := result[uintptr]("baseptr", out)
		if err != nil {
			return err
		}
		if _, err := infoOf(info); err != nil {
			return err
		}
		if size < 0 {
			return fmt.Errorf("%w: size is %d", mpi.ErrArg, size)
		}
		p := C.calloc(1, C.size_t(max(size, 1)))
		if p == nil {
			return &mpierr.Error{Code: mpierr.NoMem, Class: mpierr.NoMem, Text: fmt.Sprintf("%d bytes are not there", size)}
		}
		*to = uintptr(p)
		return nil
	})
}

//export abiFreeMem
func abiFreeMem(p uintptr) int32 {
	return on("Free_mem", 0, func() error {
		if p != 0 && p < firstAddress {
			return fmt.Errorf("%w: base is %#x", mpi.ErrArg, p)
		}
		C.free(pointer(p))
		return nil
	})
}

// No hardware is told apart, so that the info has no keys.
//
//export abiGetHwResourceInfo
func abiGetHwResourceInfo(out uintptr) int32 {
	return on("Get_hw_resource_info", 0, func() error {
		return putInfo(out, func() (*mpi.Info, error) { return mpi.NewInfo(), nil })
	})
}

//export abiGetAddress
func abiGetAddress(p, out uintptr) int32 {
	return on("Get_address", 0, func() error { return put("address", out, int64(p)) })
}
