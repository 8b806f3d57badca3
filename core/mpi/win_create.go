package mpi

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/rma"
)

// Constructors of windows are collective over the members of a communicator that
// is no intercommunicator. Where one member cannot make the window nobody does.
// All members run this library.

// WinCreate makes a window of memory that each member has: all of base, which may
// be empty and is of any datatype. A displacement in it counts unit bytes. The
// memory stays the caller's, and must be there until Free.
func (c *Comm) WinCreate(base Buffer, unit int, info *Info) (*Win, error) {
	w, err := c.winCreate(base, unit, info)
	return w, c.failed("WinCreate", err)
}

// WinCreate is Comm.WinCreate for a slice; displacements count its elements.
func WinCreate[T Type](c *Comm, base []T, info *Info) (*Win, error) {
	var zero T
	return c.WinCreate(Of(base), int(unsafe.Sizeof(zero)), info)
}

// WinAllocate makes a window of memory that it allocates: size bytes, which
// members may give differently, all zero. Memory gives them.
func (c *Comm) WinAllocate(size int64, unit int, info *Info) (*Win, error) {
	w, err := c.winAllocate(size, unit, info)
	return w, c.failed("WinAllocate", err)
}

// WinCreateDynamic makes a window without memory. Attach adds some. Displacements
// are addresses, which Buffer.Address gives.
func (c *Comm) WinCreateDynamic(info *Info) (*Win, error) {
	w, err := c.newWin(winSpec{flavor: WinFlavorDynamic, extent: rma.Extent{Unit: 1}}, info)
	return w, c.failed("WinCreateDynamic", err)
}

// winSpec is what one member brings to a window.
type winSpec struct {
	flavor Flavor
	mem    unsafe.Pointer
	extent rma.Extent
	bad    error // why it cannot be made
}

func (c *Comm) winCreate(base Buffer, unit int, info *Info) (*Win, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	s := winSpec{flavor: WinFlavorCreate, mem: base.mem, extent: rma.Extent{Unit: int64(unit)}}
	s.extent.Size, s.bad = base.extent()
	return c.newWin(s, info)
}

// extent is how many bytes of memory b is, from its origin on.
func (b *Buffer) extent() (int64, error) {
	if b.count < 0 {
		return 0, fmt.Errorf("%w: %d items", rma.ErrSize, b.count)
	}
	if err := b.typ.Check(); err != nil || b.inPlace {
		return 0, fmt.Errorf("%w: it is no memory", rma.ErrBase)
	}
	lo, hi, err := b.typ.Span(b.count)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", rma.ErrSize, err)
	case lo == hi:
		return 0, nil
	case b.mem == nil:
		return 0, fmt.Errorf("%w: nil, of %d bytes", rma.ErrBase, hi)
	case lo < 0 || b.len != unknown && hi > b.len:
		return 0, fmt.Errorf("%w: %d items of %v are bytes %d to %d, and it has %d", rma.ErrSize, b.count, b.typ, lo, hi, b.len)
	}
	return hi, nil
}

// maxWindow is the largest size of a window that is allocated.
const maxWindow = 1 << 40

func (c *Comm) winAllocate(size int64, unit int, info *Info) (*Win, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	s := winSpec{flavor: WinFlavorAllocate, extent: rma.Extent{Size: size, Unit: int64(unit)}}
	if s.bad = checkSize(size); s.bad == nil && size > 0 {
		words := make([]complex128, (size+15)/16) // aligned for every kind
		s.mem = unsafe.Pointer(unsafe.SliceData(words))
	}
	return c.newWin(s, info)
}

func checkSize(size int64) error {
	if size < 0 || size > maxWindow {
		return fmt.Errorf("%w: %d bytes", rma.ErrSize, size)
	}
	return nil
}

// newWin agrees on a window, and has it served.
func (c *Comm) newWin(s winSpec, info *Info) (*Win, error) {
	w, err := c.unservedWin(s, info)
	if err != nil {
		return nil, err
	}
	return w, w.open()
}

// unservedWin makes a window that does not listen yet.
func (c *Comm) unservedWin(s winSpec, info *Info) (*Win, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	c.p.lock()
	ours := c.ours()
	c.p.unlock()
	if !ours {
		return nil, errForeign("a window")
	}
	hints, err := snapshot(info)
	switch {
	case s.bad != nil:
	case err != nil:
		s.bad = err
	case s.extent.Unit <= 0 || s.extent.Unit > 1<<31-1:
		s.bad = fmt.Errorf("%w: a unit of %d bytes", rma.ErrDisp, s.extent.Unit)
	}
	d, err := c.derive(c.Spec(), s.bad)
	if err != nil {
		return nil, err
	}
	w := &Win{p: c.p, c: d, flavor: s.flavor, mem: s.mem, hints: hints}
	// Requests tell their communicator of errors.
	d.handler.set.Store(&Errhandler{name: "a window's", action: callUser, comm: func(_ *Comm, err error) { w.handle(err) }})
	return w, w.exchange(s.extent)
}

// exchange has the members tell each other how much memory they have.
func (w *Win) exchange(mine rma.Extent) error {
	n := w.c.Size()
	all := make([]int64, 2*n)
	if err := allgather(w.c, []int64{mine.Size, mine.Unit}, all); err != nil {
		return err
	}
	w.extents, w.targets = make([]rma.Extent, n), make([]target, n)
	for r := range w.extents {
		w.extents[r] = rma.Extent{Size: all[2*r], Unit: all[2*r+1]}
	}
	return nil
}

// open begins to serve the others. They may begin operations once all of them
// have come so far, which is why it ends with all.
func (w *Win) open() error {
	p := w.p
	p.lock()
	w.clients = make(map[int]*client)
	for i := range w.slots {
		w.listen(&w.slots[i])
	}
	p.dispatch(w)
	p.unlock()
	return w.c.meet()
}

// Free ends the use of w by this proc, after its attributes have been deleted. If
// that fails w stays. All members call it, outside of epochs; it waits for all of
// them.
func (w *Win) Free() error { return w.failed("Win.Free", w.free()) }

func (w *Win) free() error {
	if err := w.check(); err != nil {
		return err
	}
	w.p.lock()
	err := w.epochs.MayFree()
	w.p.unlock()
	if err != nil {
		return err
	}
	if err := keyvals.Clear(&w.attrs, w); err != nil {
		return err
	}
	if !w.life.CompareAndSwap(usable, freed) {
		return w.check()
	}
	return w.end()
}

// end waits until nobody needs this member, and stops to listen.
func (w *Win) end() error {
	err := w.c.meet()
	p := w.p
	p.lock()
	if e := w.until(func() (bool, error) { return len(w.jobs)+len(w.answers) == 0, nil }); err == nil {
		err = e
	}
	w.over = true
	for i := range w.slots {
		p.eng.Cancel(w.slots[i].r)
		p.eng.Release(w.slots[i].r)
	}
	p.unlock()
	w.c.life.Store(freed)
	w.unmap()
	return err
}
