package message

import (
	"fmt"
	"math"

	"github.com/openimpi/impi/core/wire"
)

// BsendOverhead is what each buffered send takes of the attached buffer besides
// its data, in bytes.
const BsendOverhead = 512

// Unlimited is the size of a Room that any number of bytes fit in.
const Unlimited = math.MaxInt

// Room is what buffered sends take from until they have left: how many bytes, as
// the memory itself is the engine's. The zero value has none attached.
type Room struct {
	// Next is where sends turn to that find nothing attached here; nil: the engine's
	// own.
	Next *Room

	on         bool
	size, used int
}

// Attach allows buffered sends of size bytes altogether, each counted with its
// BsendOverhead until it has left.
func (o *Room) Attach(size int) error {
	switch {
	case o.on:
		return fmt.Errorf("%w: one of %d bytes is attached already, detach it first", ErrBuffer, o.size)
	case size < 0:
		return fmt.Errorf("%w: cannot have %d bytes", ErrBuffer, size)
	}
	o.on, o.size = true, size
	return nil
}

// Detach takes away what was attached and gives its size. done is false as long as
// buffered sends are on their way; nothing has changed then, and the driver asks
// again after making progress. Without a buffer it gives 0.
func (o *Room) Detach() (size int, done bool) {
	if o.used > 0 {
		return 0, false
	}
	size = o.size
	o.on, o.size = false, 0
	return size, true
}

// Used is how many bytes are taken: those of buffered sends that have not left.
func (o *Room) Used() int { return o.used }

// Room is what buffered sends take from unless UseRoom says otherwise.
func (e *sender) Room() *Room { return &e.room }

// UseRoom has buffered sends in a context take from o; nil: from Room again.
func (e *sender) UseRoom(context wire.ContextID, o *Room) {
	if o == nil {
		delete(e.rooms, context)
		return
	}
	if e.rooms == nil {
		e.rooms = make(map[wire.ContextID]*Room)
	}
	e.rooms[context] = o
}

// roomOf is what a buffered send in a context takes from.
func (e *sender) roomOf(context wire.ContextID) *Room {
	for o := e.rooms[context]; o != nil; o = o.Next {
		if o.on {
			return o
		}
	}
	return &e.room
}

// reserveRoom takes the room that r needs, if there is so much.
func (e *sender) reserveRoom(r *Request) bool {
	o := e.roomOf(r.env.Context)
	if !o.on || o.size-o.used < BsendOverhead || int64(o.size-o.used-BsendOverhead) < r.total {
		return false
	}
	r.room, r.taken = r.total+BsendOverhead, o
	o.used += int(r.room)
	return true
}

// giveRoom gives it back.
func (r *Request) giveRoom() {
	if r.taken != nil {
		r.taken.used -= int(r.room)
		r.room, r.taken = 0, nil
	}
}

// keepSource packs all of a buffered send, so that it is one of memory.
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
				// Nothing of it is sent: it was committed by this very call.
				seg.buf = own[r.pos-int64(len(seg.buf)) : r.pos]
			}
		}
	}
	r.data, r.pooled = own, true
	r.finish(&e.operations)
}
