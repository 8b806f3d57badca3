package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
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
func memory(b *proc.Buffer, r datatype.Representation, write bool) (mem []byte, back func(n int64), err error) {
	if err := b.Check(); err != nil {
		return nil, nil, err
	}
	t, count, at := b.Datatype(), b.Count(), b.Memory()
	lo, hi, err := t.Span(count)
	if err != nil || lo == hi {
		return nil, func(int64) {}, err
	}
	size := width(r, t) * int64(count)
	if disp, ok := t.Run(count); ok && t.Identity(r) {
		return unsafe.Slice((*byte)(unsafe.Add(at, disp)), size), func(int64) {}, nil
	}
	touch(unsafe.Add(at, hi-1)) // fail early, before a copy of this size is allocated
	mem = make([]byte, size)
	if write {
		t.Encode(r, mem, at, count, 0)
	}
	return mem, func(n int64) { t.Decode(r, at, count, 0, mem[:n], nil) }, nil
}

// move reads or writes b at pos, in bytes of data of the view.
func (f *File) move(b proc.Buffer, pos int64, write bool) (proc.Status, error) {
	st := proc.EmptyStatus
	f.mu.Lock()
	view, atomic, rep := f.view, f.atomic, f.repLocked()
	f.mu.Unlock()
	mem, back, err := memory(&b, rep, write)
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
	if !write {
		back(moved)
	}
	if errors.Is(err, io.EOF) {
		err = nil // there are fewer bytes
	}
	if bad := st.SetElements(bytesType, int(counted(rep, b.Datatype(), moved))); bad != nil {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	pos := f.pos
	if t := b.Datatype(); b.Count() > 0 && t.Check() == nil {
		f.pos += width(f.repLocked(), t) * int64(b.Count())
	}
	return pos, nil
}

// bytes returns how many bytes b has in the file.
func (f *File) bytes(b proc.Buffer) (int64, error) {
	r := f.rep()
	if _, _, err := memory(&b, r, false); err != nil {
		return 0, err
	}
	return width(r, b.Datatype()) * int64(b.Count()), nil
}

// touch reads a byte.
//
//go:noinline
func touch(p unsafe.Pointer) byte { return *(*byte)(p) }
