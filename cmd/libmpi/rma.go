//go:build cgo && !386 && !arm

package main

import "C"

import "github.com/openimpi/impi/core/mpi"

// remote are the arguments that say where an operation goes.
type remote struct {
	rank  int32
	disp  int64
	count int64
	t     uintptr
}

func (r remote) target() (mpi.Target, error) {
	t, err := takeType("target_datatype", r.t)
	return mpi.Target{Rank: int(r.rank), Disp: r.disp, Count: int(r.count), Type: t}, err
}

// atTarget is an operation on a window with a buffer.
func atTarget(fn string, which int32, buf uintptr, count int64, t uintptr, r remote, w uintptr, f func(w *winObject, b mpi.Buffer, to mpi.Target) error) int32 {
	return onWin(fn, which, w, func(w *winObject) error {
		b, err := used(buf, count, t, sends(r.rank))
		if err != nil {
			return err
		}
		to, err := r.target()
		if err != nil {
			return err
		}
		return f(w, b, to)
	})
}

// request stores the request of an operation, if there is where.
func (w *winObject) request(q uintptr, begin func() (mpi.Request, error)) error {
	if q < firstAddress {
		return missing("request", q)
	}
	r, err := begin()
	if err != nil {
		return err
	}
	return newRequest(&w.object, r, q)
}

// access reads or writes.
func access(fn string, which int32, buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, w uintptr, f func(w *winObject, b mpi.Buffer, to mpi.Target) error) int32 {
	return atTarget(fn, which, buf, count, t, remote{rank, disp, tcount, tt}, w, f)
}

// raccess is access with a request.
func raccess(fn string, which int32, buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, w, q uintptr, f func(w *winObject, b mpi.Buffer, to mpi.Target) (mpi.Request, error)) int32 {
	return atTarget(fn, which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		return w.request(q, func() (mpi.Request, error) { return f(w, b, to) })
	})
}

// combineAt combines what is there with a buffer.
func combineAt(fn string, which int32, buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, op, w uintptr, f func(w *winObject, b mpi.Buffer, to mpi.Target, op mpi.Op) error) int32 {
	return atTarget(fn, which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		o, err := opOf(op)
		if err != nil {
			return err
		}
		return f(w, b, to, o)
	})
}

// rcombineAt is combineAt with a request.
func rcombineAt(fn string, which int32, buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, op, w, q uintptr, f func(w *winObject, b mpi.Buffer, to mpi.Target, op mpi.Op) (mpi.Request, error)) int32 {
	return combineAt(fn, which, buf, count, t, rank, disp, tcount, tt, op, w, func(w *winObject, b mpi.Buffer, to mpi.Target, o mpi.Op) error {
		return w.request(q, func() (mpi.Request, error) { return f(w, b, to, o) })
	})
}

// fetched gives the operation and the buffers of a get-accumulate. With MPI_NO_OP
// the first is not looked at, whatever it is.
func fetched(buf uintptr, count int64, t, res uintptr, rcount int64, rt, op uintptr, u use) (b, to mpi.Buffer, o mpi.Op, err error) {
	if o, err = opOf(op); err != nil {
		return b, to, nil, err
	}
	if to, err = used(res, rcount, rt, u); err != nil {
		return b, to, nil, err
	}
	if o != mpi.NoOp {
		b, err = used(buf, count, t, u)
	}
	return b, to, o, err
}

// fetchAt is combineAt that gives what was there.
func fetchAt(fn string, which int32, buf uintptr, count int64, t, res uintptr, rcount int64, rt uintptr, rank int32, disp, tcount int64, tt, op, w uintptr, f func(w *winObject, b, to mpi.Buffer, target mpi.Target, op mpi.Op) error) int32 {
	return onWin(fn, which, w, func(w *winObject) error {
		b, to, o, err := fetched(buf, count, t, res, rcount, rt, op, sends(rank))
		if err != nil {
			return err
		}
		target, err := remote{rank, disp, tcount, tt}.target()
		if err != nil {
			return err
		}
		return f(w, b, to, target, o)
	})
}

// rfetchAt is fetchAt with a request.
func rfetchAt(fn string, which int32, buf uintptr, count int64, t, res uintptr, rcount int64, rt uintptr, rank int32, disp, tcount int64, tt, op, w, q uintptr, f func(w *winObject, b, to mpi.Buffer, target mpi.Target, op mpi.Op) (mpi.Request, error)) int32 {
	return fetchAt(fn, which, buf, count, t, res, rcount, rt, rank, disp, tcount, tt, op, w, func(w *winObject, b, to mpi.Buffer, target mpi.Target, o mpi.Op) error {
		return w.request(q, func() (mpi.Request, error) { return f(w, b, to, target, o) })
	})
}

//export abiFetchAndOp
func abiFetchAndOp(buf, res, t uintptr, rank int32, disp int64, op, w uintptr) int32 {
	return onWin("Fetch_and_op", 0, w, func(w *winObject) error {
		b, to, o, err := fetched(buf, 1, t, res, 1, t, op, sends(rank))
		if err != nil {
			return err
		}
		return w.FetchAndOp(b, to, int(rank), disp, o)
	})
}

//export abiCompareAndSwap
func abiCompareAndSwap(buf, compare, res, t uintptr, rank int32, disp int64, w uintptr) int32 {
	return onWin("Compare_and_swap", 0, w, func(w *winObject) error {
		b, old, err := buffers(buf, 1, t, sends(rank), compare, 1, t, sends(rank))
		if err != nil {
			return err
		}
		to, err := used(res, 1, t, sends(rank))
		if err != nil {
			return err
		}
		return w.CompareAndSwap(b, old, to, int(rank), disp)
	})
}
