//go:build cgo && !386 && !arm

package main

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

// openFile stores the handle of a file that is opened.
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

// closeFile closes the file at p.
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

// onFileOrNone is a call about the error handler of a file, or of calls that have none.
func onFileOrNone(fn string, h uintptr, f func(o *object) error) int32 {
	if h == fileNull {
		return withoutFile(fn, func() error { return f(noFile) })
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

// given is takeInfo as the engine has it.
func given(h uintptr) (*proc.Info, error) {
	i, err := takeInfo(h)
	return (*proc.Info)(i), err
}

// setView sets a view; the others wait for this member even if there is none.
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

// moveAt is a call that moves data at an offset.
func moveAt(fn string, which int32, h uintptr, offset int64, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return move(fn, which, h, x, then, func(f *file.File, b proc.Buffer) (proc.Status, error) { return f.MoveAt(offset, b, write) })
}

// moveOn is a call that moves data at the individual pointer.
func moveOn(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return move(fn, which, h, x, then, func(f *file.File, b proc.Buffer) (proc.Status, error) { return f.MoveOn(b, write) })
}

// moveTogether is a call that moves data at the shared pointer.
func moveTogether(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return move(fn, which, h, x, then, func(f *file.File, b proc.Buffer) (proc.Status, error) { return f.MoveShared(b, write) })
}

// moveOrdered is moveTogether of all members, one behind the other by rank.
func moveOrdered(fn string, which int32, h uintptr, x transfer, write bool, then func(o *fileObject, st proc.Status) error) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		b, err := x.buffer()
		if err != nil {
			return o.Agree(err) // the others wait for this one
		}
		st, err := o.MoveOrdered(b, write)
		if err != nil {
			return err
		}
		return then(o, st)
	})
}

func move(fn string, which int32, h uintptr, x transfer, then func(o *fileObject, st proc.Status) error, how func(f *file.File, b proc.Buffer) (proc.Status, error)) int32 {
	return onFile(fn, which, h, func(o *fileObject) error {
		b, err := x.buffer()
		if err != nil {
			return err
		}
		st, err := how(o.File, b)
		if err != nil {
			return err
		}
		return then(o, st)
	})
}

// What a call does with the status: it stores it, makes a request of an operation
// that is complete, or keeps it for the other half of a split operation.

func storing(p uintptr) func(*fileObject, proc.Status) error {
	return func(_ *fileObject, st proc.Status) error {
		putStatus(p, (*mpi.Status)(&st))
		return nil
	}
}

func requesting(p uintptr) func(*fileObject, proc.Status) error {
	return func(o *fileObject, st proc.Status) error {
		q, err := o.Begun(st, nil)
		if err != nil {
			return err
		}
		return newRequest(&o.object, mpi.Request(q), p)
	}
}

func splitting(o *fileObject, st proc.Status) error { return o.Split(st, nil) }

// endSplit is the other half of a split operation.
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
