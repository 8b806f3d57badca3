//go:build cgo && !386 && !arm

package main

import (
	"fmt"
	"sync"

	"github.com/openimpi/impi/core/mpi"
)

type errhandler struct {
	action action
	sort   string // kind of object that a user's handler is for
	fn     uintptr

	mu     sync.Mutex
	handle uintptr // 0: the program has no handle of it
	holds  int     // references held by the program; objects keep a handler without references
}

// hold adds a reference of the program, and returns the handle.
func (e *errhandler) hold() uintptr {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.holds++; e.handle == 0 {
		e.handle = errhandlers.Add(e)
	}
	return e.handle
}

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
	returns   action = iota // the call returns the error's code
	aborts                  // the job ends
	callsBack               // a function of the program is called
)

// The predefined handlers. Objects on which none was set have errorsAreFatal.
var (
	errorsAreFatal = &errhandler{action: aborts}
	errorsAbort    = &errhandler{action: aborts}
	errorsReturn   = &errhandler{action: returns}
)

var namedErrhandlers = map[uintptr]*errhandler{0x141: errorsAreFatal, 0x142: errorsAbort, 0x143: errorsReturn}

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

func createErrhandler(name, sort string, fn, out uintptr) int32 {
	return anytime(name, func() error {
		if fn < firstAddress {
			return missing("the function", fn)
		}
		to, err := result[uintptr]("errhandler", out)
		if err == nil {
			*to = (&errhandler{action: callsBack, sort: sort, fn: fn}).hold()
		}
		return err
	})
}

func (o *object) setErrhandler(h uintptr) error {
	e, err := errhandlerOf(o.sort, h)
	if err == nil {
		o.handler.Store(e)
	}
	return err
}

// getErrhandler stores a handle of the object's handler, with a reference of its own.
func (o *object) getErrhandler(out uintptr) error {
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

func (o *object) callErrhandler(fn string, code int) error {
	fail(fn, 0, o, mpi.NewError(mpi.Class(code)))
	return nil
}

func commHandler(h uintptr) (*errhandler, error) { return errhandlerOf("Comm", h) }

func freeErrhandler(h uintptr) error {
	e, err := errhandlerOf("", h)
	if err == nil && namedErrhandlers[h] == nil {
		e.release()
	}
	return err
}

// errorText returns the text of an error code, with that of the last such error of the calling
// thread.
func errorText(code int) (string, error) {
	s, err := mpi.ErrorString(mpi.Class(code))
	if last := lastText(int32(code)); last != "" {
		s += "; the last such error in this thread: " + last
	}
	return s, err
}
