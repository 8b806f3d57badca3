package file

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"unsafe"

	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// Positioning is the place of the file where a call reads or writes.
type Positioning int

// The places.
const (
	AtOffset               Positioning = iota // an offset, in etypes of the view
	AtIndividualPointer                       // the individual pointer, which advances
	AtSharedPointer                           // the shared pointer, which advances
	AtSharedPointerOrdered                    // the shared pointer; all members call it, and their data are in the order of ranks
)

// Access describes how a call uses a file.
type Access struct {
	Positioning Positioning
	Offset      int64 // used for At
	Write       bool
	All         bool // all members call it
}

func (a Access) collective() bool { return a.All || a.Positioning == AtSharedPointerOrdered }

type access struct {
	Access
	f      *File
	b      proc.Buffer
	view   *fileview.View
	rep    rep
	atomic bool
	h      hints
	pos    int64 // in bytes of data of the view
	mem    []byte
	back   func(n int64) error
	bad    error // why this member cannot do it
}

// Move reads or writes b (MPI-4.1, 14.4). At the end of the file it reads fewer bytes. bad is why
// the caller has no valid b; if the call is collective it takes part nevertheless, since the others
// wait for it.
func (f *File) Move(a Access, b proc.Buffer, bad error) (proc.Status, error) {
	x := f.begin(a, b, bad, false)
	if !a.collective() {
		return x.run()
	}
	defer f.turns.enter()()
	return x.run()
}

// Begin begins a Move, and returns its request. A member that has an error gets it at once; the
// other members of a collective call get it from their requests.
func (f *File) Begin(a Access, b proc.Buffer, bad error) (proc.Request, error) {
	x := f.begin(a, b, bad, true)
	wait := func() {}
	leave := wait
	if a.collective() {
		wait, leave = f.turns.join()
	} else if x.bad != nil {
		return proc.Request{}, x.bad
	}
	q := start(f, a.collective(), wait, func() (proc.Status, error) {
		defer leave()
		return x.run()
	})
	if x.bad != nil {
		return proc.Request{}, x.bad
	}
	return q, nil
}

// Split begins a Move as a split operation (MPI-4.1, 14.4.5), which SplitEnd ends. A file has one
// at a time.
func (f *File) Split(a Access, b proc.Buffer, bad error) error {
	f.mu.Lock()
	busy := f.split != nil
	f.mu.Unlock()
	if busy {
		return fmt.Errorf("%w: another split operation on the file has not ended", proc.ErrArg)
	}
	q, err := f.Begin(a, b, bad)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.split = &q
	return nil
}

// SplitEnd is the second half of a split operation: it waits until that is complete (MPI-4.1,
// 14.4.5).
func (f *File) SplitEnd() (proc.Status, error) {
	f.mu.Lock()
	q := f.split
	f.split = nil
	f.mu.Unlock()
	if q == nil {
		return proc.Status{}, fmt.Errorf("%w: no split operation has begun", proc.ErrArg)
	}
	return q.Complete()
}

// begin does what has to be done before a call returns: it moves the pointer, and takes what is to
// be written if that is converted or has gaps.
func (f *File) begin(a Access, b proc.Buffer, bad error, later bool) *access {
	f.mu.Lock()
	x := &access{Access: a, f: f, b: b, view: f.view, rep: f.in, atomic: f.atomic, h: f.h, bad: bad}
	f.mu.Unlock()
	if x.bad == nil {
		x.bad = x.prepare(later)
	}
	if x.bad != nil {
		x.mem = nil
	}
	return x
}

func (x *access) prepare(later bool) (err error) {
	f := x.f
	if x.collective() {
		defer recovered(debug.SetPanicOnFault(true), &err) // the others wait for this member
	}
	if x.rep.own != nil && later { // the program's functions are called about the datatype when the call has returned
		if err := x.b.Check(); err != nil {
			return err
		}
		t, err := kept(x.b.Datatype())
		if err != nil {
			return err
		}
		x.b = proc.At(x.b.Memory(), x.b.Count(), t)
	}
	if x.mem, x.back, err = x.rep.memory(&x.b, x.Write); err != nil {
		return err
	}
	if n := len(x.mem); n > 0 && x.collective() {
		touch(unsafe.Pointer(&x.mem[0]))
		touch(unsafe.Pointer(&x.mem[n-1]))
	}
	n := int64(len(x.mem))
	switch x.Positioning {
	case AtOffset:
		if x.pos, err = x.view.Position(x.Offset); err != nil {
			return fmt.Errorf("%w: argument offset: %w", proc.ErrArg, err)
		}
	case AtIndividualPointer:
		f.mu.Lock()
		x.pos = f.pos
		f.pos += n
		f.mu.Unlock()
	case AtSharedPointer:
		if x.pos, err = f.shared.move(n); err != nil {
			return err
		}
	case AtSharedPointerOrdered:
		return nil
	}
	return x.view.Check(x.pos, n)
}

func (x *access) run() (proc.Status, error) {
	f, st := x.f, proc.EmptyStatus
	if x.Positioning == AtSharedPointerOrdered {
		pos, err := f.order(int64(len(x.mem)), x.bad)
		if err != nil {
			return st, err
		}
		x.pos = pos
		if bad := x.view.Check(pos, int64(len(x.mem))); x.bad == nil {
			x.bad = bad
		}
	}
	var moved int64
	var err error
	switch {
	case x.collective():
		moved, err = x.together()
	case x.bad != nil:
		return st, x.bad
	default:
		moved, err = x.byItself()
	}
	if x.bad != nil {
		return st, err
	}
	if !x.Write {
		if bad := x.back(moved); bad != nil {
			return st, bad
		}
	}
	n, bad := x.rep.counted(x.b.Datatype(), moved)
	if bad == nil {
		bad = st.SetElements(bytesType, int(n))
	}
	return st, cmp.Or(bad, err)
}

// memory returns the bytes of b in the file's representation. If they are a copy, back unpacks its
// first n bytes to b.
func (r rep) memory(b *proc.Buffer, write bool) (mem []byte, back func(n int64) error, err error) {
	if err := b.Check(); err != nil {
		return nil, nil, err
	}
	t, count, at := b.Datatype(), b.Count(), b.Memory()
	lo, hi, err := t.Span(count)
	nothing := func(int64) error { return nil }
	if err != nil || lo == hi {
		return nil, nothing, err
	}
	size, err := r.sizeOf(b)
	if err != nil {
		return nil, nil, err
	}
	if disp, ok := t.Run(count); ok && t.Identity(r.is) && r.own == nil {
		return unsafe.Slice((*byte)(unsafe.Add(at, disp)), size), nothing, nil
	}
	touch(unsafe.Add(at, hi-1)) // fail early, before a copy of this size is allocated
	mem = make([]byte, size)
	switch {
	case r.own != nil && write:
		err = r.own.store(t, at, count, mem)
	case write:
		t.Encode(r.is, mem, at, count, 0)
	}
	return mem, func(n int64) error {
		if r.own != nil {
			return r.own.load(t, at, count, mem[:n])
		}
		t.Decode(r.is, at, count, 0, mem[:n], nil)
		return nil
	}, err
}

func (r rep) sizeOf(b *proc.Buffer) (int64, error) {
	w, err := r.width(b.Datatype())
	if err == nil && b.Count() > 0 && w > math.MaxInt64/int64(b.Count()) {
		err = fmt.Errorf("%w: %d items of %d bytes", proc.ErrArg, b.Count(), w)
	}
	return w * int64(b.Count()), err
}

// touch reads the byte at p, so that memory that is missing fails here. Inlined, a read whose value
// nobody needs would be left out.
//
//go:noinline
func touch(p unsafe.Pointer) byte { return *(*byte)(p) }
