package window

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
)

func CreateWinKeyval(cp p2p.CopyFunc[*Win], del p2p.DeleteFunc[*Win], extra any) (p2p.Keyval, error) {
	key, err := p2p.NewKeyvalOf(comm.WinFamily, cp, del, extra)
	return key, proc.Failed("CreateWinKeyval", err)
}

func FreeWinKeyval(key *p2p.Keyval) error {
	return proc.Failed("FreeWinKeyval", p2p.FreeKeyvalOf(comm.WinFamily, key))
}

func (w *Win) SetAttr(key p2p.Keyval, value any) error {
	err := w.check()
	if err == nil {
		err = p2p.Keyvals.Set(comm.WinFamily, &w.attrs, w, key, value)
	}
	return w.failed("Win.SetAttr", err)
}

func (w *Win) Attr(key p2p.Keyval) (value any, ok bool, err error) {
	if err := w.check(); err != nil {
		return nil, false, w.failed("Win.Attr", err)
	}
	if value, ok := w.predefined(key); ok {
		return value, true, nil
	}
	value, ok, err = p2p.Keyvals.Get(comm.WinFamily, &w.attrs, key)
	return value, ok, w.failed("Win.Attr", err)
}

func (w *Win) DeleteAttr(key p2p.Keyval) error {
	err := w.check()
	if err == nil {
		err = p2p.Keyvals.Delete(comm.WinFamily, &w.attrs, w, key)
	}
	return w.failed("Win.DeleteAttr", err)
}

// predefined gives the value of one of MPI's attributes of windows.
func (w *Win) predefined(key p2p.Keyval) (value any, ok bool) {
	mine := w.extents[w.c.Rank()]
	switch key {
	case p2p.WinBase:
		return w.mem, true
	case p2p.WinSize:
		return int(mine.Size), true
	case p2p.WinDispUnit:
		return int(mine.Unit), true
	case p2p.WinCreateFlavor:
		return int(w.flavor), true
	case p2p.WinModel:
		return WinUnified, true
	default:
		return nil, false
	}
}
