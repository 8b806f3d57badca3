//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

//export abiOpCreate
func abiOpCreate(fn uintptr, commute int32, out uintptr, which int32) int32 {
	return on("Op_create", which, func() error {
		if fn < firstAddress {
			return missing("user_fn", fn)
		}
		return put("op", out, ops.Add(mpi.NewTypeOp(func(in, inout unsafe.Pointer, n int, t *mpi.Datatype) {
			callOp(fn, which != 0, in, inout, n, t)
		}, commute != 0)))
	})
}

//export abiOpFree
func abiOpFree(p uintptr) int32 {
	return on("Op_free", 0, func() error {
		h, err := result[uintptr]("op", p)
		if err != nil {
			return err
		}
		op, err := opOf(*h)
		if err != nil {
			return err
		}
		if op.Predefined() {
			return fmt.Errorf("%w: %v is predefined and cannot be freed", datatype.ErrOp, op)
		}
		ops.Free(*h)
		*h = opNull
		return nil
	})
}

//export abiOpCommutative
func abiOpCommutative(h, out uintptr) int32 {
	return on("Op_commutative", 0, func() error {
		op, err := opOf(h)
		if err != nil {
			return err
		}
		return putFlag("commute", out, op.Commutative())
	})
}

//export abiReduceLocal
func abiReduceLocal(in, inout uintptr, count int64, t, op uintptr, which int32) int32 {
	return on("Reduce_local", which, func() error {
		o, err := opOf(op)
		if err != nil {
			return err
		}
		a, b, err := buffers(in, count, t, all, inout, count, t, all)
		if err != nil {
			return err
		}
		return mpi.ReduceLocalItems(a, b, o)
	})
}
