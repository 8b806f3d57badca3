//go:build cgo && !386 && !arm

package main

import (
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/engine/file"
	"github.com/openimpi/impi/internal/engine/proc"
)

type fileObject struct {
	object
	*file.File
}

var files = handles.NewTable[*fileObject](handles.File)

// noFile has the error handler of errors without a file, which files that are opened start with
// (MPI-4.1, 14.7). By default it returns errors.
var noFile = func() *object {
	o := &object{sort: "File", handle: fileNull}
	o.handler.Store(errorsReturn)
	return o
}()

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

// withoutFile executes a call about files that is not on one.
func withoutFile(fn string, which int32, f func() error) (code int32) {
	guard()
	defer rescue(fn, which, noFile, &code)
	err := usable()
	if err == nil {
		err = f()
	}
	if err != nil {
		return fail(fn, which, noFile, err)
	}
	return success
}

var errFile = &mpierr.Error{Code: mpierr.File, Class: mpierr.File, Text: "invalid file"}

func openFile(c, name uintptr, amode int32, info, out uintptr) error {
	parent, err := takeComm("comm", c)
	if err != nil {
		return err
	}
	to, err := result[uintptr]("fh", out)
	if err != nil {
		return err
	}
	n, err := text("filename", name, maxText)
	if err != nil {
		return err
	}
	i, err := infoOf(info)
	if err != nil {
		return err
	}
	o := &fileObject{object: object{sort: "File"}}
	o.handler.Store(noFile.handler.Load())
	if o.File, err = file.Open((*proc.Comm)(parent.Comm), n, int(amode), (*proc.Info)(i)); err != nil {
		return err
	}
	o.handle = files.Add(o)
	*to = o.handle
	return nil
}

func closeFile(fn string, p uintptr) int32 {
	return onHandle(fn, "fh", p, noFile, func(h *uintptr) int32 {
		return onFile(fn, 0, *h, func(o *fileObject) error {
			err := o.Close()
			files.Free(*h)
			*h = fileNull
			return err
		})
	})
}

func deleteFile(name uintptr) error {
	n, err := text("filename", name, maxText)
	if err != nil {
		return err
	}
	return file.Delete(n)
}

// registerDatarep registers a data representation with functions of C, of which those that convert
// may be null.
func registerDatarep(name, read, write, extent, extra uintptr, which int32) error {
	n, err := text("datarep", name, maxDatarep)
	if err != nil {
		return err
	}
	if extent < firstAddress {
		return missing("dtype_file_extent_fn", extent)
	}
	d := file.Datarep{Name: n, Extent: func(t *mpi.Datatype) (int64, error) { return callExtent(extent, extra, t) }}
	if read >= firstAddress {
		d.Read = func(c file.Conversion) error { return callConversion(read, extra, which, &c) }
	}
	if write >= firstAddress {
		d.Write = func(c file.Conversion) error { return callConversion(write, extra, which, &c) }
	}
	return file.Register(d)
}

// onFileOrNone executes a call about the error handler of a file, or with MPI_FILE_NULL about that
// of errors without a file.
func onFileOrNone(fn string, h uintptr, f func(o *object) error) int32 {
	if h == fileNull {
		return withoutFile(fn, 0, func() error { return f(noFile) })
	}
	return onFile(fn, 0, h, func(o *fileObject) error { return f(&o.object) })
}

func (o *fileObject) group() (*mpi.Group, error) {
	g, err := o.Group()
	return (*mpi.Group)(g), err
}

func (o *fileObject) getInfo() (*mpi.Info, error) {
	i, err := o.Info()
	return (*mpi.Info)(i), err
}

// given is takeInfo for the engine's type.
func given(h uintptr) (*proc.Info, error) {
	i, err := takeInfo(h)
	return (*proc.Info)(i), err
}

// setView sets a view; a member with a wrong argument takes part too, since the others wait for it.
func (o *fileObject) setView(disp int64, etype, filetype, rep, info uintptr) error {
	v, err := viewOf(disp, etype, filetype, rep, info)
	return o.SetView(v, err)
}

func viewOf(disp int64, etype, ftype, rep, info uintptr) (v file.View, err error) {
	v.Displacement = disp
	if v.Etype, err = takeType("etype", etype); err != nil {
		return v, err
	}
	if v.Filetype, err = takeType("filetype", ftype); err != nil {
		return v, err
	}
	if v.Datarep, err = text("datarep", rep, maxDatarep); err != nil {
		return v, err
	}
	_, err = infoOf(info)
	return v, err
}

func (o *fileObject) view() (disp int64, etype, filetype *mpi.Datatype, rep string, err error) {
	v, err := o.View()
	return v.Displacement, v.Etype, v.Filetype, v.Datarep, err
}

type transfer struct {
	buf   uintptr
	count int64
	t     uintptr
}

func (x transfer) buffer() (proc.Buffer, error) {
	b, err := buffer(x.buf, x.count, x.t)
	return proc.Buffer(b), err
}

func moveFile(fn string, which int32, h uintptr, a file.Access, x transfer, status uintptr) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		b, bad := x.buffer()
		st, err := o.Move(a, b, bad)
		if err != nil {
			return err
		}
		putStatus(status, (*mpi.Status)(&st))
		return nil
	})
}

func beginFile(fn string, which int32, h uintptr, a file.Access, x transfer, request uintptr) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		b, bad := x.buffer()
		q, err := o.Begin(a, b, bad)
		if err != nil {
			return err
		}
		return newRequest(&o.object, mpi.Request(q), request)
	})
}

func splitFile(fn string, which int32, h uintptr, a file.Access, x transfer) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		b, bad := x.buffer()
		return o.Split(a, b, bad)
	})
}

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
