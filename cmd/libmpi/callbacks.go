//go:build cgo && !386 && !arm

package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../include -O2
#include <stdint.h>
#include <mpi.h>

// How Go calls functions of the program. Handles and pointers come as integers, as
// some of them are no addresses.

static inline void callOp(uintptr_t f, uintptr_t in, uintptr_t inout, int n, uintptr_t type) {
	MPI_Datatype t = (MPI_Datatype)type;
	((MPI_User_function *)f)((void *)in, (void *)inout, &n, &t);
}

static inline void callOpLarge(uintptr_t f, uintptr_t in, uintptr_t inout, MPI_Count n, uintptr_t type) {
	MPI_Datatype t = (MPI_Datatype)type;
	((MPI_User_function_c *)f)((void *)in, (void *)inout, &n, &t);
}

typedef int copyFunction(void *, int, void *, void *, void *, int *);
typedef int deleteFunction(void *, int, void *, void *);

static inline int callCopy(uintptr_t f, uintptr_t object, int key, uintptr_t extra, uintptr_t value, uintptr_t *copied, int *keep) {
	return ((copyFunction *)f)((void *)object, key, (void *)extra, (void *)value, copied, keep);
}

static inline int callDelete(uintptr_t f, uintptr_t object, int key, uintptr_t value, uintptr_t extra) {
	return ((deleteFunction *)f)((void *)object, key, (void *)value, (void *)extra);
}

typedef void errorFunction(void **, int *, ...);

static inline int callErrhandler(uintptr_t f, uintptr_t object, int code) {
	void *o = (void *)object;
	((errorFunction *)f)(&o, &code);
	return code;
}

static inline int callQuery(uintptr_t f, uintptr_t extra, int *words) {
	return ((MPI_Grequest_query_function *)f)((void *)extra, (MPI_Status *)words);
}

static inline int callFree(uintptr_t f, uintptr_t extra) {
	return ((MPI_Grequest_free_function *)f)((void *)extra);
}

static inline int callConversion(uintptr_t f, uintptr_t user, uintptr_t type, int n, uintptr_t file, int64_t position, uintptr_t extra) {
	return ((MPI_Datarep_conversion_function *)f)((void *)user, (MPI_Datatype)type, n, (void *)file, position, (void *)extra);
}

static inline int callConversionLarge(uintptr_t f, uintptr_t user, uintptr_t type, MPI_Count n, uintptr_t file, int64_t position, uintptr_t extra) {
	return ((MPI_Datarep_conversion_function_c *)f)((void *)user, (MPI_Datatype)type, n, (void *)file, position, (void *)extra);
}

static inline int callExtent(uintptr_t f, uintptr_t type, MPI_Aint *extent, uintptr_t extra) {
	return ((MPI_Datarep_extent_function *)f)((MPI_Datatype)type, extent, (void *)extra);
}

static inline int callCancel(uintptr_t f, uintptr_t extra, int complete) {
	return ((MPI_Grequest_cancel_function *)f)((void *)extra, complete);
}
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/engine/file"
)

// callOp calls a user's operation, in parts whose lengths fit into its int.
func callOp(fn uintptr, large bool, in, inout unsafe.Pointer, n int, t *mpi.Datatype) {
	h, a, b := typeHandle(t), uintptr(in), uintptr(inout)
	if large {
		C.callOpLarge(C.uintptr_t(fn), C.uintptr_t(a), C.uintptr_t(b), C.MPI_Count(n), C.uintptr_t(h))
		return
	}
	step := uintptr(t.Extent()) // a negative extent wraps around as it should
	for n > 0 {
		part := min(n, math.MaxInt32)
		C.callOp(C.uintptr_t(fn), C.uintptr_t(a), C.uintptr_t(b), C.int(part), C.uintptr_t(h))
		n -= part
		a, b = a+uintptr(part)*step, b+uintptr(part)*step
	}
}

func callCopy(fn, object uintptr, key int32, extra, value uintptr) (copied uintptr, keep bool, code int32) {
	var out C.uintptr_t
	var flag C.int
	code = int32(C.callCopy(C.uintptr_t(fn), C.uintptr_t(object), C.int(key), C.uintptr_t(extra), C.uintptr_t(value), &out, &flag))
	return uintptr(out), flag != 0, code
}

func callDelete(fn, object uintptr, key int32, value, extra uintptr) int32 {
	return int32(C.callDelete(C.uintptr_t(fn), C.uintptr_t(object), C.int(key), C.uintptr_t(value), C.uintptr_t(extra)))
}

// callErrhandler calls an error handler for an object, and returns what the call is to return: the
// handler may change it (MPI-4.1, 9.3.1).
func callErrhandler(fn, object uintptr, code int32) int32 {
	return int32(C.callErrhandler(C.uintptr_t(fn), C.uintptr_t(object), C.int(code)))
}

func callQuery(fn, extra uintptr, words *status) int32 {
	return int32(C.callQuery(C.uintptr_t(fn), C.uintptr_t(extra), (*C.int)(&words[0])))
}

func callFree(fn, extra uintptr) int32 {
	return int32(C.callFree(C.uintptr_t(fn), C.uintptr_t(extra)))
}

func callCancel(fn, extra uintptr, complete bool) int32 {
	return int32(C.callCancel(C.uintptr_t(fn), C.uintptr_t(extra), C.int(cbool(complete))))
}

// callConversion calls a function of a data representation, which has large counts if which is 1.
func callConversion(fn, extra uintptr, which int32, c *file.Conversion) error {
	h, user, at := C.uintptr_t(typeHandle(c.Datatype)), C.uintptr_t(uintptr(c.Memory)), C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(c.File))))
	switch {
	case which != 0:
		return codeError(int32(C.callConversionLarge(C.uintptr_t(fn), user, h, C.MPI_Count(c.Count), at, C.int64_t(c.Position), C.uintptr_t(extra))))
	case c.Count > math.MaxInt32:
		return fmt.Errorf("%w: %d elements at once; MPI_Register_datarep_c takes functions that can have so many", mpi.ErrArg, c.Count)
	}
	return codeError(int32(C.callConversion(C.uintptr_t(fn), user, h, C.int(c.Count), at, C.int64_t(c.Position), C.uintptr_t(extra))))
}

func callExtent(fn, extra uintptr, t *mpi.Datatype) (int64, error) {
	var n C.MPI_Aint
	err := codeError(int32(C.callExtent(C.uintptr_t(fn), C.uintptr_t(typeHandle(t)), &n, C.uintptr_t(extra))))
	return int64(n), err
}

// newOp makes an operation of a C function, which has large counts if which is 1.
func newOp(fn uintptr, commute bool, which int32) (mpi.Op, error) {
	if fn < firstAddress {
		return nil, missing("user_fn", fn)
	}
	return mpi.NewTypeOp(func(in, inout unsafe.Pointer, n int, t *mpi.Datatype) {
		callOp(fn, which != 0, in, inout, n, t)
	}, commute), nil
}

func freeOp(h uintptr) error {
	op, err := opOf(h)
	if err == nil && op.Predefined() {
		err = fmt.Errorf("%w: %v is predefined and cannot be freed", datatype.ErrOp, op)
	}
	if err == nil {
		ops.Free(h)
	}
	return err
}
