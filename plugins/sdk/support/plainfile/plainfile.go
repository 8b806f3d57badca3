// Package plainfile opens and reads files that an operator names, whatever is there: a pipe does
// not block, a device does not fill the memory.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrKind is wrapped by the error for what is no regular file.
var ErrKind = errors.New("no regular file")

// ErrSize is wrapped by the error for a file with more bytes than its reader takes.
var ErrSize = errors.New("too big")

// Open opens a regular file to read it. It does not block. Errors are *fs.PathError, and say what
// is there if it is something else.
func Open(path string) (*os.File, error) {
	return open(path, syscall.O_NONBLOCK, 0) // without the flag, it would wait for the writer of a pipe
}

// Read returns what a regular file holds. If that is more than most bytes, it returns these and an
// error that wraps ErrSize. The other errors are those of Open.
func Read(path string, most int) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return readAll(f, most)
}

// ReadPipe is like Read, and reads a pipe to its end. It waits as long as those that write to the
// pipe do, so it is for a command at whose terminal somebody sits.
func ReadPipe(path string, most int) ([]byte, error) {
	f, err := open(path, 0, fs.ModeNamedPipe)
	if err != nil {
		return nil, err
	}
	return readAll(f, most)
}

func open(path string, flags int, allowed fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if errors.Is(err, syscall.ENXIO) {
		err = &fs.PathError{Op: "open", Path: path, Err: wrongKind("a socket or a device")}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Type()&^allowed != 0 {
		err = &fs.PathError{Op: "open", Path: path, Err: kindOf(info.Mode())}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// wrongKind is the error for what is no regular file, and says what it is.
type wrongKind string

func (k wrongKind) Error() string { return "it is " + string(k) + " and " + ErrKind.Error() }

func (wrongKind) Unwrap() error { return ErrKind }

func kindOf(mode fs.FileMode) wrongKind {
	switch mode.Type() {
	case fs.ModeDir:
		return wrongKind("a folder")
	case fs.ModeNamedPipe:
		return wrongKind("a pipe")
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return wrongKind("a device")
	}
	return wrongKind("something else")
}

func readAll(f *os.File, most int) ([]byte, error) {
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(b) > most {
		return b[:most], &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("it is %w: it has more than %s", ErrSize, bytes(most))}
	}
	return b, err
}

func bytes(n int) string {
	if n >= 1<<10 && n%(1<<10) == 0 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
