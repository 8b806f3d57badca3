package file

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// Where Seek and SeekShared count from, and the displacement of a view that stands for where the
// shared pointer is, with the values of the MPI ABI.
const (
	SeekCur             = 401
	SeekEnd             = 402
	SeekSet             = 403
	DisplacementCurrent = -1
)

// bytesType is what a file consists of.
var bytesType = datatype.Basic(datatype.Byte)

// View is how a member sees a file: from byte Displacement on, items of Filetype one after the
// other, which are made of Etypes, in the representation Datarep.
type View struct {
	Displacement    int64
	Etype, Filetype *proc.Datatype
	Datarep         string // native, internal or external32
}

// SetView gives each member its view, and sets all pointers to its beginning. bad is why the
// caller has none: then nobody gets one.
func (f *File) SetView(v View, bad error) error {
	if v.Displacement == DisplacementCurrent && f.mode&ModeSequential != 0 {
		var err error
		if v.Displacement, err = f.current(); err != nil {
			return err
		}
	}
	if bad == nil {
		bad = f.setView(v)
	}
	if err := f.Agree(bad); err != nil {
		return err
	}
	return f.shared.drop()
}

// current returns the byte of the file at the shared pointer. All members call it.
func (f *File) current() (int64, error) {
	if err := f.Agree(nil); err != nil { // they do not move it any more
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
	lain, err := filed(r, v.Etype)
	if err != nil {
		return err
	}
	tile, err := filed(r, v.Filetype)
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
	f.view, f.disp, f.etype, f.ftype, f.pos, f.datarep = view, v.Displacement, e, t, 0, v.Datarep
	return nil
}

// View gives the member's view; derived datatypes are the caller's to free.
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

// Seek moves the individual pointer and gives where it is then, in etypes.
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

// target is where a seek goes to from now, in bytes of data.
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

// Position is where the individual pointer is, in etypes.
func (f *File) Position() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pos / f.view.Unit()
}

// ByteOffset is where in the file the etype lies that is offset etypes from the beginning of the view.
func (f *File) ByteOffset(offset int64) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.view.At(offset)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", proc.ErrArg, err)
	}
	return at, nil
}
