//go:build cgo && !386 && !arm

package main

import "C"

import (
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/engine/file"
	"github.com/openimpi/impi/internal/engine/proc"
)

// fileObject is the handle of a file.
type fileObject struct {
	object
	*file.File
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
		o := &fileObject{object: object{sort: "File"}}
		o.handler.Store(noFile.handler.Load())
		n, err := text("filename", name, 1<<16)
		if err != nil {
			return err
		}
		i, err := infoOf(info)
		if err != nil {
			return err
		}
		if o.File, err = file.Open((*proc.Comm)(parent.Comm), n, int(amode), (*proc.Info)(i)); err != nil {
			return err
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
			err := o.Close()
			files.Free(*h)
			*h = fileNull
			return err
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
		return file.Delete(n)
	})
}

//export abiFileSetSize
func abiFileSetSize(h uintptr, size int64) int32 {
	return onFile("File_set_size", 0, h, func(o *fileObject) error { return o.SetSize(size) })
}

//export abiFilePreallocate
func abiFilePreallocate(h uintptr, size int64) int32 {
	return onFile("File_preallocate", 0, h, func(o *fileObject) error { return o.Preallocate(size) })
}

//export abiFileGetSize
func abiFileGetSize(h, out uintptr) int32 {
	return onFile("File_get_size", 0, h, func(o *fileObject) error {
		n, err := o.Size()
		if err != nil {
			return err
		}
		return put("size", out, n)
	})
}

//export abiFileSync
func abiFileSync(h uintptr) int32 {
	return onFile("File_sync", 0, h, func(o *fileObject) error { return o.Sync() })
}

//export abiFileGetGroup
func abiFileGetGroup(h, out uintptr) int32 {
	return onFile("File_get_group", 0, h, func(o *fileObject) error {
		g, err := o.Group()
		if err != nil {
			return err
		}
		return put("group", out, newGroup((*mpi.Group)(g), nil))
	})
}

//export abiFileGetAmode
func abiFileGetAmode(h, out uintptr) int32 {
	return onFile("File_get_amode", 0, h, func(o *fileObject) error { return put("amode", out, int32(o.Mode())) })
}

//export abiFileSetInfo
func abiFileSetInfo(h, info uintptr) int32 {
	return onFile("File_set_info", 0, h, func(o *fileObject) error {
		i, err := takeInfo(info)
		if err != nil {
			return err
		}
		return o.SetInfo((*proc.Info)(i))
	})
}

//export abiFileGetInfo
func abiFileGetInfo(h, out uintptr) int32 {
	return onFile("File_get_info", 0, h, func(o *fileObject) error {
		return putInfo(out, func() (*mpi.Info, error) {
			i, err := o.Info()
			return (*mpi.Info)(i), err
		})
	})
}

//export abiFileSetAtomicity
func abiFileSetAtomicity(h uintptr, flag int32) int32 {
	return onFile("File_set_atomicity", 0, h, func(o *fileObject) error { return o.SetAtomicity(flag != 0) })
}

//export abiFileGetAtomicity
func abiFileGetAtomicity(h, flag uintptr) int32 {
	return onFile("File_get_atomicity", 0, h, func(o *fileObject) error { return putFlag("flag", flag, o.Atomicity()) })
}

//export abiFileGetTypeExtent
func abiFileGetTypeExtent(h, t, out uintptr, which int32) int32 {
	return onFile("File_get_type_extent", which, h, func(o *fileObject) error {
		dt, err := takeType("datatype", t)
		if err != nil {
			return err
		}
		n, err := o.Extent(dt)
		if err != nil {
			return err
		}
		return put("extent", out, n)
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

// buffer is what is moved as a Buffer.
func (x transfer) buffer() (proc.Buffer, error) {
	b, err := buffer(x.buf, x.count, x.t)
	return proc.Buffer(b), err
}
