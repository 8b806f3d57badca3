package file

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// The access modes of a file (MPI-4.1, 14.2.1), with the values of the MPI ABI. Exactly one of
// ModeReadOnly, ModeWriteOnly and ModeReadWrite is set.
const (
	ModeAppend        = 1 // all pointers begin at the end of the file
	ModeCreate        = 2
	ModeDeleteOnClose = 4
	ModeExclusive     = 8 // with ModeCreate: the file must not exist
	ModeReadOnly      = 16
	ModeReadWrite     = 32
	ModeSequential    = 64 // only the shared pointer is used
	ModeWriteOnly     = 256
)

// File is a file that all members of a communicator have opened. Each reads and writes it by its
// own system calls, so that they need a file system that all of them see. Errors are returned and
// no handler is told of them; they have the classes of files (MPI-4.1, 14.8), and those of the
// communication between the members. Methods that all members call fail for all of them.
//
// A File may be used by several goroutines.
type File struct {
	comm *proc.Comm // a duplicate of the program's, for the messages of f
	file *os.File
	name string
	mode int
	info *proc.Info

	mu           sync.Mutex
	view         *fileview.View
	datarep      string // of the view; empty means native
	in           rep    // what it is
	disp         int64
	etype, ftype *proc.Datatype // nil: bytes
	pos          int64          // of the individual pointer, in bytes of data
	atomic       bool
	closed       bool
	split        *proc.Status // of the split operation that has begun, between its two halves

	shared sharedPointer
}

// Open opens a file for all members of parent, or for none if one of them cannot. A nil info has no
// hints.
func Open(parent *proc.Comm, name string, mode int, info *proc.Info) (*File, error) {
	f := &File{name: name, mode: mode, view: fileview.Bytes(), in: rep{is: inMemory}}
	var err error
	if f.comm, err = construct.Dup(parent, nil); err != nil {
		return nil, err
	}
	if info == nil {
		info = proc.NewInfo()
	}
	f.info, err = info.Dup()
	f.shared.path, f.shared.info = name, f.info
	if err := f.open(err); err != nil {
		if f.file != nil {
			_ = f.file.Close() // the error is that of the members
		}
		return nil, errors.Join(err, construct.Free(f.comm))
	}
	return f, nil
}

// flags returns the flags of open(2) for access modes.
func flags(mode int) (int, error) {
	var f int
	switch mode & (ModeReadOnly | ModeReadWrite | ModeWriteOnly) {
	case ModeReadOnly:
		f = os.O_RDONLY
	case ModeReadWrite:
		f = os.O_RDWR
	case ModeWriteOnly:
		f = os.O_WRONLY
	default:
		return 0, fault(mpierr.Amode, "amode %#x: one of MPI_MODE_RDONLY, _RDWR and _WRONLY has to be given", mode)
	}
	if mode&ModeReadOnly != 0 && mode&(ModeCreate|ModeExclusive) != 0 || mode&ModeReadWrite != 0 && mode&ModeSequential != 0 {
		return 0, fault(mpierr.Amode, "amode %#x has modes that exclude each other", mode)
	}
	return f, nil
}

// open opens the file. Rank 0 opens it first, and creates it if needed. bad is why this member
// cannot open it.
func (f *File) open(bad error) error {
	how, err := flags(f.mode)
	err = errors.Join(bad, err)
	made := how
	if f.mode&ModeCreate != 0 {
		made |= os.O_CREATE
	}
	if f.mode&ModeExclusive != 0 {
		made |= os.O_EXCL
	}
	first := []int64{0, 0, 0} // the class of the first member's error, the file's id, where pointers begin
	if f.comm.Rank() == 0 {
		if err == nil {
			err = f.openAs(made)
		}
		id, bad := newID()
		err = errors.Join(err, bad)
		first[0], first[1] = int64(proc.ErrorClass(err)), id
		if err == nil && f.mode&ModeAppend != 0 {
			first[2], _ = f.Size() // if it fails, the others learn of an empty file
		}
	}
	if bad := collective.Bcast(f.comm, first, 0); bad != nil {
		return bad
	}
	f.shared.id, f.shared.start, f.pos = first[1], first[2], first[2]
	if first[0] != int64(mpierr.Success) {
		if err == nil {
			err = fault(proc.Class(first[0]), "rank 0 could not open %s", f.name)
		}
		return err
	}
	if f.comm.Rank() != 0 && err == nil {
		err = f.openAs(how)
	}
	return f.Agree(err)
}

func (f *File) openAs(flag int) (err error) {
	f.file, err = os.OpenFile(f.name, flag, 0o666)
	return ofSystem(err)
}

// Close closes the file for all members. It cannot be used afterwards, whatever the error is.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	err := f.Agree(ofSystem(f.file.Close()))
	err = errors.Join(err, f.shared.drop())
	if f.mode&ModeDeleteOnClose != 0 {
		err = errors.Join(err, f.atRoot(func() error { return Delete(f.name) }))
	}
	return errors.Join(err, construct.Free(f.comm))
}

// Delete deletes a file by its name.
func Delete(name string) error { return ofSystem(os.Remove(name)) }

// Size returns the size of the file in bytes.
func (f *File) Size() (int64, error) {
	i, err := f.file.Stat()
	if err != nil {
		return 0, ofSystem(err)
	}
	return i.Size(), nil
}

// SetSize cuts the file off, or makes it longer.
func (f *File) SetSize(size int64) error {
	return f.atRoot(func() error {
		if size < 0 {
			return fmt.Errorf("%w: size is %d", proc.ErrArg, size)
		}
		return ofSystem(f.file.Truncate(size))
	})
}

// Preallocate makes the file at least size bytes long.
func (f *File) Preallocate(size int64) error {
	return f.atRoot(func() error {
		now, err := f.Size()
		switch {
		case err != nil:
			return err
		case size < 0:
			return fmt.Errorf("%w: size is %d", proc.ErrArg, size)
		case size > now:
			return ofSystem(f.file.Truncate(size))
		}
		return nil
	})
}

// Sync makes what was written reach the storage, for all members (MPI-4.1, 14.6).
func (f *File) Sync() error {
	if f.mode&ModeReadOnly != 0 {
		return f.Agree(nil)
	}
	return f.Agree(ofSystem(f.file.Sync()))
}

// Group returns the group of the members.
func (f *File) Group() (*proc.Group, error) { return f.comm.Group() }

// Mode returns the access modes.
func (f *File) Mode() int { return f.mode }

// SetInfo sets hints; hints that i does not have stay as they are.
func (f *File) SetInfo(i *proc.Info) error {
	n, err := i.Len()
	for k := 0; k < n && err == nil; k++ {
		var key, value string
		if key, err = i.Key(k); err == nil {
			value, _, err = i.Get(key)
		}
		if err == nil {
			err = f.info.Set(key, value)
		}
	}
	return err
}

// Info returns a copy of the hints.
func (f *File) Info() (*proc.Info, error) { return f.info.Dup() }

// SetAtomicity says whether conflicting operations of several members are executed one after the
// other (MPI-4.1, 14.6).
func (f *File) SetAtomicity(on bool) error {
	f.mu.Lock()
	f.atomic = on
	f.mu.Unlock()
	return f.Agree(nil)
}

// Atomicity returns what SetAtomicity has set.
func (f *File) Atomicity() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.atomic
}

// Extent returns how many bytes apart items of t are in the file.
func (f *File) Extent(t *proc.Datatype) (int64, error) {
	t, err := f.rep().filed(t)
	if err != nil {
		return 0, err
	}
	return t.Extent(), nil
}

// Agree returns an error if any member has one: err itself, or an error of another member's class.
// All members call it.
func (f *File) Agree(err error) error {
	mine, all := []int32{int32(proc.ErrorClass(err))}, []int32{0}
	if bad := collective.Allreduce(f.comm, mine, all, datatype.Max); bad != nil {
		return bad
	}
	if err == nil && all[0] != int32(mpierr.Success) {
		return fault(proc.Class(all[0]), "another member could not do it")
	}
	return err
}

// atRoot calls do at rank 0, and returns its error to all members.
func (f *File) atRoot(do func() error) error {
	var err error
	if f.comm.Rank() == 0 {
		err = do()
	}
	return f.Agree(err)
}

// kept returns a duplicate of a datatype, since the program may free t.
func kept(t *proc.Datatype) (*proc.Datatype, error) {
	if t.Named() {
		return t, nil
	}
	return object.TypeDup(t)
}
