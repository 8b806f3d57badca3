package file

import (
	"runtime"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The data of a file are as in memory, or in the representation of its view (MPI-4.1, 14.5). Items
// follow each other without the gaps of the datatype, and without padding in pairs.

const external32 = "external32"

var inMemory = func() datatype.Representation {
	if runtime.GOARCH == "amd64" {
		return datatype.NativeX86
	}
	return datatype.HostOrder()
}()

// rep is how data are in a file: in one of MPI's representations or, if own is set, in one that the
// program has registered.
type rep struct {
	is  datatype.Representation
	own *Datarep
}

func representation(name string) (rep, error) {
	switch name {
	case "native", "internal":
		return rep{is: inMemory}, nil
	case external32:
		return rep{is: datatype.External32}, nil
	}
	if d := datarepOf(name); d != nil {
		return rep{is: inMemory, own: d}, nil
	}
	return rep{}, fault(mpierr.UnsupportedDatarep, "data representation %q: native, internal and external32 are known, and those that the program has registered", name)
}

func (f *File) rep() rep {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.in
}

func (r rep) width(t *proc.Datatype) (int64, error) {
	switch {
	case r.own != nil:
		x, err := r.own.measure(t)
		return x.bytes, err
	case r.is == datatype.External32:
		return t.Packed(r.is), nil
	}
	return t.Size(), nil
}

// filed returns a datatype whose layout in memory is the layout that t has in a file.
func (r rep) filed(t *proc.Datatype) (*proc.Datatype, error) {
	w, err := r.width(t)
	switch {
	case err != nil:
		return nil, err
	case w == t.Size():
		return t, nil
	case t.Named():
		bytes, err := datatype.Contiguous(w, bytesType)
		if err == nil {
			err = bytes.Commit()
		}
		return bytes, err
	}
	return nil, fault(mpierr.UnsupportedDatarep, "a view of items of %v, whose parts have other sizes in a file than in memory", t)
}

// counted returns the number of bytes that a status has for n bytes of a file that are items of t:
// there pairs have their padding.
func (r rep) counted(t *proc.Datatype, n int64) (int64, error) {
	if r.own != nil {
		fit, err := r.own.within(t, n)
		return fit.memory, err
	}
	own := t.Packed(datatype.Native)
	w, err := r.width(t)
	if err != nil || w == own || w == 0 {
		return n, err
	}
	return n/w*own + n%w*own/w, nil
}
