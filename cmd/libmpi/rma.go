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

// access is an operation on a window with a buffer.
func access(fn string, which int32, buf uintptr, count int64, t uintptr, r remote, w uintptr, f func(w *winObject, b mpi.Buffer, to mpi.Target) error) int32 {
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

//export abiPut
func abiPut(buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, w uintptr, which int32) int32 {
	return access("Put", which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		return w.Put(b, to)
	})
}

//export abiGet
func abiGet(buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, w uintptr, which int32) int32 {
	return access("Get", which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		return w.Get(b, to)
	})
}

//export abiRput
func abiRput(buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, w, q uintptr, which int32) int32 {
	return access("Rput", which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		if q < firstAddress {
			return missing("request", q)
		}
		r, err := w.Rput(b, to)
		if err != nil {
			return err
		}
		return newRequest(&w.object, r, q)
	})
}

//export abiRget
func abiRget(buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, w, q uintptr, which int32) int32 {
	return access("Rget", which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		if q < firstAddress {
			return missing("request", q)
		}
		r, err := w.Rget(b, to)
		if err != nil {
			return err
		}
		return newRequest(&w.object, r, q)
	})
}

//export abiAccumulate
func abiAccumulate(buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, op, w uintptr, which int32) int32 {
	return access("Accumulate", which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		o, err := opOf(op)
		if err != nil {
			return err
		}
		return w.Accumulate(b, to, o)
	})
}

//export abiRaccumulate
func abiRaccumulate(buf uintptr, count int64, t uintptr, rank int32, disp, tcount int64, tt, op, w, q uintptr, which int32) int32 {
	return access("Raccumulate", which, buf, count, t, remote{rank, disp, tcount, tt}, w, func(w *winObject, b mpi.Buffer, to mpi.Target) error {
		o, err := opOf(op)
		if err != nil {
			return err
		}
		if q < firstAddress {
			return missing("request", q)
		}
		r, err := w.Raccumulate(b, to, o)
		if err != nil {
			return err
		}
		return newRequest(&w.object, r, q)
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

//export abiGetAccumulate
func abiGetAccumulate(buf uintptr, count int64, t, res uintptr, rcount int64, rt uintptr, rank int32, disp, tcount int64, tt, op, w uintptr, which int32) int32 {
	return onWin("Get_accumulate", which, w, func(w *winObject) error {
		b, to, o, err := fetched(buf, count, t, res, rcount, rt, op, sends(rank))
		if err != nil {
			return err
		}
		target, err := remote{rank, disp, tcount, tt}.target()
		if err != nil {
			return err
		}
		return w.GetAccumulate(b, to, target, o)
	})
}

//export abiRgetAccumulate
func abiRgetAccumulate(buf uintptr, count int64, t, res uintptr, rcount int64, rt uintptr, rank int32, disp, tcount int64, tt, op, w, q uintptr, which int32) int32 {
	return onWin("Rget_accumulate", which, w, func(w *winObject) error {
		b, to, o, err := fetched(buf, count, t, res, rcount, rt, op, sends(rank))
		if err != nil {
			return err
		}
		target, err := remote{rank, disp, tcount, tt}.target()
		if err != nil {
			return err
		}
		if q < firstAddress {
			return missing("request", q)
		}
		r, err := w.RgetAccumulate(b, to, target, o)
		if err != nil {
			return err
		}
		return newRequest(&w.object, r, q)
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
