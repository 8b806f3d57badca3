package message

import (
	"fmt"
	"math"

	"github.com/openimpi/impi/core/wire"
)

// BsendOverhead is the space in bytes that each buffered send takes in the attached buffer in
// addition to its data. It is MPI_BSEND_OVERHEAD (MPI-4.1, 3.6.1).
const BsendOverhead = 512

// Unlimited is the size of a BufferSpace without a limit.
const Unlimited = math.MaxInt

// BufferSpace limits the number of bytes of buffered sends that are in progress, like the buffer
// that a program attaches with MPI_Buffer_attach (MPI-4.1, 3.6). It is only a count: the memory is
// the engine's. The zero value has no buffer attached.
type BufferSpace struct {
	// Next is the BufferSpace that sends use if nothing is attached here; nil means the engine's
	// own.
	Next *BufferSpace

	on         bool
	size, used int
}

// Attach allows buffered sends of size bytes altogether, each counted with its BsendOverhead until
// it has left. The error wraps ErrBuffer if a buffer is attached already, or size is negative.
func (o *BufferSpace) Attach(size int) error {
	switch {
	case o.on:
		return fmt.Errorf("%w: one of %d bytes is attached already, detach it first", ErrBuffer, o.size)
	case size < 0:
		return fmt.Errorf("%w: cannot have %d bytes", ErrBuffer, size)
	}
	o.on, o.size = true, size
	return nil
}

// Detach removes the attached buffer and returns its size. If buffered sends are still in progress,
// done is false and nothing has changed: the driver makes progress and calls Detach again. If no
// buffer is attached the size is 0. MPI_Buffer_detach blocks until done is true (MPI-4.1, 3.6).
func (o *BufferSpace) Detach() (size int, done bool) {
	if o.used > 0 {
		return 0, false
	}
	size = o.size
	o.on, o.size = false, 0
	return size, true
}

// Used returns the bytes that buffered sends take that have not left yet, each with its
// BsendOverhead.
func (o *BufferSpace) Used() int { return o.used }

// BufferSpace returns the BufferSpace of buffered sends, unless UseBufferSpace sets another one for
// their context.
func (e *sender) BufferSpace() *BufferSpace { return &e.room }

// UseBufferSpace sets the BufferSpace of the buffered sends in a context; nil resets it to the
// engine's.
func (e *sender) UseBufferSpace(context wire.ContextID, o *BufferSpace) {
	if o == nil {
		delete(e.rooms, context)
		return
	}
	if e.rooms == nil {
		e.rooms = make(map[wire.ContextID]*BufferSpace)
	}
	e.rooms[context] = o
}

func (e *sender) roomOf(context wire.ContextID) *BufferSpace {
	for o := e.rooms[context]; o != nil; o = o.Next {
		if o.on {
			return o
		}
	}
	return &e.room
}

func (e *sender) reserveRoom(r *Request) bool {
	o := e.roomOf(r.env.Context)
	if !o.on || o.size-o.used < BsendOverhead || int64(o.size-o.used-BsendOverhead) < r.total {
		return false
	}
	r.room, r.taken = r.total+BsendOverhead, o
	o.used += int(r.room)
	return true
}

func (r *Request) giveRoom() {
	if r.taken != nil {
		r.taken.used -= int(r.room)
		r.room, r.taken = 0, nil
	}
}

func (e *operations) keepSource(r *Request) {
	r.data, r.pooled = e.buffers.get(int(r.total)), true
	if r.total > 0 {
		r.pack(r.data)
	}
	e.putApart(r)
}

// keepData makes a buffered send independent of the user's memory and shows it
// as done. Parts that are committed already are moved, too.
func (e *sender) keepData(r *Request) {
	if r.pooled {
		r.finish(&e.operations)
		return
	}
	own := e.buffers.get(len(r.data))
	copy(own, r.data)
	if r.flights > 0 {
		s := r.peer.link
		for i := range s.segments.len {
			if seg := s.segments.at(i); seg.req == r {
				// No part of it was sent: it was committed in this call.
				seg.buf = own[r.pos-int64(len(seg.buf)) : r.pos]
			}
		}
	}
	r.data, r.pooled = own, true
	r.finish(&e.operations)
}
