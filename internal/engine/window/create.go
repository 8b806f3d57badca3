package window

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/wireup"
)

// Constructors of windows (MPI-4.1, 12.2) are collective over the members of an intracommunicator.
// If one member cannot make the window no member does. All members must run this library.
//
// While they make it they use the board (core/board) of the given communicator c: the window's own
// board is made at its first fence, as that takes longer than all the rest.

// WinCreateDynamic makes a window without memory, to which each member attaches its own (MPI-4.1,
// 12.2.4).
func WinCreateDynamic(c *proc.Comm, info *proc.Info) (*Win, error) {
	return newWin(c, winSpec{flavor: WinFlavorDynamic, extent: rma.Extent{Unit: 1}}, info)
}

type winSpec struct {
	flavor Flavor
	mem    unsafe.Pointer
	extent rma.Extent
	bad    error // why this member cannot make the window
}

// WinCreate makes a window of memory that the program has (MPI-4.1, 12.2.1). unit is the number of
// bytes by which displacements in this member's part count.
func WinCreate(c *proc.Comm, base proc.Buffer, unit int, info *proc.Info) (*Win, error) {
	if err := construct.CheckIntra(c); err != nil {
		return nil, err
	}
	s := winSpec{flavor: WinFlavorCreate, mem: base.Memory(), extent: rma.Extent{Unit: int64(unit)}}
	s.extent.Size, s.bad = extent(&base)
	return newWin(c, s, info)
}

// extent returns how many bytes of memory b has, from its origin on.
func extent(b *proc.Buffer) (int64, error) {
	if b.Count() < 0 {
		return 0, fmt.Errorf("%w: %d items", rma.ErrSize, b.Count())
	}
	if err := b.Datatype().Check(); err != nil || b.InPlace() {
		return 0, fmt.Errorf("%w: it is no memory", rma.ErrBase)
	}
	lo, hi, err := b.Datatype().Span(b.Count())
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", rma.ErrSize, err)
	case lo == hi:
		return 0, nil
	case b.Memory() == nil:
		return 0, fmt.Errorf("%w: nil, of %d bytes", rma.ErrBase, hi)
	case lo < 0 || b.Len() != proc.Unknown && hi > b.Len():
		return 0, fmt.Errorf("%w: %d items of %v are bytes %d to %d, and it has %d", rma.ErrSize, b.Count(), b.Datatype(), lo, hi, b.Len())
	}
	return hi, nil
}

// maxWindow is the most bytes that a constructor allocates for one member.
const maxWindow = 1 << 40

// WinAllocate makes a window of size bytes that it allocates (MPI-4.1, 12.2.2).
func WinAllocate(c *proc.Comm, size int64, unit int, info *proc.Info) (*Win, error) {
	if err := construct.CheckIntra(c); err != nil {
		return nil, err
	}
	s := winSpec{flavor: WinFlavorAllocate, extent: rma.Extent{Size: size, Unit: int64(unit)}, bad: checkSize(size)}
	w, err := unservedWin(c, s, info)
	if err != nil {
		return nil, err
	}
	if err := w.memory.allocate(c, size); err != nil {
		return nil, err
	}
	w.open()
	return w, nil
}

// allocate has memory that the members of each machine share, or, where one of them cannot have it,
// memory of each member's own.
func (m *memory) allocate(c *proc.Comm, size int64) error {
	err := m.share(c, m.w.mayShare())
	if errors.Is(err, rma.ErrShared) {
		err = nil
	}
	if err == nil && m.mem == nil && size > 0 {
		if b := proc.AllocMem(int(size)); b != nil {
			m.mem, m.lent = unsafe.Pointer(unsafe.SliceData(b)), true
			return nil
		}
		words := make([]complex128, (size+15)/16) // aligned for every kind
		m.mem = unsafe.Pointer(unsafe.SliceData(words))
	}
	return err
}

// mayShare returns an error if this member wants the memory of an allocated window for itself: with
// signatures, operations are compared as messages, and a simulated machine has messages alone.
func (w *Win) mayShare() error {
	if w.Process.Data.Signs() || !w.sharesMemory() {
		return fmt.Errorf("%w: all operations are messages", rma.ErrShared)
	}
	return nil
}

func (w *Win) sharesMemory() bool {
	_, ok := w.Process.Machine.(machine.Memory)
	return ok
}

func checkSize(size int64) error {
	if size < 0 || size > maxWindow {
		return fmt.Errorf("%w: %d bytes", rma.ErrSize, size)
	}
	return nil
}

// newWin makes a window and begins to serve operations of the other members.
func newWin(c *proc.Comm, s winSpec, info *proc.Info) (*Win, error) {
	w, err := unservedWin(c, s, info)
	if err != nil {
		return nil, err
	}
	w.open()
	return w, nil
}

// unservedWin makes a window that does not serve operations yet.
func unservedWin(c *proc.Comm, s winSpec, info *proc.Info) (*Win, error) {
	if err := construct.CheckIntra(c); err != nil {
		return nil, err
	}
	c.Process().Lock()
	ours := construct.AllRunImpi(c)
	c.Process().Unlock()
	if !ours {
		return nil, proc.ForeignError("a window")
	}
	hints, err := construct.Snapshot(info)
	switch {
	case s.bad != nil:
	case err != nil:
		s.bad = err
	case s.extent.Unit <= 0 || s.extent.Unit > 1<<31-1:
		s.bad = fmt.Errorf("%w: a unit of %d bytes", rma.ErrDisp, s.extent.Unit)
	}
	d, err := construct.Derive(c, c.Spec(), s.bad)
	if err != nil {
		return nil, err
	}
	w := &Win{Process: c.Process(), c: d, flavor: s.flavor, hints: hints, memory: memory{mem: s.mem}}
	w.memory.w, w.origin.w, w.sync.w, w.server.w = w, w, w, w
	// Requests call the handler of their communicator, so the handler of d passes errors on to the
	// window's handler.
	d.State().Handler.Set.Store(proc.ErrhandlerOf("a window's", func(_ *proc.Comm, err error) { w.handle(err) }, nil))
	return w, w.memory.exchange(c, s.extent)
}

// memberWords is how many words a member tells the others about its memory.
const memberWords = 6

func (m *memory) exchange(c *proc.Comm, mine rma.Extent) error {
	n := m.w.c.Size()
	m.extents, m.w.origin.targets = make([]rma.Extent, n), make([]target, n)
	places := make([]place, n)
	me := m.whereabouts()
	own := [memberWords]int64{mine.Size, mine.Unit, me.pid, me.at, me.proofAt, me.proof}
	hear := func(r int, x []int64) {
		m.extents[r], places[r] = rma.Extent{Size: x[0], Unit: x[1]}, place{x[2], x[3], x[4], x[5]}
	}
	if err := tell(c, &own, hear); err != nil {
		return err
	}
	if m.w.flavor == WinFlavorCreate {
		m.approach(places)
	}
	return nil
}

// tell tells all members of c words of this one, and calls hear with those of each, this one too.
func tell(c *proc.Comm, own *[memberWords]int64, hear func(rank int, words []int64)) error {
	if collective.BoardMember(c) == nil {
		all := make([]int64, memberWords*c.Size())
		err := collective.AllgatherSlices(c, slices.Clone(own[:]), all)
		for r := range c.Size() {
			hear(r, all[memberWords*r:])
		}
		return err
	}
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	hear(c.Rank(), own[:])
	return collective.ExchangeOnBoard(c, datatype.Bytes(own[:]), func(rank int, theirs []byte) {
		var words [memberWords]int64
		copy(datatype.Bytes(words[:]), theirs)
		hear(rank, words[:])
	})
}

// open begins to serve the other members. Their operations may have arrived before: all members
// have made the communicator by now, so that messages in it wait until they are received.
func (w *Win) open() {
	p := w.Process
	p.Lock()
	defer p.Unlock()
	w.memory.direct()
	w.server.slots = newSlots()
	for i := range w.server.slots {
		w.server.listen(&w.server.slots[i])
	}
	p.Comms.SetWindow(w.c.Context(), w)
	p.Survival.Watch(w.c.Context(), w.server.lost)
	p.Background.Dispatch(&w.server)
}

// Free frees the window and what memory it has allocated. All members call it (MPI-4.1, 12.2.5).
func (w *Win) Free() error {
	if err := w.Check(); err != nil {
		return err
	}
	w.Process.Lock()
	err := w.sync.now().MayFree()
	w.Process.Unlock()
	if err != nil {
		return err
	}
	if err := object.Keyvals.Clear(&w.attrs, w); err != nil {
		return err
	}
	if !w.life.CompareAndSwap(proc.Usable, proc.Freed) {
		return w.Check()
	}
	return w.end()
}

// end waits until no member needs this one, and stops serving.
func (w *Win) end() error {
	err := construct.PlainBarrier(w.c)
	p := w.Process
	p.Lock()
	served := w.server.until(awaited{what: wireup.WantsWindow}, func() (bool, error) { return len(w.server.jobs)+len(w.server.answers) == 0, nil })
	if err == nil {
		err = served
	}
	w.byC.hide()
	w.memory.directions = nil
	w.server.over = true
	w.server.deafen()
	p.Comms.SetWindow(w.c.Context(), nil)
	p.Survival.Watch(w.c.Context(), nil)
	p.Unlock()
	w.c.State().Life.Store(proc.Freed)
	w.c.LeaveBoard()
	collective.FreeNativeComm(w.c)
	if served == nil { // else messages may still be received into the memory, or sent from it
		w.memory.unmap()
	}
	return err
}
