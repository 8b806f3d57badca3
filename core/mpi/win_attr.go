package mpi

import "github.com/openimpi/impi/core/comm"

// CreateWinKeyval makes a key for attributes of windows, as CreateKeyval does for
// communicators. Windows are not duplicated: cp is never called.
func CreateWinKeyval(cp CopyFunc[*Win], del DeleteFunc[*Win], extra any) (Keyval, error) {
	key, err := createKeyval(comm.WinFamily, cp, del, extra)
	return key, failed("CreateWinKeyval", err)
}

// FreeWinKeyval is FreeKeyval for a key of windows.
func FreeWinKeyval(key *Keyval) error {
	return failed("FreeWinKeyval", freeKeyval(comm.WinFamily, key))
}

// SetAttr attaches a value to w. One that is there is deleted first; where its
// DeleteFunc fails it stays.
func (w *Win) SetAttr(key Keyval, value any) error {
	err := w.check()
	if err == nil {
		err = keyvals.Set(comm.WinFamily, &w.attrs, w, key, value)
	}
	return w.failed("Win.SetAttr", err)
}

// Attr gives the value that w has for a key; ok is whether it has one. WinBase has
// an unsafe.Pointer, which is nil of a dynamic window, the other predefined keys
// have ints.
func (w *Win) Attr(key Keyval) (value any, ok bool, err error) {
	if err := w.check(); err != nil {
		return nil, false, w.failed("Win.Attr", err)
	}
	if value, ok := w.predefined(key); ok {
		return value, true, nil
	}
	value, ok, err = keyvals.Get(comm.WinFamily, &w.attrs, key)
	return value, ok, w.failed("Win.Attr", err)
}

// DeleteAttr deletes the value that w has for a key. If there is none, nothing
// happens.
func (w *Win) DeleteAttr(key Keyval) error {
	err := w.check()
	if err == nil {
		err = keyvals.Delete(comm.WinFamily, &w.attrs, w, key)
	}
	return w.failed("Win.DeleteAttr", err)
}

// predefined gives the value of one of MPI's attributes of windows.
func (w *Win) predefined(key Keyval) (value any, ok bool) {
	mine := w.extents[w.c.Rank()]
	switch key {
	case WinBase:
		return w.mem, true
	case WinSize:
		return int(mine.Size), true
	case WinDispUnit:
		return int(mine.Unit), true
	case WinCreateFlavor:
		return int(w.flavor), true
	case WinModel:
		return WinUnified, true
	default:
		return nil, false
	}
}
