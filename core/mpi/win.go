package mpi

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/rma"
)

// Win is a window: memory of each member of a group that the others read and
// change by operations of their own. nil is MPI_WIN_NULL.
//
// A member's memory is accessed by the member itself, in whichever call of MPI it
// makes: as long as it computes and calls nothing, the others' operations wait,
// and so does a Flush or Unlock that completes them. Only loads and stores in a
// window of WinAllocateShared need nobody.
//
// The messages of a window are in a communicator of its own. Operations and
// synchronisations of one window by several goroutines at a time need an order of
// their own, as the epochs are those of the whole proc.
type Win struct {
	p       *process
	c       *Comm // of the window alone
	flavor  Flavor
	mem     unsafe.Pointer // of this proc
	extents []rma.Extent   // by rank
	shared  *segments      // of WinAllocateShared
	dynamic attachments    // of WinCreateDynamic

	life    atomic.Uint32
	name    objectName
	hints   *Info
	handler handlerSlot
	attrs   comm.Attrs

	// What this proc does to others, and with them.
	epochs  rma.Epochs
	seq     uint32
	targets []target // by rank
	dirty   []int    // ranks that operations have gone to since they were flushed
	spare   []*access
	form    []byte // a datatype that is about to leave

	// What others do to this proc.
	slots     [headerSlots]slot
	next      int // slot
	clients   map[int]*client
	jobs      []*job
	idle      []*job
	answers   []sending // under way
	held      int       // headers that clients hold
	types     typeCache
	scratch   *rma.Scratch // nil before the first accumulate
	locks     rma.Locks
	granted   []int
	posts     rma.Arrivals
	completes rma.Arrivals
	over      bool
}

// Flavor is how a window was made, with the values of the MPI ABI.
type Flavor int

// The flavours of windows, and the model that all of them have: what others
// change is seen by loads, and stores by others, without more ado.
const (
	WinFlavorCreate   Flavor = 311
	WinFlavorAllocate Flavor = 312
	WinFlavorDynamic  Flavor = 313
	WinFlavorShared   Flavor = 314

	WinUnified = 321
)

// check refuses windows that cannot be used.
func (w *Win) check() error {
	switch {
	case w == nil && !Initialized():
		return ErrNotInitialized
	case w == nil:
		return fmt.Errorf("%w: nil, which is MPI_WIN_NULL", rma.ErrWin)
	case phase(w.p.state.Load()) == finalized:
		return ErrFinalized
	case w.life.Load() != usable:
		return fmt.Errorf("%w: it has been freed", rma.ErrWin)
	}
	return nil
}

// Check tells whether w can be used: it is rma.ErrWin for nil and for what has
// been freed.
func (w *Win) Check() error { return w.failed("Win.Check", w.check()) }

// Size is the number of members.
func (w *Win) Size() int {
	if w == nil {
		return 0
	}
	return w.c.Size()
}

// Rank is the calling proc's rank in the window.
func (w *Win) Rank() int {
	if w == nil {
		return Undefined
	}
	return w.c.Rank()
}

// Memory is the calling proc's memory of the window, as bytes; nil of a dynamic
// one. It is valid until Free.
func (w *Win) Memory() []byte {
	if w.check() != nil || w.mem == nil {
		return nil
	}
	return unsafe.Slice((*byte)(w.mem), int(w.extents[w.c.Rank()].Size))
}

// Group gives the group of the window's members.
func (w *Win) Group() (*Group, error) {
	if err := w.check(); err != nil {
		return nil, w.failed("Win.Group", err)
	}
	return w.p.newGroup(w.c.Comm.Group()), nil
}

// Name is the name that was last set; empty if none was. That of nil is
// MPI_WIN_NULL.
func (w *Win) Name() string {
	if w == nil {
		return "MPI_WIN_NULL"
	}
	return w.name.get()
}

// SetName names w, for people. MaxObjectName bytes are kept.
func (w *Win) SetName(name string) error {
	if err := w.check(); err != nil {
		return w.failed("Win.SetName", err)
	}
	w.name.set(name)
	return nil
}

// SetInfo adds hints to those of w, or replaces them by key (MPI_Win_set_info). The window is made
// by then: hints change nothing in what it does.
func (w *Win) SetInfo(info *Info) error {
	err := w.check()
	if err == nil {
		err = info.locked(func() error { return nil })
	}
	if err != nil {
		return w.failed("Win.SetInfo", err)
	}
	given, err := snapshot(info)
	w.p.lock()
	w.hints = w.hints.with(given)
	w.p.unlock()
	return w.failed("Win.SetInfo", err)
}

// presumed are hints that a window has unless it was given others. It keeps them even if
// they ask for less.
var presumed = []infoPair{{"accumulate_ordering", "rar,raw,war,waw"}, {"accumulate_ops", "same_op_no_op"}}

// GetInfo gives a copy of the hints of w, with the defaults of those that MPI gives
// defaults; the caller has to Free it.
func (w *Win) GetInfo() (*Info, error) {
	if err := w.check(); err != nil {
		return nil, w.failed("Win.GetInfo", err)
	}
	w.p.lock()
	hints := w.hints
	w.p.unlock()
	return (&Info{pairs: presumed}).with(hints), nil
}

// label names w for people.
func (w *Win) label() string {
	if name := w.name.get(); name != "" {
		return name
	}
	return fmt.Sprintf("of context %d", w.c.Context())
}
