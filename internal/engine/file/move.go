package file

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
	"unsafe"

	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
)

// MoveAt reads or writes b from an offset on, in etypes of the view. At the end of the file less is
// read.
func (f *File) MoveAt(offset int64, b proc.Buffer, write bool) (proc.Status, error) {
	f.mu.Lock()
	pos, err := f.view.Position(offset)
	f.mu.Unlock()
	if err != nil {
		return proc.Status{}, fmt.Errorf("%w: argument offset: %w", proc.ErrArg, err)
	}
	return f.move(b, pos, write)
}

// MoveOn reads or writes b at the individual pointer, which moves on.
func (f *File) MoveOn(b proc.Buffer, write bool) (proc.Status, error) {
	pos, err := f.advance(b)
	if err != nil {
		return proc.Status{}, err
	}
	return f.move(b, pos, write)
}

// MoveShared reads or writes b at the shared pointer, which moves on.
func (f *File) MoveShared(b proc.Buffer, write bool) (proc.Status, error) {
	n, err := f.bytes(b)
	if err != nil {
		return proc.Status{}, err
	}
	pos, err := f.shared.move(n)
	if err != nil {
		return proc.Status{}, err
	}
	return f.move(b, pos, write)
}

// MoveOrdered is MoveShared by all members, whose data follow each other by rank (MPI-4.1, 14.4.4).
func (f *File) MoveOrdered(b proc.Buffer, write bool) (proc.Status, error) {
	pos, err := f.order(b)
	if err != nil {
		return proc.Status{}, err
	}
	return f.move(b, pos, write)
}

// Begun returns the request of an operation that is complete already, or its error.
func (f *File) Begun(st proc.Status, err error) (proc.Request, error) {
	if err != nil {
		return proc.Request{}, err
	}
	q := p2p.Grequest(f.comm.Process(), p2p.Generalized{Query: func(s *proc.Status) error {
		*s = st
		return nil
	}})
	return q, p2p.Complete(&q)
}

// Split keeps the status of the first half of a split operation (MPI-4.1, 14.4.5) for SplitEnd,
// unless err is set.
func (f *File) Split(st proc.Status, err error) error {
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.split != nil {
		return fmt.Errorf("%w: another split operation on the file has not ended", proc.ErrArg)
	}
	f.split = &st
	return nil
}

// SplitEnd is the second half of a split operation.
func (f *File) SplitEnd() (proc.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.split == nil {
		return proc.Status{}, fmt.Errorf("%w: no split operation has begun", proc.ErrArg)
	}
	st := *f.split
	f.split = nil
	return st, nil
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

// sizeOf returns how many bytes b takes in a file.
func (r rep) sizeOf(b *proc.Buffer) (int64, error) {
	w, err := r.width(b.Datatype())
	if err == nil && b.Count() > 0 && w > math.MaxInt64/int64(b.Count()) {
		err = fmt.Errorf("%w: %d items of %d bytes", proc.ErrArg, b.Count(), w)
	}
	return w * int64(b.Count()), err
}

// move reads or writes b at pos, in bytes of data of the view.
func (f *File) move(b proc.Buffer, pos int64, write bool) (proc.Status, error) {
	st := proc.EmptyStatus
	f.mu.Lock()
	view, atomic, rep := f.view, f.atomic, f.in
	f.mu.Unlock()
	mem, back, err := rep.memory(&b, write)
	if err != nil {
		return st, err
	}
	if atomic && len(mem) > 0 {
		unlock, err := lock(f.file, write)
		if err != nil {
			return st, err
		}
		defer unlock()
	}
	moved := int64(0)
	for at := range view.Extents(pos, int64(len(mem))) {
		var n int
		part := mem[moved : moved+at.Len]
		if write {
			n, err = f.file.WriteAt(part, at.Off)
		} else {
			n, err = f.file.ReadAt(part, at.Off)
		}
		moved += int64(n)
		if err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil // there are fewer bytes
	}
	if !write {
		if bad := back(moved); bad != nil {
			return st, bad
		}
	}
	n, bad := rep.counted(b.Datatype(), moved)
	if bad == nil {
		bad = st.SetElements(bytesType, int(n))
	}
	if bad != nil {
		return st, bad
	}
	return st, ofSystem(err)
}

// lock locks the whole file for an atomic operation.
func lock(f *os.File, write bool) (unlock func(), err error) {
	l := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	if write {
		l.Type = syscall.F_WRLCK
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLKW, &l); err != nil {
		return nil, ofSystem(err)
	}
	return func() {
		l.Type = syscall.F_UNLCK
		_ = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &l) // closing the file unlocks it, too
	}, nil
}

// advance moves the individual pointer by the size of b, and returns where it was.
func (f *File) advance(b proc.Buffer) (int64, error) {
	n := int64(0)
	if b.Count() > 0 && b.Datatype().Check() == nil {
		var err error
		if n, err = f.rep().sizeOf(&b); err != nil {
			return 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	pos := f.pos
	f.pos += n
	return pos, nil
}

// bytes returns how many bytes b has in the file.
func (f *File) bytes(b proc.Buffer) (int64, error) {
	r := f.rep()
	if _, _, err := r.memory(&b, false); err != nil {
		return 0, err
	}
	return r.sizeOf(&b)
}

// touch reads a byte.
//
//go:noinline
func touch(p unsafe.Pointer) byte { return *(*byte)(p) }
