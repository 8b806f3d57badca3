package job

import (
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// Send is the user's.
func (e *lastingEnd) Send(batch [][]byte) (int, error) {
	n, err := e.machine.Send(batch)
	if n > 0 && e.watcher != nil {
		e.watcher.Sent(e.shown.Ends[e.me], front(batch, n))
	}
	e.update()
	if e.machine.Arm(link.Readable) { // it has looked what there is
		e.gate.Ring()
	}
	return n, err
}

// Recv is the user's.
func (e *lastingEnd) Recv(batch [][]byte) (int, error) {
	n, err := e.machine.Recv(batch)
	if n > 0 && e.watcher != nil {
		tell(e.watcher, e.shown.Ends[e.me], front(batch, n))
	}
	if inOrder(err) {
		e.sawEnd()
	}
	e.update()
	return n, err
}

func (e *lastingEnd) sawEnd() {
	if w, ok := e.watcher.(kernel.EndWatcher); ok && !e.told {
		w.SawEnd(e.shown.Ends[e.me])
	}
	e.told = true
}

// tell tells a watcher of bytes that were received.
func tell(w kernel.Watcher, to *kernel.End, data []byte) {
	if r, ok := w.(ReadWatcher); ok {
		r.Read(to, data)
		return
	}
	w.Received(to, len(data))
}

// front copies the first n bytes of batch.
func front(batch [][]byte, n int) []byte {
	b := make([]byte, 0, n)
	for _, x := range batch {
		b = append(b, x[:min(len(x), n-len(b))]...)
	}
	return b
}

// Handle is the same whatever the link runs over.
func (e *lastingEnd) Handle() int { return e.gate.Handle() }

// Arm is the user's.
func (e *lastingEnd) Arm(want link.Interest) bool { return e.machine.Arm(want) }

// Limits has the window.
func (e *lastingEnd) Limits() link.Limits { return e.machine.Limits() }

// OnReady has f called soon after something may have become possible.
func (e *lastingEnd) OnReady(f func()) { e.gate.OnReady(f) }

// CloseSend ends this side's bytes.
func (e *lastingEnd) CloseSend() error {
	err := e.machine.CloseSend()
	e.end()
	e.update()
	return err
}

func (e *lastingEnd) end() {
	if !e.ended {
		e.ended = true
		if e.watcher != nil {
			e.watcher.Ended(e.shown.Ends[e.me])
		}
	}
}

// Close leaves the rest to the node, for a while: what was sent has to arrive,
// and the peer may not know that everything of its has.
func (e *lastingEnd) Close() error {
	if e.closed || e.dead {
		return nil
	}
	e.closed = true
	_ = e.machine.CloseSend() // fails if the link has failed
	e.end()
	e.gate.Close()
	e.w.k.After(lingering, func() {
		if !e.dead {
			_ = e.machine.Close()
			e.die()
		}
	})
	e.update()
	return nil
}
