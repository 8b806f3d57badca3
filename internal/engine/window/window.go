package window

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
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
	Process *proc.Process
	c       *proc.Comm // of the window alone
	flavor  Flavor

	life    atomic.Uint32
	name    proc.ObjectName
	hints   *proc.Info
	handler proc.HandlerSlot
	attrs   comm.Attrs

	memory memory
	origin Origin
	sync   Epochs
	server server
}

// memory is the memory of the window.
type memory struct {
	w       *Win
	mem     unsafe.Pointer // of this proc
	extents []rma.Extent   // by rank
	shared  *segments      // of WinAllocateShared
	dynamic attachments    // of WinCreateDynamic
}

// Origin is the state of the operations that this proc has begun.
type Origin struct {
	w       *Win
	seq     uint32
	targets []target // by rank
	dirty   []int    // ranks that operations have gone to since they were flushed
	spare   []*access
	form    []byte // a datatype that is about to leave
}

// Epochs are the synchronisations of this proc with others, by which operations begin and end.
type Epochs struct {
	w      *Win
	epochs rma.Epochs
}

// server is the target's side: operations of other members in this proc's memory.
type server struct {
	w         *Win
	slots     [headerSlots]slot
	next      int // slot
	clients   map[int]*client
	jobs      []*job
	idle      []*job
	answers   []construct.Sending // under way
	held      int                 // headers that clients hold
	types     typeCache
	scratch   *rma.Scratch // nil before the first accumulate
	locks     rma.Locks
	granted   []int
	posts     rma.Arrivals
	completes rma.Arrivals
	over      bool
}

// Origin returns the origin's side of w, whose operations fail if w is nil.
func (w *Win) Origin() *Origin {
	if w == nil {
		return &Origin{}
	}
	return &w.origin
}

// Epochs returns the synchronisations of w, which fail if w is nil.
func (w *Win) Epochs() *Epochs {
	if w == nil {
		return &Epochs{}
	}
	return &w.sync
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

// Check refuses windows that cannot be used.
func (w *Win) Check() error {
	switch {
	case w == nil && !proc.Initialized():
		return proc.ErrNotInitialized
	case w == nil:
		return fmt.Errorf("%w: nil, which is MPI_WIN_NULL", rma.ErrWin)
	case proc.Phase(w.Process.State.Load()) == proc.Ended:
		return proc.ErrFinalized
	case w.life.Load() != proc.Usable:
		return fmt.Errorf("%w: it has been freed", rma.ErrWin)
	}
	return nil
}

func (w *Win) Size() int {
	if w == nil {
		return 0
	}
	return w.c.Size()
}

func (w *Win) Rank() int {
	if w == nil {
		return proc.Undefined
	}
	return w.c.Rank()
}

func (w *Win) Memory() []byte {
	if w.Check() != nil || w.memory.mem == nil {
		return nil
	}
	return unsafe.Slice((*byte)(w.memory.mem), int(w.memory.extents[w.c.Rank()].Size))
}

func (w *Win) Group() (*proc.Group, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	return w.Process.NewGroup(w.c.Comm.Group()), nil
}

func (w *Win) Name() string {
	if w == nil {
		return "MPI_WIN_NULL"
	}
	return w.name.Get()
}

func (w *Win) SetName(name string) error {
	if err := w.Check(); err != nil {
		return err
	}
	w.name.Set(name)
	return nil
}

func (w *Win) SetInfo(info *proc.Info) error {
	err := w.Check()
	if err == nil {
		err = info.Locked(func() error { return nil })
	}
	if err != nil {
		return err
	}
	given, err := construct.Snapshot(info)
	w.Process.Lock()
	w.hints = w.hints.With(given)
	w.Process.Unlock()
	return err
}

// presumed are the default hints of a window.
var presumed = []proc.InfoPair{{Key: "accumulate_ordering", Value: "rar,raw,war,waw"}, {Key: "accumulate_ops", Value: "same_op_no_op"}}

func (w *Win) GetInfo() (*proc.Info, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	w.Process.Lock()
	hints := w.hints
	w.Process.Unlock()
	return proc.InfoWith(presumed).With(hints), nil
}

// label names w for people.
func (w *Win) label() string {
	if name := w.name.Get(); name != "" {
		return name
	}
	return fmt.Sprintf("of context %d", w.c.Context())
}

// Comm is the communicator that the messages of w are in.
func (w *Win) Comm() *proc.Comm { return w.c }
