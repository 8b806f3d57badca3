package window

import (
	"unsafe"

	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fastpath"
	"golang.org/x/sys/unix"
)

// byC is what C code knows of a window, by which it does operations in shared memory without
// calling Go. It is empty if C knows nothing. Whoever changes it has locked the process, so that C
// is out.
type byC struct {
	p       *proc.Process
	place   *fastpath.Window
	targets []fastpath.Target // by rank; not allocated by Go
}

// FastPath registers w with C, under its handle, if MPI has allocated the memory of w and there is
// a free place for its handle. Otherwise all operations on w are Go's.
func (w *Win) FastPath(handle uintptr) {
	p := w.Process
	if p.FastPath == nil || p.Data.Signs() || w.flavor != WinFlavorAllocate && w.flavor != WinFlavorShared {
		return
	}
	n := w.c.Size()
	mem, err := unix.Mmap(-1, 0, n*int(unsafe.Sizeof(fastpath.Target{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return
	}
	p.Lock()
	defer p.Unlock()
	e := p.FastPath.WindowOf(handle)
	if e.Handle != 0 {
		_ = unix.Munmap(mem) // it was mapped with this length
		return
	}
	targets := unsafe.Slice((*fastpath.Target)(unsafe.Pointer(unsafe.SliceData(mem))), n)
	whole := true
	for rank := range targets {
		base := w.memory.base(rank)
		if whole = whole && base != nil; base == nil || !proc.HasNativeLayout(p.Data.DataOf(w.peer(rank))) {
			continue
		}
		x := w.memory.extents[rank]
		targets[rank] = fastpath.Target{Base: base, Size: x.Size, Unit: x.Unit, Lock: w.memory.lockOf(rank)}
	}
	w.byC = byC{p, e, targets}
	*e = fastpath.Window{Handle: handle, Targets: unsafe.SliceData(targets), Ranks: uint32(n), Whole: flag(whole), Board: w.c.FastPathBoard()}
	p.FastPath.Used++
	w.sync.tell(w.sync.everybody())
}

// InFastPath reports whether C may do operations at a rank.
func (w *Win) InFastPath(rank int) bool {
	t := w.byC.targets
	return rank >= 0 && rank < len(t) && t[rank].Base != nil
}

// due reports whether C has left a flush to Go since it is time for progress.
func (b *byC) due() bool {
	if b.place == nil || (b.place.Idle+1)%fastpath.FlushesPerLook != 0 {
		return false
	}
	b.place.Idle++
	return true
}

func (b *byC) hide() {
	if b.place == nil {
		return
	}
	*b.place = fastpath.Window{}
	b.p.FastPath.Used--
	first := unsafe.Pointer(unsafe.SliceData(b.targets))
	_ = unix.Munmap(unsafe.Slice((*byte)(first), len(b.targets)*int(unsafe.Sizeof(fastpath.Target{})))) // as it was mapped
	*b = byC{}
}

// now returns the epochs, with what C has begun in them. The process is locked.
func (e *Epochs) now() *rma.Epochs {
	c := e.w.byC.place
	if c == nil {
		return &e.epochs
	}
	if c.Fenced != 0 {
		e.epochs.Fence(true)
		c.Fenced = 0
	}
	if c.Used != 0 {
		e.epochs.Use()
		c.Used = 0
	}
	return &e.epochs
}

// tell tells C which operations the open epochs admit. ranks are those at which that has changed,
// unless the epochs admit operations at all ranks, or at none. The process is locked.
func (e *Epochs) tell(ranks []int) {
	c := &e.w.byC
	if c.place == nil {
		return
	}
	every, passive := e.epochs.Scope()
	c.place.Every, c.place.Passive = flag(every), flag(passive)
	c.place.Board = e.w.c.FastPathBoard()
	c.place.Fences = flag(every && !passive && c.place.Whole != 0 && e.epochs.MayFence() == nil) // with Whole nothing is under way
	for _, rank := range ranks {
		_, fits := e.epochs.Admits(rank)
		c.targets[rank].Open = flag(fits)
	}
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
