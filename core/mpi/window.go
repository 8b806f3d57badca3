package mpi

import (
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/engine/window"
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
type Win window.Win

// Flavor is how a window was made, with the values of the MPI ABI.
type Flavor = window.Flavor

// The flavours of windows, and the model that all of them have: what others
// change is seen by loads, and stores by others, without more ado.
const (
	WinFlavorCreate   = window.WinFlavorCreate
	WinFlavorAllocate = window.WinFlavorAllocate
	WinFlavorDynamic  = window.WinFlavorDynamic
	WinFlavorShared   = window.WinFlavorShared
	WinUnified        = window.WinUnified
)

// Check tells whether w can be used: it is rma.ErrWin for nil and for what has
// been freed.
func (w *Win) Check() error { return w.in().Check() }

// Size is the number of members.
func (w *Win) Size() int { return w.in().Size() }

// Rank is the calling proc's rank in the window.
func (w *Win) Rank() int { return w.in().Rank() }

// Memory is the calling proc's memory of the window, as bytes; nil of a dynamic
// one. It is valid until Free.
func (w *Win) Memory() []byte { return w.in().Memory() }

// Group gives the group of the window's members.
func (w *Win) Group() (*Group, error) { return outGroup(w.in().Group()) }

// Name is the name that was last set; empty if none was. That of nil is
// MPI_WIN_NULL.
func (w *Win) Name() string { return w.in().Name() }

// SetName names w, for people. MaxObjectName bytes are kept.
func (w *Win) SetName(name string) error { return w.in().SetName(name) }

// SetInfo adds hints to those of w, or replaces them by key (MPI_Win_set_info). The window is made
// by then: hints change nothing in what it does.
func (w *Win) SetInfo(info *Info) error { return w.in().SetInfo(info.in()) }

// GetInfo gives a copy of the hints of w, with the defaults of those that MPI gives
// defaults; the caller has to Free it.
func (w *Win) GetInfo() (*Info, error) { return outInfo(w.in().GetInfo()) }

// CreateWinKeyval makes a key for attributes of windows, as CreateKeyval does for
// communicators. Windows are not duplicated: cp is never called.
func CreateWinKeyval(cp CopyFunc[*Win], del DeleteFunc[*Win], extra any) (Keyval, error) {
	return window.CreateWinKeyval(onWin(cp), onWinEnd(del), extra)
}

// FreeWinKeyval is FreeKeyval for a key of windows.
func FreeWinKeyval(key *Keyval) error { return window.FreeWinKeyval(key) }

// SetAttr attaches a value to w. One that is there is deleted first; where its
// DeleteFunc fails it stays.
func (w *Win) SetAttr(key Keyval, value any) error { return w.in().SetAttr(key, value) }

// Attr gives the value that w has for a key; ok is whether it has one. WinBase has
// an unsafe.Pointer, which is nil of a dynamic window, the other predefined keys
// have ints.
func (w *Win) Attr(key Keyval) (value any, ok bool, err error) { return w.in().Attr(key) }

// DeleteAttr deletes the value that w has for a key. If there is none, nothing
// happens.
func (w *Win) DeleteAttr(key Keyval) error { return w.in().DeleteAttr(key) }

// WinCreate makes a window of memory that each member has: all of base, which may
// be empty and is of any datatype. A displacement in it counts unit bytes. The
// memory stays the caller's, and must be there until Free.
func (c *Comm) WinCreate(base Buffer, unit int, info *Info) (*Win, error) {
	return outWin(window.WinCreateItems(c.in(), proc.Buffer(base), unit, info.in()))
}

// WinCreate is Comm.WinCreate for a slice; displacements count its elements.
func WinCreate[T Type](c *Comm, base []T, info *Info) (*Win, error) {
	return outWin(window.WinCreate(c.in(), base, info.in()))
}

// WinAllocate makes a window of memory that it allocates: size bytes, which
// members may give differently, all zero. Memory gives them.
func (c *Comm) WinAllocate(size int64, unit int, info *Info) (*Win, error) {
	return outWin(window.WinAllocate(c.in(), size, unit, info.in()))
}

// WinCreateDynamic makes a window without memory. Attach adds some. Displacements
// are addresses, which Buffer.Address gives.
func (c *Comm) WinCreateDynamic(info *Info) (*Win, error) {
	return outWin(window.WinCreateDynamic(c.in(), info.in()))
}

// Free ends the use of w by this proc, after its attributes have been deleted. If
// that fails w stays. All members call it, outside of epochs; it waits for all of
// them.
func (w *Win) Free() error { return w.in().Free() }

// Address is where b's memory begins, for displacements in a dynamic window that
// it is attached to. Memory that is attached does not move.
func (b Buffer) Address() int64 { return window.Address(proc.Buffer(b)) }

// Attach adds memory to a dynamic window: all of b, until Detach. None of it may be
// attached already.
func (w *Win) Attach(b Buffer) error { return w.in().Attach(proc.Buffer(b)) }

// Detach takes off memory that was attached, as it was given to Attach. Nobody may
// access it any more.
func (w *Win) Detach(b Buffer) error { return w.in().Detach(proc.Buffer(b)) }

// NewWinErrhandler makes a handler for windows of f, as NewErrhandler does for
// communicators.
func NewWinErrhandler(f func(w *Win, err error)) (*Errhandler, error) {
	return outErrhandler(window.NewWinErrhandler(winHandler(f)))
}

// SetErrhandler makes h the handler of errors of calls on w by this proc. Without
// it a window has the one that SetDefaultErrhandler says.
func (w *Win) SetErrhandler(h *Errhandler) error { return w.in().SetErrhandler(h.in()) }

// GetErrhandler gives the handler of w, which the caller has to Free.
func (w *Win) GetErrhandler() (*Errhandler, error) { return outErrhandler(w.in().GetErrhandler()) }

// CallErrhandler calls the handler of w with an error of the program's own. It
// does nothing where err is nil.
func (w *Win) CallErrhandler(err error) error { return w.in().CallErrhandler(err) }

// WinAllocateShared makes a window of memory that all members can load from and
// store to; SharedQuery says where. Members' parts, size bytes each, follow each
// other without gaps, unless info says alloc_shared_noncontig = true: then each
// begins a page. All members are on one machine, as SplitType finds them.
//
// The memory is a memfd of rank 0 that the others open as /proc/<pid>/fd/<n>. That
// takes one user, one PID namespace and a mounted /proc; where it fails the call
// does, on all members, with rma.ErrShared.
func (c *Comm) WinAllocateShared(size int64, unit int, info *Info) (*Win, error) {
	return outWin(window.WinAllocateShared(c.in(), size, unit, info.in()))
}

// SharedQuery gives the memory of a rank in a window of WinAllocateShared, and the
// unit of its displacements. ProcNull stands for the lowest rank that has some.
func (w *Win) SharedQuery(rank int) (mem []byte, unit int, err error) {
	return w.in().SharedQuery(rank)
}
