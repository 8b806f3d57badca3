//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/engine/file"
	"github.com/openimpi/impi/internal/engine/proc"
)

// moveAt is a call that moves data at an offset.
func moveAt(fn string, which int32, h uintptr, offset int64, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return move(fn, which, h, x, then, func(f *file.File, b proc.Buffer) (proc.Status, error) { return f.MoveAt(offset, b, write) })
}

// moveOn is a call that moves data at the individual pointer.
func moveOn(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return move(fn, which, h, x, then, func(f *file.File, b proc.Buffer) (proc.Status, error) { return f.MoveOn(b, write) })
}

// moveTogether is a call that moves data at the shared pointer.
func moveTogether(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return move(fn, which, h, x, then, func(f *file.File, b proc.Buffer) (proc.Status, error) { return f.MoveShared(b, write) })
}

// moveOrdered is moveTogether of all members, one behind the other by rank.
func moveOrdered(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		b, err := x.buffer()
		if err != nil {
			return o.Agree(err) // the others wait for this one
		}
		st, err := o.MoveOrdered(b, write)
		if err != nil {
			return err
		}
		return then(o, st)
	})
}

func move(fn string, which int32, h uintptr, x transfer, then func(o *fileObject, st proc.Status) error, how func(f *file.File, b proc.Buffer) (proc.Status, error)) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		b, err := x.buffer()
		if err != nil {
			return err
		}
		st, err := how(o.File, b)
		if err != nil {
			return err
		}
		return then(o, st)
	})
}

// What a call does with the status: it stores it, makes a request of an operation
// that is complete, or keeps it for the other half of a split operation.

func storing(p uintptr) func(*fileObject, proc.Status) error {
	return func(_ *fileObject, st proc.Status) error {
		putStatus(p, (*mpi.Status)(&st))
		return nil
	}
}

func requesting(p uintptr) func(*fileObject, proc.Status) error {
	return func(o *fileObject, st proc.Status) error {
		q, err := o.Begun(st, nil)
		if err != nil {
			return err
		}
		return newRequest(&o.object, mpi.Request(q), p)
	}
}

func splitting(o *fileObject, st proc.Status) error { return o.Split(st, nil) }

// endSplit is the other half of a split operation.
func endSplit(fn string, h, status uintptr) int32 {
	return onFile(fn, 0, h, func(o *fileObject) error {
		st, err := o.SplitEnd()
		if err != nil {
			return err
		}
		putStatus(status, (*mpi.Status)(&st))
		return nil
	})
}
