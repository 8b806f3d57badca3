//go:build cgo && !386 && !arm

package main

import "C"

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/fileview"
)

// The shared pointer is a number in a file beside the file, which all members see if
// they see that. It counts bytes of data of the view; each view has one of its own.

// sharedDir is the key of info that names another folder for it.
const sharedDir = "impi_shared_dir"

// sharedPointer is that of an open file.
type sharedPointer struct {
	mu      sync.Mutex
	id      int64 // of this open file, among all
	views   int   // that the file has had
	start   int64
	counter *fileview.Counter // nil: not used in this view
}

// newID makes an id that no other open file has.
func newID() (int64, error) {
	var b [8]byte
	_, err := rand.Read(b[:])
	return int64(binary.BigEndian.Uint64(b[:]) >> 1), err
}

// atShared does something with the shared pointer.
func (o *fileObject) atShared(f func(c *fileview.Counter) error) error {
	s := &o.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counter == nil {
		dir, name := filepath.Split(o.name)
		if other, ok, err := o.info.Get(sharedDir); err == nil && ok {
			dir = other
		}
		s.counter = fileview.NewCounter(filepath.Join(dir, fmt.Sprintf(".%s.%016x.%d", name, s.id, s.views)), s.start)
	}
	err := f(s.counter)
	if err != nil && !errors.Is(err, mpi.ErrArg) {
		err = ofSystem(fmt.Errorf("the shared pointer: %w", err))
	}
	return err
}

// moveShared moves the shared pointer by n bytes and gives where it was.
func (o *fileObject) moveShared(n int64) (before int64, err error) {
	err = o.atShared(func(c *fileview.Counter) error {
		before, err = c.Add(n)
		return err
	})
	return before, err
}

// dropShared ends the pointer of a view, whose members do not use it any more.
func (o *fileObject) dropShared() error {
	s := &o.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counter
	s.counter, s.start, s.views = nil, 0, s.views+1
	if c == nil {
		return nil
	}
	return ofSystem(c.Close())
}

// bytes is how many bytes of data are to be moved.
func (x transfer) bytes(r datatype.Representation) (int64, error) {
	if _, _, err := x.memory(r, false); err != nil {
		return 0, err
	}
	return width(r, typeOf(x.t)) * x.count, nil
}

// moveTogether is a call that moves data at the shared pointer.
func moveTogether(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st mpi.Status) error) int32 {
	return moveFrom(fn, which, h, x, write, then, func(o *fileObject) (int64, error) {
		n, err := x.bytes(o.rep())
		if err != nil {
			return 0, err
		}
		return o.moveShared(n)
	})
}

// moveOrdered is moveTogether of all members, one behind the other by rank.
func moveOrdered(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st mpi.Status) error) int32 {
	return moveFrom(fn, which, h, x, write, then, func(o *fileObject) (int64, error) { return o.order(x) })
}

// order gives the place of this member's data.
func (o *fileObject) order(x transfer) (int64, error) {
	n, err := x.bytes(o.rep())
	if err := o.agree(err); err != nil {
		return 0, err
	}
	sizes := make([]int64, o.comm.Size())
	if err := mpi.Allgather(o.comm, []int64{n}, sizes); err != nil {
		return 0, err
	}
	var before, total int64
	for r, size := range sizes {
		if r < o.comm.Rank() {
			before += size
		}
		total += size
	}
	first := []int64{0}
	err = o.atRoot(func() (err error) {
		first[0], err = o.moveShared(total)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = mpi.Bcast(o.comm, first, 0)
	return first[0] + before, err
}

//export abiFileSeekShared
func abiFileSeekShared(h uintptr, offset int64, whence int32) int32 {
	return onFile("File_seek_shared", 0, h, func(o *fileObject) error {
		if err := o.same(offset, int64(whence)); err != nil {
			return err
		}
		return o.atRoot(func() error {
			return o.atShared(func(c *fileview.Counter) error {
				now, err := c.Add(0)
				if err != nil {
					return err
				}
				to, err := o.target(offset, whence, now)
				if err != nil {
					return err
				}
				return c.Set(to)
			})
		})
	})
}

// same wants all members to give the same numbers.
func (o *fileObject) same(numbers ...int64) error {
	var mine []int64
	for _, n := range numbers {
		mine = append(mine, n, ^n)
	}
	all := make([]int64, len(mine))
	if err := mpi.Allreduce(o.comm, mine, all, mpi.Max); err != nil {
		return err
	}
	for i := range numbers {
		if all[2*i] != ^all[2*i+1] {
			return fmt.Errorf("%w: members do not give the same offset and whence", mpi.ErrArg)
		}
	}
	return nil
}

//export abiFileGetPositionShared
func abiFileGetPositionShared(h, out uintptr) int32 {
	return onFile("File_get_position_shared", 0, h, func(o *fileObject) error {
		if _, err := result[int64]("offset", out); err != nil {
			return err
		}
		pos, err := o.moveShared(0)
		if err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return put("offset", out, pos/o.view.Unit())
	})
}
