package message

import "fmt"

// BsendOverhead is what each buffered send takes of the attached buffer besides
// its data, in bytes.
const BsendOverhead = 512

// attached is the room for buffered sends. The memory itself is the engine's.
type attached struct {
	on         bool
	size, used int
}

// AttachBuffer allows buffered sends of size bytes altogether, each counted with
// its BsendOverhead until it has left.
func (e *Engine) AttachBuffer(size int) error {
	switch {
	case e.attached.on:
		return fmt.Errorf("%w: one of %d bytes is attached already, detach it first", ErrBuffer, e.attached.size)
	case size < 0:
		return fmt.Errorf("%w: cannot have %d bytes", ErrBuffer, size)
	}
	e.attached = attached{on: true, size: size}
	return nil
}

// DetachBuffer takes the buffer away and gives its size. done is false as long
// as buffered sends are on their way; nothing has changed then, and the driver
// asks again after making progress. Without a buffer it gives 0.
func (e *Engine) DetachBuffer() (size int, done bool) {
	if e.attached.used > 0 {
		return 0, false
	}
	size = e.attached.size
	e.attached = attached{}
	return size, true
}

// Buffered is how many bytes of the attached buffer are taken: those of buffered
// sends that have not left.
func (e *Engine) Buffered() int { return e.attached.used }

// reserveRoom takes the room that r needs, if there is so much.
func (e *Engine) reserveRoom(r *Request) bool {
	a := &e.attached
	if !a.on || a.size-a.used < BsendOverhead || int64(a.size-a.used-BsendOverhead) < r.total {
		return false
	}
	r.room = r.total + BsendOverhead
	a.used += int(r.room)
	return true
}

// keepSource packs all of a buffered send, so that it is one of memory.
func (e *Engine) keepSource(r *Request) {
	r.data, r.pooled = e.buffers.get(int(r.total)), true
	if r.total > 0 {
		r.pack(r.data)
	}
	e.putApart(r)
}

// keepData makes a buffered send independent of the user's memory and shows it
// as done. Parts that are committed already are moved, too.
func (e *Engine) keepData(r *Request) {
	if r.pooled {
		r.finish(e)
		return
	}
	own := e.buffers.get(len(r.data))
	copy(own, r.data)
	if r.flights > 0 {
		s := r.peer.link
		for i := range s.segments.len {
			if seg := s.segments.at(i); seg.req == r {
				// Nothing of it is sent: it was committed by this very call.
				seg.buf = own[r.pos-int64(len(seg.buf)) : r.pos]
			}
		}
	}
	r.data, r.pooled = own, true
	r.finish(e)
}
