package mpi

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/rma"
)

// attachments is the memory of a dynamic window.
type attachments struct {
	regions rma.Regions
	mem     map[uint64]unsafe.Pointer // by its address
}

// Address is where b's memory begins, for displacements in a dynamic window that
// it is attached to. Memory that is attached does not move.
func (b Buffer) Address() int64 { return int64(uintptr(b.mem)) }

// Attach adds memory to a dynamic window: all of b, until Detach. None of it may be
// attached already.
func (w *Win) Attach(b Buffer) error { return w.failed("Win.Attach", w.attach(b)) }

func (w *Win) attach(b Buffer) error {
	size, err := w.attachable(&b)
	if err != nil || size == 0 {
		return err
	}
	w.p.lock()
	defer w.p.unlock()
	start := uint64(b.Address())
	if err := w.dynamic.regions.Attach(start, uint64(size)); err != nil {
		return err
	}
	if w.dynamic.mem == nil {
		w.dynamic.mem = make(map[uint64]unsafe.Pointer)
	}
	w.dynamic.mem[start] = b.mem
	return nil
}

// Detach takes off memory that was attached, as it was given to Attach. Nobody may
// access it any more.
func (w *Win) Detach(b Buffer) error { return w.failed("Win.Detach", w.detach(b)) }

func (w *Win) detach(b Buffer) error {
	size, err := w.attachable(&b)
	if err != nil || size == 0 {
		return err
	}
	w.p.lock()
	defer w.p.unlock()
	start := uint64(b.Address())
	if err := w.dynamic.regions.Detach(start); err != nil {
		return err
	}
	delete(w.dynamic.mem, start)
	return nil
}

// attachable is the size of memory that Attach and Detach are called with.
func (w *Win) attachable(b *Buffer) (int64, error) {
	if err := w.check(); err != nil {
		return 0, err
	}
	if w.flavor != WinFlavorDynamic {
		return 0, fmt.Errorf("%w: memory is attached to dynamic ones only", rma.ErrFlavor)
	}
	return b.extent()
}

// place gives where count items of t at a displacement are in this proc's memory.
// The process is locked.
func (w *Win) place(disp, count int64, t *Datatype) (unsafe.Pointer, error) {
	if w.flavor != WinFlavorDynamic {
		off, err := w.extents[w.c.Rank()].Place(disp, count, t)
		if err != nil || w.mem == nil {
			return nil, err
		}
		return unsafe.Add(w.mem, off), nil
	}
	start, off, err := w.dynamic.regions.Place(disp, count, t)
	if mem := w.dynamic.mem[start]; err == nil && mem != nil {
		return unsafe.Add(mem, off), nil
	}
	return nil, err
}
