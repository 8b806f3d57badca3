//go:build cgo && !386 && !arm

package main

import "C"

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/fileview"
)

// Access modes.
const (
	modeAppend        = 1
	modeCreate        = 2
	modeDeleteOnClose = 4
	modeExcl          = 8
	modeRdonly        = 16
	modeRdwr          = 32
	modeSequential    = 64
	modeWronly        = 256
)

// fileObject is a file that a communicator has opened.
type fileObject struct {
	object
	comm  *mpi.Comm // of its own
	file  *os.File
	name  string
	amode int32
	info  *mpi.Info

	mu           sync.Mutex
	view         *fileview.View
	datarep      string // of the view; empty: native
	disp         int64
	etype, ftype *mpi.Datatype // nil: bytes
	pos          int64         // of the individual pointer, in bytes of data
	atomic       bool
	split        *mpi.Status // of a split operation that has begun

	shared sharedPointer
}

var files = handles.NewTable[*fileObject](handles.File)

// noFile has the error handler of files that are opened, and of errors without a
// file. By default it returns.
var noFile = func() *object {
	o := &object{sort: "File", handle: fileNull}
	o.handler.Store(errorsReturn)
	return o
}()

// onFile is a call on a file.
func onFile(fn string, which int32, h uintptr, f func(o *fileObject) error) (code int32) {
	guard()
	p := files.Get(h)
	if p == nil {
		return fail(fn, which, noFile, bad(errFile, "fh", h, fileNull))
	}
	defer rescue(fn, which, &(*p).object, &code)
	if err := f(*p); err != nil {
		return fail(fn, which, &(*p).object, err)
	}
	return success
}

// withoutFile is a call about files that has none.
func withoutFile(fn string, f func() error) (code int32) {
	guard()
	defer rescue(fn, 0, noFile, &code)
	err := usable()
	if err == nil {
		err = f()
	}
	if err != nil {
		return fail(fn, 0, noFile, err)
	}
	return success
}

var errFile = &mpierr.Error{Code: mpierr.File, Class: mpierr.File, Text: "invalid file"}

// fault is an error of a class of MPI's that no Go package below knows.
func fault(class mpi.Class, format string, args ...any) error {
	return &mpierr.Error{Code: class, Class: class, Text: fmt.Sprintf(format, args...)}
}

// ofSystem gives the system's error its class.
func ofSystem(err error) error {
	class := mpierr.IO
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		class = mpierr.NoSuchFile
	case errors.Is(err, fs.ErrExist):
		class = mpierr.FileExists
	case errors.Is(err, syscall.EROFS):
		class = mpierr.ReadOnly
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EBADF):
		class = mpierr.Access
	case errors.Is(err, syscall.ENOSPC):
		class = mpierr.NoSpace
	case errors.Is(err, syscall.EDQUOT):
		class = mpierr.Quota
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ENOTDIR):
		class = mpierr.BadFile
	}
	return fault(class, "%v", err)
}

// agree gives an error of all members: the caller's own, or one of the class that
// another has.
func (o *fileObject) agree(err error) error {
	mine, all := []int32{int32(mpi.ErrorClass(err))}, []int32{0}
	if bad := mpi.Allreduce(o.comm, mine, all, mpi.Max); bad != nil {
		return bad
	}
	if err == nil && all[0] != success {
		return fault(mpi.Class(all[0]), "another member could not do it")
	}
	return err
}

// flags are those of open.
func flags(amode int32) (int, error) {
	var f int
	switch amode & (modeRdonly | modeRdwr | modeWronly) {
	case modeRdonly:
		f = os.O_RDONLY
	case modeRdwr:
		f = os.O_RDWR
	case modeWronly:
		f = os.O_WRONLY
	default:
		return 0, fault(mpierr.Amode, "amode %#x: one of MPI_MODE_RDONLY, _RDWR and _WRONLY has to be given", amode)
	}
	if amode&modeRdonly != 0 && amode&(modeCreate|modeExcl) != 0 || amode&modeRdwr != 0 && amode&modeSequential != 0 {
		return 0, fault(mpierr.Amode, "amode %#x has modes that exclude each other", amode)
	}
	return f, nil
}

// openFile opens the file: one member makes it, if it is to be made, before the others
// open it.
func (o *fileObject) openFile() error {
	f, err := flags(o.amode)
	if err != nil {
		return err // of all members
	}
	made := f
	if o.amode&modeCreate != 0 {
		made |= os.O_CREATE
	}
	if o.amode&modeExcl != 0 {
		made |= os.O_EXCL
	}
	if o.comm.Rank() == 0 {
		o.file, err = os.OpenFile(o.name, made, 0o666)
	}
	id, bad := newID()
	err = errors.Join(err, bad)
	first := []int64{int64(mpi.ErrorClass(ofSystem(err))), id, 0}
	if o.comm.Rank() == 0 && err == nil && o.amode&modeAppend != 0 {
		first[2], _ = o.size() // else the others are told of an empty file
	}
	if bad := mpi.Bcast(o.comm, first, 0); bad != nil {
		return bad
	}
	o.shared.id, o.shared.start, o.pos = first[1], first[2], first[2]
	if o.comm.Rank() != 0 && first[0] == success {
		o.file, err = os.OpenFile(o.name, f, 0o666)
	} else if o.comm.Rank() != 0 {
		return fault(mpi.Class(first[0]), "rank 0 could not open %s", o.name)
	}
	if first[0] != success {
		return ofSystem(err)
	}
	return o.agree(ofSystem(err))
}

//export abiFileOpen
func abiFileOpen(c, name uintptr, amode int32, info, out uintptr) (code int32) {
	return withoutFile("File_open", func() error {
		parent, err := takeComm("comm", c)
		if err != nil {
			return err
		}
		to, err := result[uintptr]("fh", out)
		if err != nil {
			return err
		}
		o := &fileObject{object: object{sort: "File"}, amode: amode, view: fileview.Bytes()}
		o.handler.Store(noFile.handler.Load())
		if o.name, err = text("filename", name, 1<<16); err != nil {
			return err
		}
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		if i == nil {
			i = mpi.NewInfo()
		}
		if o.info, err = i.Dup(); err != nil {
			return err
		}
		if o.comm, err = parent.Dup(); err != nil {
			return err
		}
		if err := o.openFile(); err != nil {
			if o.file != nil {
				_ = o.file.Close() // the error is another
			}
			return errors.Join(err, o.comm.Free())
		}
		o.handle = files.Add(o)
		*to = o.handle
		return nil
	})
}

//export abiFileClose
func abiFileClose(p uintptr) int32 {
	return onHandle("File_close", "fh", p, noFile, func(h *uintptr) int32 {
		return onFile("File_close", 0, *h, func(o *fileObject) error {
			err := o.agree(ofSystem(o.file.Close()))
			err = errors.Join(err, o.dropShared())
			if o.amode&modeDeleteOnClose != 0 && o.comm.Rank() == 0 {
				err = errors.Join(err, ofSystem(os.Remove(o.name)))
			}
			files.Free(*h)
			*h = fileNull
			return errors.Join(err, o.comm.Free())
		})
	})
}

//export abiFileDelete
func abiFileDelete(name, info uintptr) int32 {
	return withoutFile("File_delete", func() error {
		n, err := text("filename", name, 1<<16)
		if err != nil {
			return err
		}
		return ofSystem(os.Remove(n))
	})
}

// size is that of the file in bytes.
func (o *fileObject) size() (int64, error) {
	i, err := o.file.Stat()
	if err != nil {
		return 0, ofSystem(err)
	}
	return i.Size(), nil
}

// atRoot has one member do something for all.
func (o *fileObject) atRoot(f func() error) error {
	var err error
	if o.comm.Rank() == 0 {
		err = f()
	}
	return o.agree(err)
}

//export abiFileSetSize
func abiFileSetSize(h uintptr, size int64) int32 {
	return onFile("File_set_size", 0, h, func(o *fileObject) error {
		return o.atRoot(func() error {
			if size < 0 {
				return fmt.Errorf("%w: size is %d", mpi.ErrArg, size)
			}
			return ofSystem(o.file.Truncate(size))
		})
	})
}

//export abiFilePreallocate
func abiFilePreallocate(h uintptr, size int64) int32 {
	return onFile("File_preallocate", 0, h, func(o *fileObject) error {
		return o.atRoot(func() error {
			now, err := o.size()
			switch {
			case err != nil:
				return err
			case size < 0:
				return fmt.Errorf("%w: size is %d", mpi.ErrArg, size)
			case size > now:
				return ofSystem(o.file.Truncate(size))
			}
			return nil
		})
	})
}

//export abiFileGetSize
func abiFileGetSize(h, out uintptr) int32 {
	return onFile("File_get_size", 0, h, func(o *fileObject) error {
		n, err := o.size()
		if err != nil {
			return err
		}
		return put("size", out, n)
	})
}

//export abiFileSync
func abiFileSync(h uintptr) int32 {
	return onFile("File_sync", 0, h, func(o *fileObject) error {
		if o.amode&modeRdonly != 0 {
			return o.agree(nil)
		}
		return o.agree(ofSystem(o.file.Sync()))
	})
}

//export abiFileGetGroup
func abiFileGetGroup(h, out uintptr) int32 {
	return onFile("File_get_group", 0, h, func(o *fileObject) error {
		g, err := o.comm.Group()
		if err != nil {
			return err
		}
		return put("group", out, newGroup(g, nil))
	})
}

//export abiFileGetAmode
func abiFileGetAmode(h, out uintptr) int32 {
	return onFile("File_get_amode", 0, h, func(o *fileObject) error { return put("amode", out, o.amode) })
}

//export abiFileSetInfo
func abiFileSetInfo(h, info uintptr) int32 {
	return onFile("File_set_info", 0, h, func(o *fileObject) error {
		i, err := takeInfo(info)
		if err != nil {
			return err
		}
		n, err := i.Len()
		for k := 0; k < n && err == nil; k++ { // other hints stay
			var key, value string
			if key, err = i.Key(k); err == nil {
				value, _, err = i.Get(key)
			}
			if err == nil {
				err = o.info.Set(key, value)
			}
		}
		return err
	})
}

//export abiFileGetInfo
func abiFileGetInfo(h, out uintptr) int32 {
	return onFile("File_get_info", 0, h, func(o *fileObject) error { return putInfo(out, o.info.Dup) })
}

//export abiFileSetAtomicity
func abiFileSetAtomicity(h uintptr, flag int32) int32 {
	return onFile("File_set_atomicity", 0, h, func(o *fileObject) error {
		o.mu.Lock()
		o.atomic = flag != 0
		o.mu.Unlock()
		return o.agree(nil)
	})
}

//export abiFileGetAtomicity
func abiFileGetAtomicity(h, flag uintptr) int32 {
	return onFile("File_get_atomicity", 0, h, func(o *fileObject) error { return putFlag("flag", flag, o.atomic) })
}

//export abiFileGetTypeExtent
func abiFileGetTypeExtent(h, t, out uintptr, which int32) int32 {
	return onFile("File_get_type_extent", which, h, func(o *fileObject) error {
		dt, err := takeType("datatype", t)
		if err != nil {
			return err
		}
		if dt, err = filed(o.rep(), dt); err != nil {
			return err
		}
		return put("extent", out, dt.Extent())
	})
}

//export abiFileSetErrhandler
func abiFileSetErrhandler(h, e uintptr) int32 {
	if h == fileNull {
		return withoutFile("File_set_errhandler", func() error { return setErrhandler(noFile, e) })
	}
	return onFile("File_set_errhandler", 0, h, func(o *fileObject) error { return setErrhandler(&o.object, e) })
}

//export abiFileGetErrhandler
func abiFileGetErrhandler(h, out uintptr) int32 {
	if h == fileNull {
		return withoutFile("File_get_errhandler", func() error { return getErrhandler(noFile, out) })
	}
	return onFile("File_get_errhandler", 0, h, func(o *fileObject) error { return getErrhandler(&o.object, out) })
}

//export abiFileCallErrhandler
func abiFileCallErrhandler(h uintptr, code int32) int32 {
	return onFile("File_call_errhandler", 0, h, func(o *fileObject) error {
		fail("File_call_errhandler", 0, &o.object, mpi.NewError(mpi.Class(code)))
		return nil
	})
}

// transfer is what a call moves between memory and a file.
type transfer struct {
	buf   uintptr
	count int64
	t     uintptr
}

// memory gives the bytes of what is moved, as a file has them. Where they are not one run
// in memory they are a copy, and back puts the first n bytes of it where they belong.
func (x transfer) memory(r datatype.Representation, write bool) (mem []byte, back func(n int64), err error) {
	t, err := takeType("datatype", x.t)
	if err != nil {
		return nil, nil, err
	}
	b, err := buffer(x.buf, x.count, x.t)
	if err != nil {
		return nil, nil, err
	}
	if err := t.Check(); err != nil {
		return nil, nil, err
	}
	lo, hi, err := t.Span(b.Count())
	switch {
	case err != nil:
		return nil, nil, err
	case lo == hi:
		return nil, func(int64) {}, nil
	case x.buf == 0 && lo < firstAddress:
		return nil, nil, fmt.Errorf("%w: nil, for %d items of %v", mpi.ErrBuffer, x.count, t)
	}
	size := width(r, t) * x.count
	if at, ok := t.Run(b.Count()); ok && t.Identity(r) {
		mem, err = array[byte]("buf", x.buf+uintptr(at), int(size))
		return mem, func(int64) {}, err
	}
	touch(pointer(x.buf + uintptr(hi) - 1)) // before there is memory for as much
	mem = make([]byte, size)
	if write {
		t.Encode(r, mem, pointer(x.buf), b.Count(), 0)
	}
	return mem, func(n int64) { t.Decode(r, pointer(x.buf), b.Count(), 0, mem[:n], nil) }, nil
}

// move moves data at pos, in bytes of data of the view, and tells how many bytes.
func (o *fileObject) move(x transfer, pos int64, write bool) (mpi.Status, error) {
	st := empty
	o.mu.Lock()
	view, atomic, rep := o.view, o.atomic, o.repLocked()
	o.mu.Unlock()
	mem, back, err := x.memory(rep, write)
	if err != nil {
		return st, err
	}
	if atomic && len(mem) > 0 {
		unlock, err := o.lock(write)
		if err != nil {
			return st, err
		}
		defer unlock()
	}
	moved := int64(0)
	for at := range view.Extents(pos, int64(len(mem))) {
		var n int
		part := mem[moved : moved+at.Len]
		if write {
			n, err = o.file.WriteAt(part, at.Off)
		} else {
			n, err = o.file.ReadAt(part, at.Off)
		}
		moved += int64(n)
		if err != nil {
			break
		}
	}
	if !write {
		back(moved)
	}
	if errors.Is(err, io.EOF) {
		err = nil // there are fewer bytes
	}
	if bad := st.SetElements(namedTypes[typeByte], int(counted(rep, typeOf(x.t), moved))); bad != nil {
		return st, bad
	}
	return st, ofSystem(err)
}

// lock keeps other procs from the file, for an operation that is atomic.
func (o *fileObject) lock(write bool) (unlock func(), err error) {
	l := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	if write {
		l.Type = syscall.F_WRLCK
	}
	if err := syscall.FcntlFlock(o.file.Fd(), syscall.F_SETLKW, &l); err != nil {
		return nil, ofSystem(err)
	}
	return func() {
		l.Type = syscall.F_UNLCK
		_ = syscall.FcntlFlock(o.file.Fd(), syscall.F_SETLK, &l) // closing unlocks, too
	}, nil
}

// at gives the place of an explicit offset.
func (o *fileObject) at(offset int64) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pos, err := o.view.Position(offset)
	if err != nil {
		return 0, fmt.Errorf("%w: argument offset: %w", mpi.ErrArg, err)
	}
	return pos, nil
}

// advance moves the individual pointer over what an operation is going to move, and
// gives where it was.
func (o *fileObject) advance(x transfer) (int64, error) {
	t, err := takeType("datatype", x.t)
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	pos := o.pos
	if x.count > 0 {
		o.pos += width(o.repLocked(), t) * x.count
	}
	return pos, nil
}
