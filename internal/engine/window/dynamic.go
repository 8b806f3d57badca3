package window

import (
	"fmt"
	"unsafe"

	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
)

type attachments struct {
	regions rma.Regions
	mem     map[uint64]unsafe.Pointer // origins of the memory, by address
}

func Address(b proc.Buffer) int64 { return int64(uintptr(b.Memory())) }

// Attach lets the others access b in a dynamic window (MPI-4.1, 12.2.4). It may not overlap what is
// attached already.
func (w *Win) Attach(b proc.Buffer) error {
	size, err := w.attachable(&b)
	if err != nil || size == 0 {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	start := uint64(Address(b))
	if err := w.memory.dynamic.regions.Attach(start, uint64(size)); err != nil {
		return err
	}
	if w.memory.dynamic.mem == nil {
		w.memory.dynamic.mem = make(map[uint64]unsafe.Pointer)
	}
	w.memory.dynamic.mem[start] = b.Memory()
	return nil
}

// Detach takes memory that was attached out of the window (MPI-4.1, 12.2.4).
func (w *Win) Detach(b proc.Buffer) error {
	size, err := w.attachable(&b)
	if err != nil || size == 0 {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	start := uint64(Address(b))
	if err := w.memory.dynamic.regions.Detach(start); err != nil {
		return err
	}
	delete(w.memory.dynamic.mem, start)
	return nil
}

func (w *Win) attachable(b *proc.Buffer) (int64, error) {
	if err := w.Check(); err != nil {
		return 0, err
	}
	if w.flavor != WinFlavorDynamic {
		return 0, fmt.Errorf("%w: memory is attached to dynamic ones only", rma.ErrFlavor)
	}
	return extent(b)
}

// place returns where count items of t at a displacement are in this proc's memory. The process is
// locked.
func (m *memory) place(disp, count int64, t *proc.Datatype) (unsafe.Pointer, error) {
	if m.w.flavor != WinFlavorDynamic {
		off, err := m.extents[m.w.c.Rank()].Locate(disp, count, t)
		if err != nil || m.mem == nil {
			return nil, err
		}
		return unsafe.Add(m.mem, off), nil
	}
	start, off, err := m.dynamic.regions.Locate(disp, count, t)
	if mem := m.dynamic.mem[start]; err == nil && mem != nil {
		return unsafe.Add(mem, off), nil
	}
	return nil, err
}
