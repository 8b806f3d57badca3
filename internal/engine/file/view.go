package file

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// The meanings of the offset of Seek and SeekShared, and the displacement that stands for the
// position of the shared pointer in SetView (MPI-4.1, 14.3), with the values of the MPI ABI.
const (
	SeekCur             = 401
	SeekEnd             = 402
	SeekSet             = 403
	DisplacementCurrent = -1
)

var bytesType = datatype.Basic(datatype.Byte)

// View is the part of a file that a member sees (MPI-4.1, 14.3): from byte Displacement on, items
// of Filetype one after the other, which consist of Etypes, in the representation Datarep.
type View struct {
	Displacement    int64
	Etype, Filetype *proc.Datatype
	Datarep         string // native, internal, external32, or a registered one
}

// SetView sets each member's view, and sets all pointers to its beginning (MPI-4.1, 14.3). bad is
// why this member has no valid view: then no member's view changes.
func (f *File) SetView(v View, bad error) error {
	defer f.turns.enter()()
	if v.Displacement == DisplacementCurrent && f.mode&ModeSequential != 0 {
		var err error
		if v.Displacement, err = f.current(); err != nil {
			return err
		}
	}
	if bad == nil {
		bad = f.setView(v)
	}
	if err := f.agreeOnView(bad); err != nil {
		return err
	}
	return f.shared.drop()
}

// agreeOnView is agree, and finds out whether any member's view has gaps.
func (f *File) agreeOnView(err error) error {
	mine, all := []int32{int32(proc.ErrorClass(err)), 0}, []int32{0, 0}
	f.mu.Lock()
	if f.view.Gaps() {
		mine[1] = 1
	}
	f.mu.Unlock()
	if bad := collective.Allreduce(f.comm, mine, all, datatype.Max); bad != nil {
		return bad
	}
	f.disk.gaps.Store(all[1] != 0)
	return othersError(err, all[0])
}

// current returns the byte of the file that the shared pointer is at. All members call it.
func (f *File) current() (int64, error) {
	if err := f.agree(nil); err != nil { // after this no member moves the shared pointer
		return 0, err
	}
	pos, err := f.shared.move(0)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view.At(pos / f.view.Unit())
}

func (f *File) setView(v View) error {
	r, err := representation(v.Datarep)
	if err != nil {
		return err
	}
	if v.Displacement == DisplacementCurrent {
		return fault(mpierr.UnsupportedOperation, "MPI_DISPLACEMENT_CURRENT is for files that were opened with MPI_MODE_SEQUENTIAL")
	}
	if err := errors.Join(v.Etype.Check(), v.Filetype.Check()); err != nil {
		return err
	}
	lain, err := r.filed(v.Etype)
	if err != nil {
		return err
	}
	tile, err := r.filed(v.Filetype)
	if err != nil {
		return err
	}
	view, err := fileview.New(v.Displacement, lain, tile)
	switch {
	case errors.Is(err, fileview.ErrType):
		return fmt.Errorf("%w: %w", datatype.ErrType, err)
	case err != nil:
		return fmt.Errorf("%w: %w", proc.ErrArg, err)
	}
	e, err := kept(v.Etype)
	if err != nil {
		return err
	}
	t, err := kept(v.Filetype)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view, f.disp, f.etype, f.ftype, f.pos, f.datarep, f.in = view, v.Displacement, e, t, 0, v.Datarep, r
	return nil
}

// View returns the member's view (MPI-4.1, 14.3). The caller must free derived datatypes.
func (f *File) View() (v View, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v = View{Displacement: f.disp, Etype: bytesType, Filetype: bytesType, Datarep: "native"}
	if f.datarep != "" {
		v.Datarep = f.datarep
	}
	if f.etype == nil {
		return v, nil
	}
	if v.Etype, err = kept(f.etype); err == nil {
		v.Filetype, err = kept(f.ftype)
	}
	return v, err
}

// Seek moves the individual pointer and returns its new position, in etypes (MPI-4.1, 14.4.3).
func (f *File) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	now := f.pos
	f.mu.Unlock()
	to, err := f.target(offset, whence, now)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pos = to
	return to / f.view.Unit(), nil
}

// target returns the position that a seek leads to, in bytes of data; now is the position before.
func (f *File) target(offset int64, whence int, now int64) (int64, error) {
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	unit := f.view.Unit()
	if offset > (1<<62)/unit || offset < -(1<<62)/unit {
		return 0, fmt.Errorf("%w: offset is %d", proc.ErrArg, offset)
	}
	to := offset * unit
	switch whence {
	case SeekSet:
	case SeekCur:
		to += now
	case SeekEnd:
		to += f.view.Before(size)
	default:
		return 0, fmt.Errorf("%w: whence is %d", proc.ErrArg, whence)
	}
	if to < 0 {
		return 0, fmt.Errorf("%w: a place before the file", proc.ErrArg)
	}
	return to, nil
}

// Position returns the position of the individual pointer, in etypes (MPI-4.1, 14.4.3).
func (f *File) Position() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pos / f.view.Unit()
}

// ByteOffset returns the byte of the file where the etype at offset, counted in etypes from the
// beginning of the view, begins (MPI-4.1, 14.4.3).
func (f *File) ByteOffset(offset int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.view.At(offset)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", proc.ErrArg, err)
	}
	return at, nil
}
