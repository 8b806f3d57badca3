package window

import (
	"fmt"

	"github.com/openimpi/impi/internal/engine/proc"
)

func NewWinErrhandler(f func(w *Win, err error)) (*proc.Errhandler, error) {
	if f == nil {
		return nil, fmt.Errorf("%w: no function", proc.ErrArg)
	}
	return proc.ErrhandlerOf("an error handler", nil, func(w any, err error) { f(w.(*Win), err) }), nil
}

func (w *Win) SetErrhandler(h *proc.Errhandler) error {
	err := w.Check()
	if err == nil {
		err = h.Check()
	}
	if err == nil && h.Action() == proc.CallUser && h.Other() == nil {
		err = fmt.Errorf("%w: it is not for windows", proc.ErrErrhandler)
	}
	if err != nil {
		return err
	}
	w.handler.Set.Store(h)
	return nil
}

func (w *Win) GetErrhandler() (*proc.Errhandler, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	return w.handler.Current().AddReference(), nil
}

func (w *Win) CallErrhandler(err error) error {
	if err := w.Check(); err != nil {
		return err
	}
	if err != nil {
		w.handle(err)
	}
	return nil
}

// handle calls the handler of w. The process is not locked.
func (w *Win) handle(err error) {
	switch h := w.handler.Current(); {
	case h.Action() == proc.AbortJob:
		w.Process.Fatal(fmt.Sprintf("window %s, rank %d of %d", w.Label(), w.Rank(), w.Size()), err)
	case h.Other() != nil:
		h.Other()(w, err)
	}
}

// Failed puts the function's name before an error of a call on w and calls w's error handler, or if
// w is nil or was freed the handler of calls without an object (MPI-4.1, 12.6.1). The process must
// not be locked.
func (w *Win) Failed(fn string, err error) error {
	switch {
	case err == nil:
		return nil
	case w == nil:
		return proc.Failed(fn, err)
	case w.life.Load() != proc.Usable:
		return w.Process.Failed(fn, err)
	}
	err = proc.WithFuncName(fn, err)
	w.handle(err)
	return err
}
