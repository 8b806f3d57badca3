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

// Win is a window (MPI-4.1, 12.1): memory of each member of a group that the others read and change
// by their own operations. nil is MPI_WIN_NULL.
//
// Operations in memory that MPI has allocated, at a rank on this proc's machine, are done by this
// proc itself, at once, and so are puts and gets without gaps in memory of WinCreate, if the kernel
// lets procs copy each other's memory. Other memory is accessed by the member that it belongs to,
// in whichever call of MPI it makes: as long as that computes and calls nothing, the others'
// operations wait, and so does a Flush or Unlock that completes them.
//
// The messages of a window are in a communicator of its own. If several goroutines use one window,
// the program has to order their operations and synchronisations, since an epoch is open for the
// whole proc.
type Win struct {
	Process *proc.Process
	c       *proc.Comm // a communicator for the window's messages alone
	flavor  Flavor

	life    atomic.Uint32
	name    proc.ObjectName
	hints   *proc.Info
	handler proc.HandlerSlot
	attrs   comm.Attrs

	memory memory
	byC    byC
	origin Origin
	sync   Epochs
	server server
}

type memory struct {
	w          *Win
	mem        unsafe.Pointer // of this proc's part
	extents    []rma.Extent   // by rank
	near       []bool         // ranks on this proc's machine, of windows whose memory is allocated
	shared     *segments      // nil: all memory is the members' own
	lent       bool           // links may lend it
	directions []direction    // of plain operations, by rank; nil: there are none
	whole      bool           // this proc does all operations at all ranks by itself
	places     []place        // places of the members whose memory the kernel copies for this proc, or nil
	dynamic    attachments    // of WinCreateDynamic
}

// Origin is the state of the operations that this proc has begun.
type Origin struct {
	w       *Win
	seq     uint32
	targets []target // state by rank
	dirty   []int    // ranks to which operations were sent since the last flush
	spare   []*access
	form    []byte // the encoded datatype of the operation that is being begun
	direct  direct
	idle    atomic.Uint32 // flushes that had nothing to wait for
}

// Epochs are the synchronisations of this proc with others, by which operations begin and end.
type Epochs struct {
	w      *Win
	epochs rma.Epochs
}

type server struct {
	w         *Win
	slots     *[headerSlots]slot // nil: this proc does not serve
	next      int                // index of the receive that the next header is taken from
	clients   map[int]*client
	jobs      []*job
	idle      []*job
	answers   []construct.Sending // answers that are being sent
	held      int                 // headers that wait in clients
	types     typeCache
	scratch   *rma.Scratch // nil before the first accumulate
	locks     rma.Locks
	granted   []int
	posts     rma.Arrivals
	completes rma.Arrivals
	waits     waits
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

// Flavor is the way in which a window was made (MPI-4.1, 12.2.6), with the values of the MPI ABI.
type Flavor int

// The flavours of windows, and the unified memory model, which all windows here have (MPI-4.1,
// 12.4).
const (
	WinFlavorCreate   Flavor = 311
	WinFlavorAllocate Flavor = 312
	WinFlavorDynamic  Flavor = 313
	WinFlavorShared   Flavor = 314

	WinUnified = 321
)

// Check returns an error if the window cannot be used.
func (w *Win) Check() error {
	switch {
	case w == nil && !proc.Initialized():
		return proc.ErrNotInitialized
	case w == nil:
		return fmt.Errorf("%w: nil, which is MPI_WIN_NULL", rma.ErrWin)
	case proc.LifeState(w.Process.State.Load()) == proc.Ended:
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

// SetInfo sets hints; hints that info does not have stay as they are (MPI-4.1, 12.2.7).
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

// Label returns a name of w for messages.
func (w *Win) Label() string {
	if name := w.name.Get(); name != "" {
		return name
	}
	return fmt.Sprintf("of context %d", w.c.Context())
}

// Comm returns the communicator that the messages of w are in.
func (w *Win) Comm() *proc.Comm { return w.c }
