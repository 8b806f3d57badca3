package mpi

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/openimpi/impi/core/mpierr"
)

// Errhandler says what becomes of a function's error before the function
// returns it. A program that calls Free gives back its own hold only: the objects
// that the handler is set on keep it.
type Errhandler struct {
	name   string
	action action
	comm   func(c *Comm, err error)    // of a user's for communicators
	other  func(object any, err error) // of a user's for windows
	holds  atomic.Int64                // by New… and Get…; what is predefined needs none
}

type action uint8

const (
	returnError action = iota // and nothing else
	abortJob
	callUser
)

// The predefined handlers. An impi job cannot go on without some of its procs,
// so that ErrorsAbort ends all of it, as ErrorsAreFatal does.
var (
	// ErrorsReturn lets the function return its error. It is the default.
	ErrorsReturn = &Errhandler{name: "MPI_ERRORS_RETURN"}
	// ErrorsAreFatal ends the job: the function does not return.
	ErrorsAreFatal = &Errhandler{name: "MPI_ERRORS_ARE_FATAL", action: abortJob}
	// ErrorsAbort ends the job on behalf of the procs of the object.
	ErrorsAbort = &Errhandler{name: "MPI_ERRORS_ABORT", action: abortJob}
)

// NewErrhandler makes a handler for communicators of f. It is called once for
// each call on such a communicator that fails, in the goroutine of the call, with
// the error that the call is about to return. f may call MPI.
func NewErrhandler(f func(c *Comm, err error)) (*Errhandler, error) {
	if f == nil {
		return nil, failed("NewErrhandler", fmt.Errorf("%w: no function", ErrArg))
	}
	h := &Errhandler{name: "an error handler", action: callUser, comm: f}
	h.holds.Store(1)
	return h, nil
}

// Free gives back what NewErrhandler or GetErrhandler gave.
func (h *Errhandler) Free() error {
	if err := h.check(); err != nil {
		return failed("Errhandler.Free", err)
	}
	if h.action == callUser {
		h.holds.Add(-1)
	}
	return nil
}

// check refuses handlers that are no more the program's to use.
func (h *Errhandler) check() error {
	switch {
	case h == nil:
		return fmt.Errorf("%w: nil, which is MPI_ERRHANDLER_NULL", ErrErrhandler)
	case h.action == callUser && h.holds.Load() <= 0:
		return fmt.Errorf("%w: it has been freed", ErrErrhandler)
	}
	return nil
}

// held gives h to the program once more.
func (h *Errhandler) held() *Errhandler {
	if h.action == callUser {
		h.holds.Add(1)
	}
	return h
}

// fallback is what objects have that no handler was set on.
var fallback atomic.Pointer[Errhandler]

// SetDefaultErrhandler sets the handler of everything that no handler is set on,
// and of errors before Init. The C library makes it ErrorsAreFatal.
func SetDefaultErrhandler(h *Errhandler) error {
	if err := h.check(); err != nil {
		return failed("SetDefaultErrhandler", err)
	}
	fallback.Store(h)
	return nil
}

// handlerSlot is where an object keeps its handler.
type handlerSlot struct{ set atomic.Pointer[Errhandler] }

// current is the handler in force.
func (s *handlerSlot) current() *Errhandler {
	if h := s.set.Load(); h != nil {
		return h
	}
	if h := fallback.Load(); h != nil {
		return h
	}
	return ErrorsReturn
}

// SetErrhandler makes h the handler of errors of calls on c by this proc.
func (c *Comm) SetErrhandler(h *Errhandler) error {
	err := c.check()
	if err == nil {
		err = h.check()
	}
	if err == nil && h.action == callUser && h.comm == nil {
		err = fmt.Errorf("%w: it is not for communicators", ErrErrhandler)
	}
	if err != nil {
		return c.failed("SetErrhandler", err)
	}
	c.handler.set.Store(h)
	return nil
}

// GetErrhandler gives the handler of c, which the caller has to Free.
func (c *Comm) GetErrhandler() (*Errhandler, error) {
	if err := c.check(); err != nil {
		return nil, c.failed("GetErrhandler", err)
	}
	return c.handler.current().held(), nil
}

// CallErrhandler calls the handler of c with an error of the program's own. It
// does nothing where err is nil.
func (c *Comm) CallErrhandler(err error) error {
	if err := c.check(); err != nil {
		return c.failed("CallErrhandler", err)
	}
	if err != nil {
		c.handle(err)
	}
	return nil
}

// inherit takes over what a new communicator has from the one it is made of.
// Every constructor calls it.
func (c *Comm) inherit(parent *Comm) { c.handler.set.Store(parent.handler.set.Load()) }

// handle calls the handler of c. The process is not locked: the handler may
// call MPI.
func (c *Comm) handle(err error) {
	switch h := c.handler.current(); {
	case h.action == abortJob:
		c.p.fatal(fmt.Sprintf("communicator %s, rank %d of %d", c.label(), c.Rank(), c.Size()), err)
	case h.comm != nil:
		h.comm(c, err)
	}
}

// label names c for people.
func (c *Comm) label() string {
	if name := c.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("of context %d", c.Context())
}

// fatal ends the job because of an error of a call on an object.
func (p *process) fatal(object string, err error) {
	p.die(err, fmt.Sprintf("fatal error: %v: %v (%s)", ErrorClass(err), err, object))
}

// die ends the job with an exit status that tells an error's class.
func (p *process) die(err error, why string) {
	code := int(ErrorClass(err))
	if code > int(mpierr.ABI) {
		code = int(mpierr.Other) // a program's own classes do not fit an exit status
	}
	if p.control != nil {
		p.abort(code, why)
		return
	}
	fmt.Fprintln(os.Stderr, "impi:", why)
	p.machine.Exit(code)
}

// noted is the communicator whose handler hears of errors of calls that have
// none: SELF if a handler was set on it, else WORLD.
func (p *process) noted() *Comm {
	if p.self.handler.set.Load() != nil {
		return p.self
	}
	return p.world
}

// failed puts the function's name before an error of a call without a
// communicator, and tells the handler. The process must not be locked.
func (p *process) failed(fn string, err error) error {
	if err == nil {
		return nil
	}
	return p.noted().failed(fn, err)
}

// failed puts the function's name before an error of a call that has no
// communicator, and tells the handler. No lock of this package may be held.
func failed(fn string, err error) error {
	if err == nil {
		return nil
	}
	theLock.Lock()
	p := the
	theLock.Unlock()
	if p != nil {
		return p.failed(fn, err)
	}
	err = named(fn, err)
	if h := (&handlerSlot{}).current(); h.action == abortJob {
		fmt.Fprintf(os.Stderr, "impi: fatal error: %v: %v\n", ErrorClass(err), err)
		os.Exit(int(ErrorClass(err)))
	}
	return err
}

// failed puts the function's name before an error of a call on c and tells c's
// error handler, or that of calls without a communicator if c is none. The process
// must not be locked.
func (c *Comm) failed(fn string, err error) error {
	if err == nil {
		return nil // and is inlined
	}
	return c.tell(fn, err)
}

func (c *Comm) tell(fn string, err error) error {
	switch {
	case c == nil:
		return failed(fn, err)
	case c.life.Load() != usable:
		return c.p.failed(fn, err)
	}
	err = named(fn, err)
	c.handle(err)
	return err
}

func named(fn string, err error) error { return fmt.Errorf("mpi.%s: %w", fn, err) }
