package ring

import "github.com/openimpi/impi/plugins/sdk/link"

// CloseSend ends this side's stream.
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

// Close ends both directions. The other side is woken, and still reads what is in its ring.
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

// Break is Close for an owner that has lost bytes. The other side can still read what is in
// the ring; after that its Recv returns link.ErrBroken instead of io.EOF, unless CloseSend
// was called before.
func (l *Link) Break() {
	if l.closed.Swap(true) {
		return
	}
	l.in.b.gone.Store(1)
	l.close()
}
