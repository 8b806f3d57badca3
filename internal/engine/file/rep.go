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

// inMemory is the representation of this machine's memory.
var inMemory = func() datatype.Representation {
	if runtime.GOARCH == "amd64" {
		return datatype.NativeX86
	}
	return datatype.HostOrder()
}()

// representation returns the representation that a view's datarep names.
func representation(name string) (datatype.Representation, error) {
	switch name {
	case "native", "internal":
		return inMemory, nil
	case external32:
		return datatype.External32, nil
	}
	return 0, fault(mpierr.UnsupportedDatarep, "data representation %q: native, internal and external32 are known", name)
}

// rep returns the representation of the file's view.
func (f *File) rep() datatype.Representation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.repLocked()
}

func (f *File) repLocked() datatype.Representation {
	if f.datarep == external32 {
		return datatype.External32
	}
	return inMemory
}

// width returns how many bytes of a file an item of t takes.
func width(r datatype.Representation, t *proc.Datatype) int64 {
	if r == datatype.External32 {
		return t.Packed(r)
	}
	return t.Size()
}

// filed returns a datatype whose layout in memory is the layout that t has in a file.
func filed(r datatype.Representation, t *proc.Datatype) (*proc.Datatype, error) {
	switch {
	case width(r, t) == t.Size():
		return t, nil
	case t.Named():
		bytes, err := datatype.Contiguous(width(r, t), bytesType)
		if err == nil {
			err = bytes.Commit()
		}
		return bytes, err
	}
	return nil, fault(mpierr.UnsupportedDatarep, "a view of items of %v, whose parts have other sizes in %v than in memory", t, r)
}

// counted returns the number of bytes that a status has for n bytes of a file that are items of t:
// there pairs have their padding.
func counted(r datatype.Representation, t *proc.Datatype, n int64) int64 {
	w, own := width(r, t), t.Packed(datatype.Native)
	if w == own || w == 0 {
		return n
	}
	return n/w*own + n%w*own/w
}
