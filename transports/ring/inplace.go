package ring

// Reserve gives room in the ring, unless it ends within the next n bytes.
func (l *Link) Reserve(n int) []byte {
	if l.ended || l.sendErr != nil || l.out.given != l.out.back || l.closed.Load() {
		return nil
	}
	return l.out.reserve(uint64(n))
}

// Ready tells whether something has come, or an impossible number.
func (l *Link) Ready() bool {
	n, err := l.in.waiting()
	return n > 0 || l.in.due() || err != nil
}

// Commit publishes what was reserved.
func (l *Link) Commit() bool {
	if !l.out.publish() {
		return false
	}
	if l.out.b.readerSleeps.Load() != 0 {
		l.wakeReader()
	}
	return true
}

// Peek gives what has come, up to the end of the ring.
func (l *Link) Peek() []byte {
	if l.recvErr != nil || l.closed.Load() {
		return nil
	}
	return l.in.peek()
}

// Discard lets the writer have the room of n bytes.
func (l *Link) Discard(n int) {
	l.in.tail += uint64(n)
	l.idle = 0
	l.free()
}

// reserve gives the next n bytes of room, which publish will send.
func (w *writer) reserve(n uint64) []byte {
	at := (w.head + w.placed) & w.mask
	if at+n > w.mask+1 {
		return nil
	}
	if free, err := w.room(w.placed + n); err != nil || free < w.placed+n {
		return nil
	}
	w.placed += n
	return w.data[at : at+n : at+n]
}

// publish shows the reader what was reserved.
func (w *writer) publish() bool {
	if w.placed == 0 {
		return false
	}
	w.head += w.placed
	w.placed = 0
	w.b.head.Store(w.head)
	return true
}

// peek gives what is there in one piece. An impossible head is for read to tell.
func (r *reader) peek() []byte {
	n, err := r.waiting()
	if err != nil || n == 0 {
		return nil
	}
	at := r.tail & r.mask
	return r.data[at:min(at+n, r.mask+1)]
}
