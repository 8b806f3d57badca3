//go:build cgo && !386 && !arm

package main

import "C"

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/fileview"
)

// Where seeks count from, and the displacement that stands for the current place.
const (
	seekCur             = 401
	seekEnd             = 402
	seekSet             = 403
	displacementCurrent = -1
)

//export abiFileSetView
func abiFileSetView(h uintptr, disp int64, etype, ftype, rep, info uintptr) int32 {
	return onFile("File_set_view", 0, h, func(o *fileObject) error {
		if disp == displacementCurrent && o.amode&modeSequential != 0 {
			var err error
			if disp, err = o.current(); err != nil {
				return err
			}
		}
		if err := o.agree(o.setView(disp, etype, ftype, rep, info)); err != nil {
			return err
		}
		return o.dropShared()
	})
}

// current gives where in the file the shared pointer is, to all members.
func (o *fileObject) current() (int64, error) {
	if err := o.agree(nil); err != nil { // they do not move it any more
		return 0, err
	}
	pos, err := o.moveShared(0)
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.view.At(pos / o.view.Unit())
}

func (o *fileObject) setView(disp int64, etype, ftype, rep, info uintptr) error {
	e, err := takeType("etype", etype)
	if err != nil {
		return err
	}
	f, err := takeType("filetype", ftype)
	if err != nil {
		return err
	}
	name, err := text("datarep", rep, 128)
	if err != nil {
		return err
	}
	r, err := representation(name)
	if err != nil {
		return err
	}
	if _, err := infoOf(info); err != nil {
		return err
	}
	if disp == displacementCurrent {
		return fault(mpierr.UnsupportedOperation, "MPI_DISPLACEMENT_CURRENT is for files that were opened with MPI_MODE_SEQUENTIAL")
	}
	if err := errors.Join(e.Check(), f.Check()); err != nil {
		return err
	}
	lain, err := filed(r, e)
	if err != nil {
		return err
	}
	tile, err := filed(r, f)
	if err != nil {
		return err
	}
	v, err := fileview.New(disp, lain, tile)
	switch {
	case errors.Is(err, fileview.ErrType):
		return fmt.Errorf("%w: %w", datatype.ErrType, err)
	case err != nil:
		return fmt.Errorf("%w: %w", mpi.ErrArg, err)
	}
	if e, err = kept(e); err != nil {
		return err
	}
	if f, err = kept(f); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.view, o.disp, o.etype, o.ftype, o.pos, o.datarep = v, disp, e, f, 0, name
	return nil
}

// kept is a datatype that the program may free.
func kept(t *mpi.Datatype) (*mpi.Datatype, error) {
	if t.Named() {
		return t, nil
	}
	return mpi.TypeDup(t)
}

//export abiFileGetView
func abiFileGetView(h, disp, etype, ftype, rep uintptr) int32 {
	return onFile("File_get_view", 0, h, func(o *fileObject) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if err := put("disp", disp, o.disp); err != nil {
			return err
		}
		for _, x := range []struct {
			p uintptr
			t *mpi.Datatype
		}{{etype, o.etype}, {ftype, o.ftype}} {
			t := x.t
			if t == nil {
				t = namedTypes[typeByte]
			}
			t, err := kept(t)
			if err != nil {
				return err
			}
			if err := put("etype or filetype", x.p, newType(t)); err != nil {
				return err
			}
		}
		name := o.datarep
		if name == "" {
			name = "native"
		}
		_, err := putText("datarep", rep, 128, name)
		return err
	})
}

//export abiFileSeek
func abiFileSeek(h uintptr, offset int64, whence int32) int32 {
	return onFile("File_seek", 0, h, func(o *fileObject) error {
		o.mu.Lock()
		now := o.pos
		o.mu.Unlock()
		to, err := o.target(offset, whence, now)
		if err != nil {
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.pos = to
		return nil
	})
}

// target is where a seek goes to from now, in bytes of data.
func (o *fileObject) target(offset int64, whence int32, now int64) (int64, error) {
	size, err := o.size()
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	unit := o.view.Unit()
	if offset > (1<<62)/unit || offset < -(1<<62)/unit {
		return 0, fmt.Errorf("%w: offset is %d", mpi.ErrArg, offset)
	}
	to := offset * unit
	switch whence {
	case seekSet:
	case seekCur:
		to += now
	case seekEnd:
		to += o.view.Before(size)
	default:
		return 0, fmt.Errorf("%w: whence is %d", mpi.ErrArg, whence)
	}
	if to < 0 {
		return 0, fmt.Errorf("%w: a place before the file", mpi.ErrArg)
	}
	return to, nil
}

//export abiFileGetPosition
func abiFileGetPosition(h, out uintptr) int32 {
	return onFile("File_get_position", 0, h, func(o *fileObject) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		return put("offset", out, o.pos/o.view.Unit())
	})
}

//export abiFileGetByteOffset
func abiFileGetByteOffset(h uintptr, offset int64, out uintptr) int32 {
	return onFile("File_get_byte_offset", 0, h, func(o *fileObject) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		at, err := o.view.At(offset)
		if err != nil {
			return fmt.Errorf("%w: %w", mpi.ErrArg, err)
		}
		return put("disp", out, at)
	})
}
