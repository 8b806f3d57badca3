package window

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Operations on elements of one predefined datatype, which both sides have named, at a rank whose
// memory this proc can access, take as long as their checks. The functions of this file check only
// what such an operation needs and then do it. They return false for any operation that may not be
// valid or plain: the other functions of the package do it, or return its error.

// longestWord is the longest element that atomic operations fetch or swap under the lock of the
// target's memory alone. Longer ones need scratch memory, and so the process's lock.
const longestWord = 16

type direction struct {
	base   unsafe.Pointer // nil: operations at the rank are not plain
	extent rma.Extent
	rep    datatype.Representation
	lock   *atomic.Uint32 // for atomic operations; nil: the lock of the process is enough
}

// direct finds the memory that plain operations are done in. The process is locked.
func (m *memory) direct() {
	data := &m.w.Process.Data
	if data.Signs() {
		return
	}
	m.directions, m.whole = make([]direction, m.w.c.Size()), true
	for rank := range m.directions {
		if base := m.base(rank); base != nil {
			m.directions[rank] = direction{base, m.extents[rank], data.DataOf(m.w.peer(rank)), m.lockOf(rank)}
		} else {
			m.whole = false
		}
	}
}

// plain returns the memory of b if an operation with it may be plain, and the kind of its elements.
func (o *Origin) plain(b *proc.Buffer) (mem []byte, k datatype.Kind, ok bool) {
	if o.w.Check() != nil {
		return nil, k, false
	}
	return b.Plain()
}

// enter returns the memory of a plain operation on elements of k, of which this side has a type, if
// the epoch admits it, and the lock there. The process is locked.
func (o *Origin) enter(to *Target, t *proc.Datatype, k datatype.Kind, request bool) (mem []byte, lock *atomic.Uint32) {
	mem, lock = o.place(to, t, k)
	if mem == nil {
		return nil, nil
	}
	if p := o.w.Process; p.Failure != nil || p.Data.Guarded() || lostAt(o.w, to.Rank) != nil {
		return nil, nil
	}
	if passive, fits := o.w.sync.now().Admits(to.Rank); !fits || request && !passive {
		return nil, nil
	}
	o.w.sync.epochs.Use()
	return mem, lock
}

// alone is enter without the process's lock. It returns memory only if the program has locked the
// window at all members (MPI_Win_lock_all) and this proc can access the memory of each: then only
// the program's own calls change what is read here.
func (o *Origin) alone(to *Target, t *proc.Datatype, k datatype.Kind) (mem []byte, lock *atomic.Uint32) {
	if !o.w.sync.complete() || o.w.Process.Data.Guarded() || o.w.Process.Failing.Load() {
		return nil, nil
	}
	return o.place(to, t, k)
}

// place returns the memory of a plain operation, and the lock there, whatever epoch there is.
func (o *Origin) place(to *Target, t *proc.Datatype, k datatype.Kind) (mem []byte, lock *atomic.Uint32) {
	m := &o.w.memory
	if uint(to.Rank) >= uint(len(m.directions)) || to.Type != t || to.Count <= 0 || to.Disp < 0 {
		return nil, nil
	}
	x := &m.directions[to.Rank]
	high, off := bits.Mul64(uint64(to.Disp), uint64(x.extent.Unit))
	more, n := bits.Mul64(uint64(to.Count), uint64(k.Size()))
	if size := uint64(x.extent.Size); x.base == nil || high|more != 0 || off > size || n > size-off || !t.Identity(x.rep) {
		return nil, nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(x.base, off)), int(n)), x.lock
}

func (o *Origin) putPlain(b *proc.Buffer, to *Target, request bool) bool {
	here, k, ok := o.plain(b)
	if !ok || to.Count < b.Count() {
		return false
	}
	if there, _ := o.alone(to, b.Datatype(), k); there != nil {
		copy(there, here)
		return true
	}
	o.w.Process.Lock()
	there, _ := o.enter(to, b.Datatype(), k, request)
	copy(there, here)
	o.w.Process.Unlock()
	return there != nil
}

func (o *Origin) getPlain(b *proc.Buffer, from *Target, request bool) bool {
	here, k, ok := o.plain(b)
	if !ok || from.Count > b.Count() {
		return false
	}
	if there, _ := o.alone(from, b.Datatype(), k); there != nil {
		copy(here, there)
		return true
	}
	o.w.Process.Lock()
	there, _ := o.enter(from, b.Datatype(), k, request)
	copy(here, there)
	o.w.Process.Unlock()
	return there != nil
}

// combinePlain is Accumulate, and GetAccumulate with a result. b is nothing if the operation needs
// none.
func (o *Origin) combinePlain(b, result *proc.Buffer, to *Target, op *datatype.Op, request bool) bool {
	first := b
	if b == nil {
		first = result
	}
	here, k, ok := o.plain(first)
	loop := datatype.LoopOf(op, k)
	if !ok || to.Count != first.Count() || loop == nil && op.CheckAccumulate(first.Datatype()) != nil {
		return false
	}
	var was []byte
	if result != nil && result != first {
		if was, _, ok = result.Plain(); !ok || result.Datatype() != first.Datatype() || len(was) != len(here) {
			return false
		}
	} else if result != nil {
		was = here
	}
	if len(was) > keptData {
		return false
	}
	var word [longestWord]byte
	old := word[:min(len(was), len(word))]
	there, lock := o.alone(to, first.Datatype(), k)
	if lock == nil || len(was) > len(old) {
		o.w.Process.Lock()
		defer o.w.Process.Unlock()
		if there, lock = o.enter(to, first.Datatype(), k, request); there == nil {
			return false
		}
		old = room(&o.direct.old, len(was))
	}
	if !aligned(k, here, there) {
		return false
	}
	l := hold(lock)
	copy(old, there)
	var err error
	switch {
	case b == nil:
	case loop != nil:
		loop(unsafe.Pointer(unsafe.SliceData(here)), unsafe.Pointer(unsafe.SliceData(there)), to.Count)
	default:
		err = op.Accumulate(here, there, k, to.Count)
	}
	l.release()
	copy(was, old)
	return err == nil // op, the kind, the lengths and the alignment have been checked
}

func (o *Origin) swapPlain(b, compare, result *proc.Buffer, to *Target) bool {
	here, k, ok := o.plain(b)
	with, k2, ok2 := compare.Plain()
	was, k3, ok3 := result.Plain()
	n := k.Size()
	if !ok || !ok2 || !ok3 || k2 != k || k3 != k || len(here) != n || len(with) != n || len(was) != n || !rma.Swappable(k) {
		return false
	}
	var word [longestWord]byte
	old := word[:min(n, len(word))]
	there, lock := o.alone(to, b.Datatype(), k)
	if lock == nil || n > len(old) {
		o.w.Process.Lock()
		defer o.w.Process.Unlock()
		if there, lock = o.enter(to, b.Datatype(), k, false); there == nil {
			return false
		}
		old = room(&o.direct.old, n)
	}
	l := hold(lock)
	copy(old, there)
	if string(old) == string(with) {
		copy(there, here)
	}
	l.release()
	copy(was, old)
	return true
}

func aligned(k datatype.Kind, a, b []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(a))) | uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at&uintptr(k.Align()-1) == 0
}
