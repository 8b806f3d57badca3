package window

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/plugins/sdk/support/polling"
)

// direct does operations in memory that this proc can load from and store to. The epoch that admits
// an operation also says that its target is ready: Start waits for the post, Lock for the lock,
// Fence for all. So nothing has to be asked of the target, and the operation is complete when its
// call returns. All operations at one rank are done this way or none, which keeps their order.
type direct struct {
	scratch *rma.Scratch // nil before the first accumulate
	data    []byte       // operand of an accumulate, if the program does not have it in one piece
	old     []byte       // previous contents of the window
	piece   []byte       // a piece of items with gaps, between buffer and window
}

const (
	pieceSize = 64 << 10
	// keptData is the most memory that is kept for the next accumulate.
	keptData = 1 << 20
)

// base returns where the memory of a rank begins, nil if this proc cannot access it.
func (m *memory) base(rank int) unsafe.Pointer {
	switch {
	case m.shared != nil && m.shared.offsets[rank] >= 0:
		return unsafe.Pointer(&m.shared.mem[m.shared.offsets[rank]])
	case rank == m.w.c.Rank() && m.w.flavor != WinFlavorDynamic:
		return m.mem
	}
	return nil
}

// operate does an operation that has been checked. The process is locked.
func (d *direct) operate(w *Win, to *Target, h *rma.Header, x *parts, base unsafe.Pointer) error {
	off, err := w.memory.extents[to.Rank].Locate(to.Disp, int64(to.Count), to.Type)
	if err != nil {
		return err
	}
	data := &w.Process.Data
	peer := w.peer(to.Rank)
	at := rma.Items{Mem: unsafe.Add(base, off), Count: to.Count, Type: to.Type, Rep: data.DataOf(peer)}
	var out, in proc.Payload
	if x.out != nil {
		out = data.Exactly(peer, *x.out)
	}
	if x.in != nil {
		in = data.Exactly(peer, *x.in)
	}
	var fault error
	switch h.Kind {
	case rma.Put:
		fault = data.Touch(func() { d.put(&at, &out) })
	case rma.Get:
		fault = data.Touch(func() { d.get(&at, &in) })
	default:
		err, fault = d.atomic(w, to.Rank, h, x, &at, &out, &in)
	}
	for _, s := range []*proc.Stream{out.Items, in.Items} {
		if e := s.Fault(); fault == nil {
			fault = e
		}
		data.Retire(s)
	}
	if err == nil {
		err = fault
	}
	return err
}

// put stores what out has in the window, which may be less than the items there.
func (d *direct) put(at *rma.Items, out *proc.Payload) {
	there := buffer(at)
	if mem, ok := there.Run(); ok && out.Items == nil {
		copy(mem, out.Mem)
		return
	}
	var carry datatype.Carry
	for off, n := int64(0), size(out); off < n; {
		part := d.part(n - off)
		if out.Items != nil {
			out.Items.Pack(part, off)
		} else {
			part = out.Mem[off : off+int64(len(part))]
		}
		at.Type.Decode(at.Rep, at.Mem, at.Count, off, part, &carry)
		off += int64(len(part))
	}
}

func (d *direct) get(at *rma.Items, in *proc.Payload) {
	there := buffer(at)
	if mem, ok := there.Run(); ok && in.Items == nil {
		copy(in.Mem, mem)
		return
	}
	for off, n := int64(0), at.Size(); off < n; {
		part := d.part(n - off)
		at.Type.Encode(at.Rep, part, at.Mem, at.Count, off)
		d.unload(in, part, off)
		off += int64(len(part))
	}
}

func (d *direct) unload(in *proc.Payload, part []byte, off int64) {
	if in.Items != nil {
		in.Items.Unpack(part, off)
	} else {
		copy(in.Mem[off:], part)
	}
}

func (d *direct) part(n int64) []byte {
	if d.piece == nil {
		d.piece = make([]byte, pieceSize)
	}
	return d.piece[:min(n, pieceSize)]
}

// atomic does an accumulate, or compares and swaps, so that no other accumulate comes between
// (MPI-4.1, 12.7.1). A fault of the program's memory does not leave the lock behind.
func (d *direct) atomic(w *Win, rank int, h *rma.Header, x *parts, at *rma.Items, out, in *proc.Payload) (err, fault error) {
	data := &w.Process.Data
	here := out.Mem
	switch {
	case x.swap != nil:
		n := int(size(out))
		here = room(&d.data, 2*n)
		other := data.Exactly(w.peer(rank), *x.swap)
		fault = data.Touch(func() { copyOut(here, out); copyOut(here[n:], &other) })
		data.Retire(other.Items)
	case out.Items != nil:
		here = room(&d.data, int(size(out)))
		copyOut(here, out) // a fault is recorded in the stream
		fault = out.Items.Fault()
	}
	if fault != nil {
		return nil, fault
	}
	var old []byte
	if x.in != nil {
		old = room(&d.old, int(at.Size()))
	}
	if d.scratch == nil {
		d.scratch = new(rma.Scratch)
	}
	lock := w.memory.lock(rank)
	fault = data.Touch(func() {
		if h.Kind == rma.CompareAndSwap {
			at.CompareAndSwap(here, old)
		} else {
			err = at.Accumulate(h.Op, here, old, d.scratch)
		}
	})
	lock.release()
	if err == nil && fault == nil && x.in != nil {
		fault = data.Touch(func() { d.unload(in, old, 0) })
	}
	if cap(d.data)+cap(d.old) > keptData {
		d.data, d.old = nil, nil
	}
	return err, fault
}

func copyOut(dst []byte, x *proc.Payload) {
	if x.Items == nil {
		copy(dst, x.Mem)
	} else if n := int(size(x)); n > 0 {
		x.Items.Pack(dst[:n], 0)
	}
}

func room(mem *[]byte, n int) []byte {
	if cap(*mem) < n {
		*mem = make([]byte, n)
	}
	return (*mem)[:n]
}

// held is a lock that is held; nil is none.
type held struct{ word *atomic.Uint32 }

// lock keeps the other procs of this machine from atomic operations at a rank. It is held for the
// duration of one, by a proc that waits for nobody meanwhile. Where memory is not shared, the lock
// of the process is enough.
func (m *memory) lock(rank int) held {
	return hold(m.lockOf(rank))
}

// hold takes the lock of a word, which may be nil.
func hold(word *atomic.Uint32) held {
	if word == nil {
		return held{}
	}
	for tries := 0; !word.CompareAndSwap(0, 1); tries++ {
		if tries >= spins {
			runtime.Gosched()
			polling.Yield()
		}
	}
	return held{word}
}

// lockOf returns where that lock is, nil if there is none.
func (m *memory) lockOf(rank int) *atomic.Uint32 {
	if m.shared == nil || m.shared.offsets[rank] < 0 {
		return nil
	}
	return (*atomic.Uint32)(unsafe.Pointer(&m.shared.mem[m.shared.locks+lockGrain*int64(rank)]))
}

// spins is how often a lock is tried before this proc lets another one run, which may hold it.
const spins = 32

func (h held) release() {
	if h.word != nil {
		h.word.Store(0)
	}
}
