//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/abi"
	"github.com/openimpi/impi/internal/engine/tool"
)

const success = 0

var phase atomic.Int32

const (
	before  = iota // before MPI_Init
	during         // after MPI_Init or, with sessions alone, between the first and the last
	resting        // all sessions have ended and MPI_Init was not called
	finally        // after MPI_Finalize
)

// usable returns the error of calls before MPI_Init and after MPI_Finalize.
func usable() error {
	switch phase.Load() {
	case before, resting:
		return mpi.ErrNotInitialized
	case finally:
		return mpi.ErrFinalized
	}
	return nil
}

// onComm executes a call on a communicator: it calls f, and the communicator's handler with an
// error. fn is the function's name without MPI_, and which is 1 if it was called by the name that
// ends in _c.
func onComm(fn string, which int32, h uintptr, f func(c *commObject) error) (code int32) {
	c := commOf(h)
	guard()
	if c == nil {
		_, err := takeComm("comm", h)
		return fail(fn, which, nil, err)
	}
	defer rescue(fn, which, &c.object, &code)
	if err := f(c); err != nil {
		return fail(fn, which, &c.object, err)
	}
	return success
}

func onWin(fn string, which int32, h uintptr, f func(w *winObject) error) (code int32) {
	w := winOf(h)
	guard()
	if w == nil {
		return fail(fn, which, nil, badWin(h))
	}
	defer rescue(fn, which, &w.object, &code)
	if err := f(w); err != nil {
		return fail(fn, which, &w.object, err)
	}
	return success
}

// on executes a call without an object that has an error handler, between MPI_Init and
// MPI_Finalize.
func on(fn string, which int32, f func() error) (code int32) {
	guard()
	defer rescue(fn, which, nil, &code)
	err := usable()
	if err == nil {
		err = f()
	}
	if err != nil {
		return fail(fn, which, nil, err)
	}
	return success
}

// anytime is on for functions that can be called at any time.
func anytime(fn string, f func() error) (code int32) {
	guard()
	defer rescue(fn, 0, nil, &code)
	if err := f(); err != nil {
		return fail(fn, 0, nil, err)
	}
	return success
}

// onHandle executes a call on the handle at p, which is the argument name. If p is no address the
// handler of o is called.
func onHandle(fn, name string, p uintptr, o *object, f func(h *uintptr) int32) (code int32) {
	guard()
	defer rescue(fn, 0, o, &code)
	h, err := result[uintptr](name, p)
	if err != nil {
		return fail(fn, 0, o, err)
	}
	return f(h)
}

// rescue turns a panic of the library, or a fault in memory of the program, into an error for the
// handler of o. guard has to be called before.
func rescue(fn string, which int32, o *object, code *int32) {
	r := recover()
	if r == nil {
		return
	}
	if os.Getenv(tool.Traceback) != "" {
		debug.PrintStack()
	}
	err := fault(mpierr.Intern, "%v", r)
	if at, ok := r.(interface{ Addr() uintptr }); ok {
		err = fmt.Errorf("%w: there is no memory at %#x", mpi.ErrBuffer, at.Addr())
	}
	*code = fail(fn, which, o, err)
}

// guard makes memory faults panic, for rescue, instead of ending the process.
func guard() { debug.SetPanicOnFault(true) }

// fail calls the error handler of an object, or that of calls without one if o is nil, and returns
// the code that the call returns: that of the error, unless the handler has changed it.
func fail(fn string, which int32, o *object, err error) int32 {
	code := int32(mpi.ErrorCode(err))
	remember(code, describe(fn, which, err))
	h := handlerOf(o)
	switch h.action {
	case returns:
	case aborts:
		mpi.Abort(exitStatus(err), fatal(fn, which, o, err))
	case callsBack:
		var handle uintptr = commWorld
		if o != nil {
			handle = o.handle
		}
		return callErrhandler(h.fn, handle, code)
	}
	return code
}

// lastError is the last error of a class that a call has reported, and the thread that has called.
type lastError struct {
	thread uintptr
	text   string
}

var lastErrors [mpierr.Revoked + 1]atomic.Pointer[lastError]

// remember keeps the text of an error for MPI_Error_string, one for each class: codes are classes,
// so that programs can compare them.
func remember(code int32, text string) {
	if code > success && int(code) < len(lastErrors) {
		lastErrors[code].Store(&lastError{thread(), text})
	}
}

// lastText returns the text of the last error of a class if the calling thread has got it, else "".
func lastText(code int32) string {
	if code > success && int(code) < len(lastErrors) {
		if e := lastErrors[code].Load(); e != nil && e.thread == thread() {
			return e.text
		}
	}
	return ""
}

func handlerOf(o *object) *errhandler {
	if o == nil {
		if c := self.Load(); c != nil {
			if h := c.handler.Load(); h != nil {
				return h
			}
		}
		if c := world.Load(); c != nil {
			o = &c.object
		}
	}
	if o != nil {
		if h := o.handler.Load(); h != nil {
			return h
		}
		return errorsAreFatal
	}
	return afterwards
}

// exitStatus returns the class of an error, or MPI_ERR_OTHER if that does not fit into an exit
// status.
func exitStatus(err error) int {
	if class := mpi.ErrorClass(err); class > mpierr.Success && class.Valid() {
		return int(class)
	}
	return int(mpierr.Other)
}

// oldWide is the value of which for functions whose names end in _x: their counts are as wide as
// those of _c.
const oldWide = 2

// prefix matches what core/mpi puts before its errors: the name of a Go function.
var prefix = regexp.MustCompile(`^mpi\.[A-Za-z.]+: `)

var goName = regexp.MustCompile(`\bmpi\.([A-Z])`)

// describe returns the text of an error, with the name of the C function in place of Go's.
func describe(fn string, which int32, err error) string {
	suffix := [...]string{"", "_c", oldWide: "_x"}[which]
	text := goName.ReplaceAllString(prefix.ReplaceAllString(err.Error(), ""), "MPI_$1")
	return fmt.Sprintf("%s%s: %s: %s", named(fn), suffix, mpi.ErrorClass(err), text)
}

func named(fn string) string {
	if strings.HasPrefix(fn, extension) {
		return "MPI" + fn
	}
	return "MPI_" + fn
}

// extension begins the names of the functions of mpi-ext.h, behind "MPI".
const extension = "X_"

func fatal(fn string, which int32, o *object, err error) string {
	where := ""
	if o != nil {
		where = fmt.Sprintf(" (%s %#x)", o.sort, o.handle)
	}
	if mpi.ErrorClass(err).OfLoss() {
		where += "; with MPI_ERRORS_RETURN in the place of its error handler (MPI_Comm_set_errhandler) the program can go on without lost procs"
	}
	return describe(fn, which, err) + where
}

// abiUnsupported is what functions that are not implemented do.
//
//export abiUnsupported
func abiUnsupported(number, sort int32, h uintptr) (code int32) {
	fn := abi.Name(int(number))[len("MPI_"):]
	guard()
	defer rescue(fn, 0, nil, &code)
	var o *object
	switch {
	case sort == 1 && commOf(h) != nil:
		o = &commOf(h).object
	case sort == 2 && winOf(h) != nil:
		o = &winOf(h).object
	case sort == 3:
		o = noFile
		if p := files.Get(h); p != nil {
			o = &(*p).object
		}
	}
	err := usable()
	if err == nil {
		err = &mpierr.Error{
			Code: mpierr.UnsupportedOperation, Class: mpierr.UnsupportedOperation,
			Text: "this library does not implement it",
		}
	}
	return fail(fn, 0, o, err)
}

// fault returns an error of a class that has no sentinel.
func fault(class mpi.Class, format string, args ...any) error {
	return &mpierr.Error{Code: class, Class: class, Text: fmt.Sprintf(format, args...)}
}
