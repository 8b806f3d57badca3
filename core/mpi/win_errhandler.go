package mpi

import (
	"fmt"
)

// NewWinErrhandler makes a handler for windows of f, as NewErrhandler does for
// communicators.
func NewWinErrhandler(f func(w *Win, err error)) (*Errhandler, error) {
	if f == nil {
		return nil, failed("NewWinErrhandler", fmt.Errorf("%w: no function", ErrArg))
	}
	h := &Errhandler{name: "an error handler", action: callUser, other: func(w any, err error) { f(w.(*Win), err) }}
	h.holds.Store(1)
	return h, nil
}

// SetErrhandler makes h the handler of errors of calls on w by this proc. Without
// it a window has the one that SetDefaultErrhandler says.
func (w *Win) SetErrhandler(h *Errhandler) error {
	err := w.check()
	if err == nil {
		err = h.check()
	}
	if err == nil && h.action == callUser && h.other == nil {
		err = fmt.Errorf("%w: it is not for windows", ErrErrhandler)
	}
	if err != nil {
		return w.failed("Win.SetErrhandler", err)
	}
	w.handler.set.Store(h)
	return nil
}

// GetErrhandler gives the handler of w, which the caller has to Free.
func (w *Win) GetErrhandler() (*Errhandler, error) {
	if err := w.check(); err != nil {
		return nil, w.failed("Win.GetErrhandler", err)
	}
	return w.handler.current().held(), nil
}

// CallErrhandler calls the handler of w with an error of the program's own. It
// does nothing where err is nil.
func (w *Win) CallErrhandler(err error) error {
	if err := w.check(); err != nil {
		return w.failed("Win.CallErrhandler", err)
	}
	if err != nil {
		w.handle(err)
	}
	return nil
}

// handle calls the handler of w. The process is not locked.
func (w *Win) handle(err error) {
	switch h := w.handler.current(); {
	case h.action == abortJob:
		w.p.fatal(fmt.Sprintf("window %s, rank %d of %d", w.label(), w.Rank(), w.Size()), err)
	case h.other != nil:
		h.other(w, err)
	}
}

// failed puts the function's name before an error of a call on w and tells w's
// error handler, or that of calls without an object if w is none. The process must
// not be locked.
func (w *Win) failed(fn string, err error) error {
	switch {
	case err == nil:
		return nil
	case w == nil:
		return failed(fn, err)
	case w.life.Load() != usable:
		return w.p.failed(fn, err)
	}
	err = named(fn, err)
	w.handle(err)
	return err
}
