//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

// moveAt is a call that moves data at an offset.
func moveAt(fn string, which int32, h uintptr, offset int64, x transfer, write bool, then func(o *fileObject, st mpi.Status) error) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		pos, err := o.at(offset)
		if err != nil {
			return err
		}
		st, err := o.move(x, pos, write)
		if err != nil {
			return err
		}
		return then(o, st)
	})
}

// moveOn is a call that moves data at the individual pointer.
func moveOn(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st mpi.Status) error) int32 {
	return moveFrom(fn, which, h, x, write, then, func(o *fileObject) (int64, error) { return o.advance(x) })
}

// moveFrom is a call that moves data at a place that where gives.
func moveFrom(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st mpi.Status) error, where func(o *fileObject) (int64, error)) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		pos, err := where(o)
		if err != nil {
			return err
		}
		st, err := o.move(x, pos, write)
		if err != nil {
			return err
		}
		return then(o, st)
	})
}

// What a call does with the status: it stores it, makes a request of an operation
// that is complete, or keeps it for the other half of a split operation.

func storing(p uintptr) func(*fileObject, mpi.Status) error {
	return func(_ *fileObject, st mpi.Status) error {
		putStatus(p, &st)
		return nil
	}
}

func requesting(p uintptr) func(*fileObject, mpi.Status) error {
	return func(o *fileObject, st mpi.Status) error {
		q, err := mpi.GrequestStart(mpi.Generalized{Query: func(s *mpi.Status) error {
			*s = st
			return nil
		}})
		if err != nil {
			return err
		}
		if err := q.Complete(); err != nil {
			return err
		}
		return newRequest(&o.object, q, p)
	}
}

func splitting(o *fileObject, st mpi.Status) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.split != nil {
		return fmt.Errorf("%w: another split operation on the file has not ended", mpi.ErrArg)
	}
	o.split = &st
	return nil
}

// endSplit is the other half of a split operation.
func endSplit(fn string, h, status uintptr) int32 {
	return onFile(fn, 0, h, func(o *fileObject) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.split == nil {
			return fmt.Errorf("%w: no split operation has begun", mpi.ErrArg)
		}
		putStatus(status, o.split)
		o.split = nil
		return nil
	})
}
