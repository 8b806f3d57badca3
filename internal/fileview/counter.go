package fileview

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Counter is a number shared by processes that see the same folder, such as the shared pointer of a
// file: it is in a file of its own, locked while it is changed. The file exists from the first use
// until the process that made it removes it. A Counter is for one goroutine at a time.
type Counter struct {
	path  string
	start int64 // its value before the first change
	file  *os.File
	made  bool // this Counter made the file
}

// NewCounter returns a counter that begins at start. It makes no file before it is used.
func NewCounter(path string, start int64) *Counter { return &Counter{path: path, start: start} }

// Add adds n and returns the value before. It blocks while other processes change the counter.
func (c *Counter) Add(n int64) (before int64, err error) {
	err = c.change(func(v int64) int64 {
		before = v
		return v + n
	})
	return before, err
}

// Set sets the value. It blocks while other processes change the counter.
func (c *Counter) Set(v int64) error { return c.change(func(int64) int64 { return v }) }

func (c *Counter) change(f func(v int64) int64) error {
	if err := c.open(); err != nil {
		return fmt.Errorf("the counter %s: %w", c.path, err)
	}
	// A lock of the open file, not of the process: files that one process has opened
	// twice keep each other out.
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := fcntl(c.file, unix.F_OFD_SETLKW, &lock); err != nil {
		return fmt.Errorf("the counter %s cannot be locked: %w", c.path, err)
	}
	defer func() {
		lock.Type = unix.F_UNLCK
		_ = fcntl(c.file, unix.F_OFD_SETLK, &lock) // closing unlocks, too
	}()
	old, err := c.read()
	if err != nil {
		return fmt.Errorf("the counter %s: %w", c.path, err)
	}
	v := f(old)
	if v == old {
		return nil
	}
	if _, err := c.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(v)), 0); err != nil {
		return fmt.Errorf("the counter %s: %w", c.path, err)
	}
	return nil
}

func (c *Counter) open() (err error) {
	if c.file != nil {
		return nil
	}
	c.file, err = os.OpenFile(c.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if c.made = err == nil; c.made || !errors.Is(err, os.ErrExist) {
		return err
	}
	c.file, err = os.OpenFile(c.path, os.O_RDWR, 0)
	return err
}

// ErrCounter means a counter's file that another program has written to.
var ErrCounter = errors.New("it is no counter")

func (c *Counter) read() (int64, error) {
	var b [9]byte
	n, err := c.file.ReadAt(b[:], 0)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return c.start, nil
	case n == 8 && errors.Is(err, io.EOF) && b[0] < 0x80:
		return int64(binary.BigEndian.Uint64(b[:])), nil
	case err != nil && !errors.Is(err, io.EOF):
		return 0, err
	}
	return 0, ErrCounter
}

// Close ends the use of the counter. The Counter that made the file removes it: no other one may
// use it any more.
func (c *Counter) Close() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	if c.made {
		err = errors.Join(err, os.Remove(c.path))
	}
	return err
}

// fcntl calls fcntl on a file's descriptor, again if a signal interrupts it.
func fcntl(f *os.File, cmd int, lock *unix.Flock_t) error {
	for {
		err := unix.FcntlFlock(f.Fd(), cmd, lock)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
