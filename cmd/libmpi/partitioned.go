//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

// parted makes the request of a partitioned operation: count items in each of n
// partitions.
func parted(fn string, which int32, buf uintptr, n int32, count int64, t, c, info, q uintptr, f func(c *commObject, b mpi.Buffer) (mpi.Request, error)) int32 {
	return begin(fn, which, c, q, func(c *commObject) (mpi.Request, error) {
		if _, err := infoOf(info); err != nil {
			return mpi.Request{}, err
		}
		if n < 0 {
			return mpi.Request{}, fmt.Errorf("%w: %d partitions", mpi.ErrArg, n)
		}
		b, err := whole(buf, count, int(n), t)
		if err != nil {
			return mpi.Request{}, err
		}
		return f(c, b)
	})
}

//export abiPsendInit
func abiPsendInit(buf uintptr, n int32, count int64, t uintptr, dst, tag int32, c, info, q uintptr, which int32) int32 {
	return parted("Psend_init", which, buf, n, count, t, c, info, q, func(c *commObject, b mpi.Buffer) (mpi.Request, error) {
		return c.PsendInit(b, int(n), int(dst), int(tag))
	})
}

//export abiPrecvInit
func abiPrecvInit(buf uintptr, n int32, count int64, t uintptr, src, tag int32, c, info, q uintptr, which int32) int32 {
	return parted("Precv_init", which, buf, n, count, t, c, info, q, func(c *commObject, b mpi.Buffer) (mpi.Request, error) {
		return c.PrecvInit(b, int(n), int(src), int(tag))
	})
}

// ready is a call that says that partitions are.
func ready(fn string, h uintptr, f func(q *mpi.Request) error) int32 {
	return requestStatus(fn, h, func(r *requestObject) error {
		if r == nil {
			return fmt.Errorf("%w: argument request is the null handle", mpi.ErrRequest)
		}
		return f(&r.q)
	})
}

//export abiPready
func abiPready(i int32, h uintptr) int32 {
	return ready("Pready", h, func(q *mpi.Request) error { return q.Pready(int(i)) })
}

//export abiPreadyRange
func abiPreadyRange(low, high int32, h uintptr) int32 {
	return ready("Pready_range", h, func(q *mpi.Request) error { return q.PreadyRange(int(low), int(high)) })
}

//export abiPreadyList
func abiPreadyList(n int32, list, h uintptr) int32 {
	return ready("Pready_list", h, func(q *mpi.Request) error {
		is, err := ints("array_of_partitions", list, int(n))
		if err != nil {
			return err
		}
		return q.PreadyList(is)
	})
}

//export abiParrived
func abiParrived(h uintptr, i int32, flag uintptr) int32 {
	return requestStatus("Parrived", h, func(r *requestObject) error {
		arrived := true
		if r != nil {
			var err error
			if arrived, err = r.q.Parrived(int(i)); err != nil {
				return err
			}
		}
		return putFlag("flag", flag, arrived)
	})
}
