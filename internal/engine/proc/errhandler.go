package proc

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/openimpi/impi/core/mpierr"
)

// Errhandler defines what happens with a function's error before the function returns it (MPI-4.1,
// 9.3). Free drops the program's reference only: objects that the handler is set on keep it.
type Errhandler struct {
	name   string
	action action
	comm   func(c *Comm, err error)    // a user's function for communicators
	other  func(object any, err error) // a user's function for windows
	holds  atomic.Int64                // references of the program, from New... and Get...; predefined handlers have none
}

type action uint8

// Actions of a handler on an error.
const (
	returnError action = iota // return it
	AbortJob
	CallUser
)

// The predefined handlers. ErrorsAbort ends the whole job, as ErrorsAreFatal does, and not only the
// procs of the object.
var (
	// ErrorsReturn lets the function return its error. It is the default.
	ErrorsReturn = &Errhandler{name: "MPI_ERRORS_RETURN"}
	// ErrorsAreFatal ends the job: the function does not return.
	ErrorsAreFatal = &Errhandler{name: "MPI_ERRORS_ARE_FATAL", action: AbortJob}
	// ErrorsAbort ends the job because of an error of an object's procs.
	ErrorsAbort = &Errhandler{name: "MPI_ERRORS_ABORT", action: AbortJob}
)

func NewErrhandler(f func(c *Comm, err error)) (*Errhandler, error) {
	if f == nil {
		return nil, fmt.Errorf("%w: no function", ErrArg)
	}
	return ErrhandlerOf("an error handler", f, nil), nil
}

// ErrhandlerOf makes a handler that calls a function, for communicators or for other objects, with
// one reference of the program's.
func ErrhandlerOf(name string, onComm func(c *Comm, err error), onOther func(object any, err error)) *Errhandler {
	h := &Errhandler{name: name, action: CallUser, comm: onComm, other: onOther}
	h.holds.Store(1)
	return h
}

func (h *Errhandler) Free() error {
	if err := h.Check(); err != nil {
		return err
	}
	if h.action == CallUser {
		h.holds.Add(-1)
	}
	return nil
}

// Check returns an error if the handler is nil or was freed.
func (h *Errhandler) Check() error {
	switch {
	case h == nil:
		return fmt.Errorf("%w: nil, which is MPI_ERRHANDLER_NULL", ErrErrhandler)
	case h.action == CallUser && h.holds.Load() <= 0:
		return fmt.Errorf("%w: it has been freed", ErrErrhandler)
	}
	return nil
}

// AddReference adds a reference of the program's and returns h.
func (h *Errhandler) AddReference() *Errhandler {
	if h.action == CallUser {
		h.holds.Add(1)
	}
	return h
}

// Fallback is the handler of objects on which no handler was set.
var Fallback atomic.Pointer[Errhandler]

func SetDefaultErrhandler(h *Errhandler) error {
	if err := h.Check(); err != nil {
		return err
	}
	Fallback.Store(h)
	return nil
}

// HandlerSlot holds the handler of an object.
type HandlerSlot struct{ Set atomic.Pointer[Errhandler] }

// Current returns the handler that is set, or else Fallback.
func (s *HandlerSlot) Current() *Errhandler {
	if h := s.Set.Load(); h != nil {
		return h
	}
	if h := Fallback.Load(); h != nil {
		return h
	}
	return ErrorsReturn
}

func (c *Comm) SetErrhandler(h *Errhandler) error {
	err := c.Usable()
	if err == nil {
		err = h.Check()
	}
	if err == nil && h.action == CallUser && h.comm == nil {
		err = fmt.Errorf("%w: it is not for communicators", ErrErrhandler)
	}
	if err != nil {
		return err
	}
	c.state.Handler.Set.Store(h)
	return nil
}

func (c *Comm) GetErrhandler() (*Errhandler, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	return c.state.Handler.Current().AddReference(), nil
}

func (c *Comm) CallErrhandler(err error) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if err != nil {
		c.handle(err)
	}
	return nil
}

// Inherit sets the error handler of c to that of the communicator that c is made from (MPI-4.1,
// 9.3). Every constructor calls it.
func (c *Comm) Inherit(parent *Comm) { c.state.Handler.Set.Store(parent.state.Handler.Set.Load()) }

// handle calls the handler of c. The process must not be locked, since the handler may call MPI.
func (c *Comm) handle(err error) {
	switch h := c.state.Handler.Current(); {
	case h.action == AbortJob:
		c.p.Fatal(fmt.Sprintf("communicator %s, rank %d of %d", c.Label(), c.Rank(), c.Size()), err)
	case h.comm != nil:
		h.comm(c, err)
	}
}

// Label returns a name of c for messages.
func (c *Comm) Label() string {
	if name := c.Name(); name != "" {
		return name
	}
	return fmt.Sprintf("of context %d", c.Context())
}

// Fatal ends the job because of an error of a call on an object, with the error's class as the exit
// status.
func (p *Process) Fatal(object string, err error) {
	class := ErrorClass(err)
	why, code := fmt.Sprintf("fatal error: %v: %v (%s)", class, err, object), int(class)
	if class.OfLoss() {
		why += "; with mpi.ErrorsReturn in the place of its error handler (SetErrhandler) the program can go on without lost procs"
	}
	if code > int(mpierr.ABI) {
		code = int(mpierr.Other) // the program's own classes do not fit into an exit status
	}
	if p.Node.Control != nil {
		p.Abort(code, why)
		return
	}
	p.Machine.Exit(code, why)
}

// ErrorComm returns the communicator whose handler is called for errors of calls without a
// communicator: SELF if a handler was set on it, else WORLD (MPI-4.1, 9.3).
func (cs *communicators) ErrorComm() *Comm {
	if cs.Self.state.Handler.Set.Load() != nil {
		return cs.Self
	}
	return cs.World
}

// Failed puts the function's name before an error of a call without a communicator and calls the
// handler. The process must not be locked.
func (p *Process) Failed(fn string, err error) error {
	if err == nil {
		return nil
	}
	return p.Comms.ErrorComm().Failed(fn, err)
}

// Failed is Process.Failed for calls that may come before Init. No lock of this package may be
// held.
func Failed(fn string, err error) error {
	if err == nil {
		return nil
	}
	ProcessMu.Lock()
	p := ThisProcess
	ProcessMu.Unlock()
	if p != nil {
		return p.Failed(fn, err)
	}
	err = WithFuncName(fn, err)
	if h := (&HandlerSlot{}).Current(); h.action == AbortJob {
		fmt.Fprintf(os.Stderr, "impi: fatal error: %v: %v\n", ErrorClass(err), err)
		os.Exit(int(ErrorClass(err)))
	}
	return err
}

// Failed puts the function's name before an error of a call on c and calls c's error handler, or if
// c is nil or was freed the handler of calls without a communicator. The process must not be
// locked.
func (c *Comm) Failed(fn string, err error) error {
	if err == nil {
		return nil // this branch is inlined
	}
	return c.tell(fn, err)
}

func (c *Comm) tell(fn string, err error) error {
	switch {
	case c == nil:
		return Failed(fn, err)
	case c.state.Life.Load() != Usable:
		return c.p.Failed(fn, err)
	}
	err = WithFuncName(fn, err)
	c.handle(err)
	return err
}

// WithFuncName puts the name of a function of MPI before its error.
func WithFuncName(fn string, err error) error { return fmt.Errorf("mpi.%s: %w", fn, err) }

// Action returns the handler's action on an error.
func (h *Errhandler) Action() action { return h.action }

// Name returns the handler's name, for messages.
func (h *Errhandler) Name() string { return h.name }

// Other returns the function for objects other than communicators, nil if there is none.
func (h *Errhandler) Other() func(object any, err error) { return h.other }
