package resume

// writer is the frame that is being sent.
type writer struct {
	size int    // size of head
	off  int    // bytes of head that were sent
	left uint64 // bytes of the stream that follow head
	err  error  // error of the underlying link; nil while it works
	kind kind
	head [HelloSize]byte
}

func (w *writer) busy() bool { return w.off < w.size || w.left > 0 }

func (w *writer) begin(h header) {
	w.kind, w.size, w.off, w.left = h.kind, headerSize, 0, uint64(h.length)
	h.put(w.head[:])
}

// greet starts the HELLO of a new underlying link (docs/decisions/0015-link-resume.md).
func (l *state) greet() {
	h := Hello{
		Session: l.config.Session, Epoch: l.epoch,
		Oldest: l.out.acked, Received: l.in.received(), Ack: l.in.ack(),
		Window: uint32(l.config.Window), Checksum: l.config.Checksum,
	}
	l.told = h.Ack
	l.tx.kind, l.tx.size = kindHello, HelloSize
	h.put(l.tx.head[:])
	l.push()
}

func (l *state) flush() {
	for l.lower != nil && l.tx.err == nil && (l.tx.busy() || l.compose()) {
		if !l.push() {
			break
		}
	}
	if l.tx.err != nil {
		l.settle()
	}
}

func (l *state) compose() bool {
	if l.joining {
		return false
	}
	o := &l.out
	h := header{seq: o.next, ack: l.in.ack()}
	if l.summed {
		h.flags = flagSum
	}
	switch n := min(o.unsent(l.window), uint64(l.config.Frame)); {
	case n > 0:
		h.kind, h.length = kindData, uint32(n)
		if l.summed {
			l.scratch = o.parts(l.scratch[:0], o.next, n)
			h.sum = sum(l.scratch)
			clear(l.scratch)
		}
	case o.fin && o.next == o.end:
		h.kind = kindFin
	case l.ackIsDue(h.ack), l.hurry && h.ack > l.told:
		h.kind = kindAck
	default:
		return false
	}
	l.told, l.hurry = h.ack, false
	l.tx.begin(h)
	return true
}

// ackIsDue reports whether the acknowledgement is worth a frame of its own.
func (l *state) ackIsDue(ack uint64) bool {
	return ack-l.told >= l.due || ack > l.told && l.in.ended()
}

// setWindow sets the window of both directions and how often acknowledgements are due. The
// peer may have sent no more than a window beyond the last acknowledgement, so the next one
// must come before that.
func (l *state) setWindow(window uint64) {
	l.window, l.due = window, max(1, window/4)
	if a := uint64(l.config.Ack); a > 0 {
		l.due = min(l.due, a)
	}
}

// push offers the frame to the underlying link and reports whether all of it was taken.
func (l *state) push() bool {
	w := &l.tx
	l.scratch = l.scratch[:0]
	if w.off < w.size {
		l.scratch = append(l.scratch, w.head[w.off:w.size])
	}
	l.scratch = l.out.parts(l.scratch, l.out.next, w.left)
	if len(l.scratch) == 0 { // the rest of the frame is in memory that the user will lend again
		return false
	}
	n, err := l.lower.Send(l.scratch)
	clear(l.scratch)
	if err != nil {
		w.err = err
		return false
	}
	k := min(n, w.size-w.off)
	w.off += k
	w.left -= uint64(n - k)
	l.out.sent(uint64(n - k))
	if w.busy() {
		return false
	}
	if w.kind == kindFin {
		l.out.sent(1)
	}
	return true
}

// settle closes an underlying link that takes no more bytes. Before that it reads what is
// still in it, which may be what the peer sent last before it closed.
func (l *state) settle() {
	for range maxSteps {
		if l.lower == nil {
			return
		}
		if !l.step() {
			break
		}
	}
	if l.lower != nil {
		l.lose(l.tx.err)
	}
}
