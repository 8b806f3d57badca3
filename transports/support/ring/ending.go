package ring

import "github.com/openimpi/impi/core/link"

// CloseSend ends this side's bytes.
func (l *Link) CloseSend() error {
	if l.closed.Load() {
		return link.ErrClosed
	}
	l.end()
	return nil
}

func (l *Link) end() {
	if !l.ended {
		l.ended = true
		l.out.b.ended.Store(1)
		l.wakeReader()
	}
}

// Close ends both directions. The other side still reads what is in its ring,
// and is woken.
func (l *Link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.out.b.recalled.Store(1)
	l.out.b.ended.Store(1)
	l.in.b.gone.Store(1)
	l.close()
	return nil
}

// Break is Close for an owner that has lost bytes: what is in the ring can still be
// read, and then the other side's Recv reports link.ErrBroken instead of io.EOF,
// unless CloseSend came before.
func (l *Link) Break() {
	if l.closed.Swap(true) {
		return
	}
	l.in.b.gone.Store(1)
	l.close()
}
