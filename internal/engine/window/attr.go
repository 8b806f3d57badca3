package window

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
)

func CreateWinKeyval(cp object.CopyFunc[*Win], del object.DeleteFunc[*Win], extra any) (object.Keyval, error) {
	key, err := object.NewKeyvalOf(comm.WinFamily, cp, del, extra)
	return key, proc.Failed("CreateWinKeyval", err)
}

func FreeWinKeyval(key *object.Keyval) error {
	return proc.Failed("FreeWinKeyval", object.FreeKeyvalOf(comm.WinFamily, key))
}

func (w *Win) SetAttr(key object.Keyval, value any) error {
	err := w.check()
	if err == nil {
		err = object.Keyvals.Set(comm.WinFamily, &w.attrs, w, key, value)
	}
	return w.failed("Win.SetAttr", err)
}

func (w *Win) Attr(key object.Keyval) (value any, ok bool, err error) {
	if err := w.check(); err != nil {
		return nil, false, w.failed("Win.Attr", err)
	}
	if value, ok := w.predefined(key); ok {
		return value, true, nil
	}
	value, ok, err = object.Keyvals.Get(comm.WinFamily, &w.attrs, key)
	return value, ok, w.failed("Win.Attr", err)
}

func (w *Win) DeleteAttr(key object.Keyval) error {
	err := w.check()
	if err == nil {
		err = object.Keyvals.Delete(comm.WinFamily, &w.attrs, w, key)
	}
	return w.failed("Win.DeleteAttr", err)
}

// predefined gives the value of one of MPI's attributes of windows.
func (w *Win) predefined(key object.Keyval) (value any, ok bool) {
	mine := w.memory.extents[w.c.Rank()]
	switch key {
	case object.WinBase:
		return w.memory.mem, true
	case object.WinSize:
		return int(mine.Size), true
	case object.WinDispUnit:
		return int(mine.Unit), true
	case object.WinCreateFlavor:
		return int(w.flavor), true
	case object.WinModel:
		return WinUnified, true
	default:
		return nil, false
	}
}
