//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/window"
)

type winObject struct {
	*mpi.Win
	object
	values   *winValues
	mu       sync.Mutex
	attached map[uintptr]mpi.Buffer // memory attached to a dynamic window, by address
}

func storeWin(to *uintptr, w *mpi.Win) error {
	o := &winObject{Win: w, object: object{sort: "Win"}, values: &winValues{}, attached: map[uintptr]mpi.Buffer{}}
	h, p := wins.New()
	if p == nil {
		return fmt.Errorf("%w: too many windows", rma.ErrWin)
	}
	o.handle = h
	*p = o
	wins.Set(h)
	winHandles.Store(w, h)
	*to = h
	(*window.Win)(w).FastPath(h)
	return nil
}

// put is Put, and tells C what memory there is.
func (w *winObject) put(b mpi.Buffer, to mpi.Target) error {
	err := w.Put(b, to)
	if err == nil && w.inC(to.Rank) {
		learnBuffer(b, false, true)
	}
	return err
}

func (w *winObject) get(b mpi.Buffer, from mpi.Target) error {
	err := w.Get(b, from)
	if err == nil && w.inC(from.Rank) {
		learnBuffer(b, true, false) // the buffer may be larger than the target
	}
	return err
}

func (w *winObject) accumulate(b mpi.Buffer, to mpi.Target, op mpi.Op) error {
	err := w.Accumulate(b, to, op)
	if err == nil && w.inC(to.Rank) {
		learnBuffer(b, false, true)
	}
	return err
}

func (w *winObject) getAccumulate(b, result mpi.Buffer, to mpi.Target, op mpi.Op) error {
	err := w.GetAccumulate(b, result, to, op)
	if err == nil && w.inC(to.Rank) {
		learnBuffer(b, false, true)
		learnBuffer(result, true, true)
	}
	return err
}

func (w *winObject) fetchAndOp(b, result mpi.Buffer, rank int, disp int64, op mpi.Op) error {
	err := w.FetchAndOp(b, result, rank, disp, op)
	if err == nil && w.inC(rank) {
		learnBuffer(b, false, true)
		learnBuffer(result, true, true)
	}
	return err
}

func (w *winObject) compareAndSwap(b, compare, result mpi.Buffer, rank int, disp int64) error {
	err := w.CompareAndSwap(b, compare, result, rank, disp)
	if err == nil && w.inC(rank) {
		learnBuffer(b, false, true)
		learnBuffer(compare, false, true)
		learnBuffer(result, true, true)
	}
	return err
}

// inC reports whether C may do operations at a rank by itself.
func (w *winObject) inC(rank int) bool { return (*window.Win)(w.Win).InFastPath(rank) }

func windowSize(n int64) error {
	if n < 0 {
		return fmt.Errorf("%w: %d", rma.ErrSize, n)
	}
	return nil
}

func allocateWin(fn string, which int32, size, unit int64, info, c, base, out uintptr, f func(c *mpi.Comm, size int64, unit int, i *mpi.Info) (*mpi.Win, error)) int32 {
	return onComm(fn, which, c, func(c *commObject) error {
		win, err := result[uintptr]("win", out)
		if err != nil {
			return err
		}
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		if err := windowSize(size); err != nil {
			return err
		}
		memory, err := result[uintptr]("baseptr", base)
		if err != nil {
			return err
		}
		w, err := f(c.Comm, size, int(unit), i)
		if err != nil {
			return err
		}
		*memory = uintptr(unsafe.Pointer(unsafe.SliceData(w.Memory())))
		return storeWin(win, w)
	})
}

func (w *winObject) query(rank int) (size int64, unit int, base uintptr, err error) {
	mem, unit, err := w.SharedQuery(rank)
	return int64(len(mem)), unit, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), err
}

func (w *winObject) attach(base uintptr, b mpi.Buffer) error {
	if err := w.Attach(b); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attached[base] = b
	return nil
}

func (w *winObject) detach(base uintptr) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, ok := w.attached[base]
	if !ok {
		return fmt.Errorf("%w: nothing is attached at %#x", rma.ErrAttach, base)
	}
	if err := w.Detach(b); err != nil {
		return err
	}
	delete(w.attached, base)
	return nil
}

func freeWin(fn string, p uintptr) int32 {
	return onHandle(fn, "win", p, nil, func(h *uintptr) int32 {
		return onWin(fn, 0, *h, func(w *winObject) error {
			if err := w.Free(); err != nil {
				return err
			}
			winHandles.Delete(w.Win)
			wins.Free(*h)
			*h = winNull
			return nil
		})
	})
}

// winName is MPI_Win_get_name, which has an answer for MPI_WIN_NULL, too (MPI-4.1, 7.8).
func winName(fn string, h, name, length uintptr) int32 {
	if h == winNull {
		return on(fn, 0, func() error { return putSizedText("win_name", name, maxObjectName, length, "MPI_WIN_NULL") })
	}
	return onWin(fn, 0, h, func(o *winObject) error {
		return putSizedText("win_name", name, maxObjectName, length, o.Name())
	})
}
