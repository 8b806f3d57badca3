package file

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// The shared pointer is a number in a second file, in the same folder as the file, so that all
// members see it. It counts bytes of data of the view; each view has another one (MPI-4.1, 14.4.4).

// sharedDir is the info key that names another folder for the file of the shared pointer.
const sharedDir = "impi_shared_dir"

type sharedPointer struct {
	path    string     // of the file
	info    *proc.Info // of the file
	mu      sync.Mutex
	id      int64 // of this opening of the file, different from all others
	views   int   // number of views that the file has had
	start   int64
	counter *fileview.Counter // nil: not used in this view
}

func newID() (int64, error) {
	var b [8]byte
	_, err := rand.Read(b[:])
	return int64(binary.BigEndian.Uint64(b[:]) >> 1), err
}

func (s *sharedPointer) use(do func(c *fileview.Counter) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counter == nil {
		dir, name := filepath.Split(s.path)
		if other, ok, err := s.info.Get(sharedDir); err == nil && ok {
			dir = other
		}
		s.counter = fileview.NewCounter(filepath.Join(dir, fmt.Sprintf(".%s.%016x.%d", name, s.id, s.views)), s.start)
	}
	err := do(s.counter)
	if err != nil && !errors.Is(err, proc.ErrArg) {
		err = ofSystem(fmt.Errorf("the shared pointer: %w", err))
	}
	return err
}

func (s *sharedPointer) move(n int64) (before int64, err error) {
	err = s.use(func(c *fileview.Counter) error {
		before, err = c.Add(n)
		return err
	})
	return before, err
}

// drop removes the pointer of a view that the members do not use any more.
func (s *sharedPointer) drop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counter
	s.counter, s.start, s.views = nil, 0, s.views+1
	if c == nil {
		return nil
	}
	return ofSystem(c.Close())
}

// order returns the position of this member's n bytes of data in an ordered operation: after the
// data of all lower ranks. bad is why this member cannot take part.
func (f *File) order(n int64, bad error) (int64, error) {
	if err := f.agree(bad); err != nil {
		return 0, err
	}
	sizes := make([]int64, f.comm.Size())
	if err := collective.Allgather(f.comm, []int64{n}, sizes); err != nil {
		return 0, err
	}
	var before, total int64
	for r, size := range sizes {
		if r < f.comm.Rank() {
			before += size
		}
		total += size
	}
	first := []int64{0}
	err := f.atRoot(func() (err error) {
		first[0], err = f.shared.move(total)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = collective.Bcast(f.comm, first, 0)
	return first[0] + before, err
}

// SeekShared moves the shared pointer (MPI-4.1, 14.4.4). All members pass the same numbers.
func (f *File) SeekShared(offset int64, whence int) error {
	defer f.turns.enter()()
	if err := same(f.comm, offset, int64(whence)); err != nil {
		return err
	}
	return f.atRoot(func() error {
		return f.shared.use(func(c *fileview.Counter) error {
			now, err := c.Add(0)
			if err != nil {
				return err
			}
			to, err := f.target(offset, whence, now)
			if err != nil {
				return err
			}
			return c.Set(to)
		})
	})
}

func same(c *proc.Comm, numbers ...int64) error {
	var mine []int64
	for _, n := range numbers {
		mine = append(mine, n, ^n)
	}
	all := make([]int64, len(mine))
	if err := collective.Allreduce(c, mine, all, datatype.Max); err != nil {
		return err
	}
	for i := range numbers {
		if all[2*i] != ^all[2*i+1] {
			return fmt.Errorf("%w: members do not give the same offset and whence", proc.ErrArg)
		}
	}
	return nil
}

// PositionShared returns the position of the shared pointer, in etypes (MPI-4.1, 14.4.4).
func (f *File) PositionShared() (int64, error) {
	pos, err := f.shared.move(0)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return pos / f.view.Unit(), nil
}
