package window

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/object"
)

func (w *Win) SetAttr(key comm.Keyval, value any) error {
	err := w.Check()
	if err == nil {
		err = object.Keyvals.Set(comm.WinFamily, &w.attrs, w, key, value)
	}
	return err
}

func (w *Win) Attr(key comm.Keyval) (value any, ok bool, err error) {
	if err := w.Check(); err != nil {
		return nil, false, err
	}
	if value, ok := w.predefined(key); ok {
		return value, true, nil
	}
	return object.Keyvals.Get(comm.WinFamily, &w.attrs, key)
}

func (w *Win) DeleteAttr(key comm.Keyval) error {
	err := w.Check()
	if err == nil {
		err = object.Keyvals.Delete(comm.WinFamily, &w.attrs, w, key)
	}
	return err
}

// predefined returns the value of one of MPI's attributes of windows (MPI-4.1, 12.2.6).
func (w *Win) predefined(key comm.Keyval) (value any, ok bool) {
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
