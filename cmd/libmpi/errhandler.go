//go:build cgo && !386 && !arm

package main

import "C"

import (
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/mpi"
)

// errhandler says what an error of a call does.
type errhandler struct {
	action action
	sort   string // of objects that a user's is for
	fn     uintptr

	mu     sync.Mutex
	handle uintptr // 0: the program has none
	holds  int     // of the program's; objects keep the handler without any
}

// hold gives the program a handle once more.
func (e *errhandler) hold() uintptr {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.holds++; e.handle == 0 {
		e.handle = errhandlers.Add(e)
	}
	return e.handle
}

// release is the inverse of hold.
func (e *errhandler) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.holds--; e.holds == 0 {
		errhandlers.Free(e.handle)
		e.handle = 0
	}
}

type action uint8

const (
	returns action = iota // the code
	aborts                // the job
	calls                 // a function of the program
)

// The predefined handlers. Objects that none was set on have errorsAreFatal.
var (
	errorsAreFatal = &errhandler{action: aborts}
	errorsAbort    = &errhandler{action: aborts}
	errorsReturn   = &errhandler{action: returns}
)

var namedErrhandlers = map[uintptr]*errhandler{0x141: errorsAreFatal, 0x142: errorsAbort, 0x143: errorsReturn}

// errhandlerOf gives the handler of an argument, for a sort of object.
func errhandlerOf(sort string, h uintptr) (*errhandler, error) {
	if e := namedErrhandlers[h]; e != nil {
		return e, nil
	}
	if p := errhandlers.Get(h); p != nil {
		if (*p).sort == sort || sort == "" {
			return *p, nil
		}
		return nil, fmt.Errorf("%w: argument errhandler is one for objects of type MPI_%s", mpi.ErrErrhandler, (*p).sort)
	}
	return nil, bad(mpi.ErrErrhandler, "errhandler", h, errhandlerNull)
}

// createErrhandler makes a handler of a function of C.
func createErrhandler(name, sort string, fn, out uintptr) int32 {
	return anytime(name, func() error {
		if fn < firstAddress {
			return missing("the function", fn)
		}
		to, err := result[uintptr]("errhandler", out)
		if err == nil {
			*to = (&errhandler{action: calls, sort: sort, fn: fn}).hold()
		}
		return err
	})
}

// setErrhandler gives an object a handler.
func setErrhandler(o *object, h uintptr) error {
	e, err := errhandlerOf(o.sort, h)
	if err == nil {
		o.handler.Store(e)
	}
	return err
}

// getErrhandler gives the handler of an object, in a handle of its own.
func getErrhandler(o *object, out uintptr) error {
	e := o.handler.Load()
	if e == nil {
		e = errorsAreFatal
	}
	for h, named := range namedErrhandlers {
		if named == e {
			return put("errhandler", out, h)
		}
	}
	to, err := result[uintptr]("errhandler", out)
	if err == nil {
		*to = e.hold()
	}
	return err
}

//export abiCommCreateErrhandler
func abiCommCreateErrhandler(fn, out uintptr) int32 {
	return createErrhandler("Comm_create_errhandler", "Comm", fn, out)
}

//export abiWinCreateErrhandler
func abiWinCreateErrhandler(fn, out uintptr) int32 {
	return createErrhandler("Win_create_errhandler", "Win", fn, out)
}

//export abiFileCreateErrhandler
func abiFileCreateErrhandler(fn, out uintptr) int32 {
	return createErrhandler("File_create_errhandler", "File", fn, out)
}

//export abiSessionCreateErrhandler
func abiSessionCreateErrhandler(fn, out uintptr) int32 {
	return createErrhandler("Session_create_errhandler", "Session", fn, out)
}

//export abiCommSetErrhandler
func abiCommSetErrhandler(c, h uintptr) int32 {
	return onComm("Comm_set_errhandler", 0, c, func(c *commObject) error { return setErrhandler(&c.object, h) })
}

//export abiCommGetErrhandler
func abiCommGetErrhandler(c, out uintptr) int32 {
	return onComm("Comm_get_errhandler", 0, c, func(c *commObject) error { return getErrhandler(&c.object, out) })
}

//export abiCommCallErrhandler
func abiCommCallErrhandler(c uintptr, code int32) int32 {
	return onComm("Comm_call_errhandler", 0, c, func(c *commObject) error {
		fail("Comm_call_errhandler", 0, &c.object, mpi.NewError(mpi.Class(code)))
		return nil
	})
}

//export abiWinSetErrhandler
func abiWinSetErrhandler(w, h uintptr) int32 {
	return onWin("Win_set_errhandler", 0, w, func(w *winObject) error { return setErrhandler(&w.object, h) })
}

//export abiWinGetErrhandler
func abiWinGetErrhandler(w, out uintptr) int32 {
	return onWin("Win_get_errhandler", 0, w, func(w *winObject) error { return getErrhandler(&w.object, out) })
}

//export abiWinCallErrhandler
func abiWinCallErrhandler(w uintptr, code int32) int32 {
	return onWin("Win_call_errhandler", 0, w, func(w *winObject) error {
		fail("Win_call_errhandler", 0, &w.object, mpi.NewError(mpi.Class(code)))
		return nil
	})
}

//export abiErrhandlerFree
func abiErrhandlerFree(p uintptr) int32 {
	return anytime("Errhandler_free", func() error {
		h, err := result[uintptr]("errhandler", p)
		if err != nil {
			return err
		}
		e, err := errhandlerOf("", *h)
		if err != nil {
			return err
		}
		if namedErrhandlers[*h] == nil {
			e.release()
		}
		*h = errhandlerNull
		return nil
	})
}

//export abiErrorClass
func abiErrorClass(code int32, out uintptr) int32 {
	return anytime("Error_class", func() error {
		class, err := mpi.ClassOf(mpi.Class(code))
		if err != nil {
			return err
		}
		return putInt("errorclass", out, int(class))
	})
}

const maxErrorString = 512

//export abiErrorString
func abiErrorString(code int32, out, length uintptr) int32 {
	return anytime("Error_string", func() error {
		s, err := mpi.ErrorString(mpi.Class(code))
		if err != nil {
			return err
		}
		if last := lastText(code); last != "" {
			s += "; the last such error in this thread: " + last
		}
		n, err := putText("string", out, maxErrorString, s)
		if err != nil {
			return err
		}
		return putInt("resultlen", length, n)
	})
}

//export abiAddErrorClass
func abiAddErrorClass(out uintptr) int32 {
	return anytime("Add_error_class", func() error {
		class, err := mpi.AddErrorClass()
		if err != nil {
			return err
		}
		return putInt("errorclass", out, int(class))
	})
}

//export abiAddErrorCode
func abiAddErrorCode(class int32, out uintptr) int32 {
	return anytime("Add_error_code", func() error {
		code, err := mpi.AddErrorCode(mpi.Class(class))
		if err != nil {
			return err
		}
		return putInt("errorcode", out, int(code))
	})
}

//export abiAddErrorString
func abiAddErrorString(code int32, s uintptr) int32 {
	return anytime("Add_error_string", func() error {
		t, err := text("string", s, maxErrorString)
		if err != nil {
			return err
		}
		return mpi.AddErrorString(mpi.Class(code), t)
	})
}

//export abiRemoveErrorClass
func abiRemoveErrorClass(class int32) int32 {
	return anytime("Remove_error_class", func() error { return mpi.RemoveErrorClass(mpi.Class(class)) })
}

//export abiRemoveErrorCode
func abiRemoveErrorCode(code int32) int32 {
	return anytime("Remove_error_code", func() error { return mpi.RemoveErrorCode(mpi.Class(code)) })
}

//export abiRemoveErrorString
func abiRemoveErrorString(code int32) int32 {
	return anytime("Remove_error_string", func() error { return mpi.RemoveErrorString(mpi.Class(code)) })
}
