package file

import (
	"fmt"

	"github.com/openimpi/impi/internal/engine/proc"
)

// Call calls do with a file that is open, and puts the name of the method before an error.
func Call[T any](fn string, f *File, do func(f *File) (T, error)) (T, error) {
	var result T
	err := f.usable()
	if err == nil {
		result, err = do(f)
	}
	if err != nil {
		err = proc.WithFuncName("File."+fn, err)
	}
	return result, err
}

// Do is Call for a method without a result.
func Do(fn string, f *File, do func(f *File) error) error {
	_, err := Call(fn, f, func(f *File) (struct{}, error) { return struct{}{}, do(f) })
	return err
}

func (f *File) usable() error {
	if f == nil {
		return fmt.Errorf("%w: nil, which is MPI_FILE_NULL", ErrFile)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("%w: it has been closed", ErrFile)
	}
	return nil
}

// OpenWithFuncName is Open with the name of the method before its error.
func OpenWithFuncName(parent *proc.Comm, name string, mode int, info *proc.Info) (*File, error) {
	if err := parent.Usable(); err != nil {
		return nil, parent.Failed("FileOpen", err)
	}
	f, err := Open(parent, name, mode, info)
	if err != nil {
		return nil, proc.WithFuncName("FileOpen", err)
	}
	return f, nil
}

// RegisterWithFuncName is Register with the name of the function before its error.
func RegisterWithFuncName(d Datarep) error {
	if err := Register(d); err != nil {
		return proc.WithFuncName("RegisterDatarep", err)
	}
	return nil
}

// DeleteWithFuncName is Delete with the name of the function before its error.
func DeleteWithFuncName(name string) error {
	if err := Delete(name); err != nil {
		return proc.WithFuncName("FileDelete", err)
	}
	return nil
}
