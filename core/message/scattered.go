package message

// A Source is the data of a send that does not lie in memory as it travels.
type Source interface {
	// Pack writes the message's bytes from off on into dst, all of it. Each byte of
	// the message is asked for once, in order.
	Pack(dst []byte, off int64)
}

// A Sink takes the data of a receive that does not lie in memory as it travels.
type Sink interface {
	// Matched says who sends the message, and how long it is, before anything of
	// it comes. It gives how many of the bytes fit; the others are dropped.
	Matched(from Peer, total int64) (room int64)
	// Unpack takes the message's bytes from off on, each byte once, in order. They
	// may lie in memory that the sender can write to.
	Unpack(src []byte, off int64)
}

// scattered is what a request has instead of memory.
type scattered struct {
	source Source // sends
	sink   Sink   // receives
	packed int64  // bytes that source has packed
}

func (e *operations) newApart(x scattered) *scattered {
	a := e.aparts.get()
	*a = x
	return a
}

// putApart gives back what r had instead of memory.
func (e *operations) putApart(r *Request) {
	*r.apart = scattered{}
	e.aparts.put(r.apart)
	r.apart = nil
}

// How much a Source packs at a time into memory that is not the link's own.
const (
	packAhead = stageSize / 2
	// packBeside is as much for a link that has memory of its own, but no room in it.
	packBeside = 4 << 10
)

// pack fills dst with the next bytes of r's Source.
func (r *Request) pack(dst []byte) {
	r.apart.source.Pack(dst, r.apart.packed)
	r.apart.packed += int64(len(dst))
}

// unpack gives to r's Sink what fits of the bytes from off on.
func (r *Request) unpack(b []byte, off int64) {
	if off < r.room {
		r.apart.sink.Unpack(b[:min(int64(len(b)), r.room-off)], off)
	}
}

// store puts the first bytes of r's message where they belong.
func (r *Request) store(b []byte) {
	if r.apart == nil {
		copy(r.data, b)
	} else if len(b) > 0 {
		r.unpack(b, 0)
	}
}

// prepare packs what is committed to a link and not packed yet: into the link's
// own memory if it has room, else into memory of the engine, as much as that
// holds. It gives the number of segments that can leave now.
func (e *sender) prepare(s *linkState) int {
	if s.space != nil {
		e.placeHead(s)
	}
	for i := range s.segments.len {
		seg := s.segments.at(i)
		if seg.rest == 0 {
			continue
		}
		if len(seg.buf) == 0 {
			k := min(seg.rest, packAhead)
			if s.space != nil {
				k = min(k, packBeside)
			}
			b, _ := s.packing().alloc(k)
			if b == nil {
				return i
			}
			seg.req.pack(b)
			seg.buf = b
			seg.rest -= k
		}
		if seg.rest > 0 {
			return i + 1
		}
		s.unpacked--
	}
	return s.segments.len
}

// placeHead packs the first segment into the link's own memory, piece by piece
// as long as there is room.
func (e *sender) placeHead(s *linkState) {
	for s.segments.len > 0 {
		seg := s.segments.at(0)
		if seg.rest == 0 || len(seg.buf) > 0 {
			return
		}
		b := s.piece(seg.rest)
		if b == nil {
			return
		}
		seg.req.pack(b)
		seg.rest -= len(b)
		s.placed += len(b)
		s.committed -= len(b)
		if seg.rest == 0 {
			s.unpacked--
			e.leave(s)
		}
	}
}

// piece reserves up to n bytes of the link's own memory.
func (s *outputState) piece(n int) []byte {
	for {
		if b := s.space.Reserve(n); b != nil || n <= packBeside {
			return b
		}
		n = max(n/2, packBeside)
	}
}

// leave takes off the first segment, all of which has left.
func (e *operations) leave(s *linkState) {
	if r := s.segments.pop().req; r != nil {
		r.flights--
		e.sendProgress(r)
	}
}

// packing is the memory into which Sources pack.
func (s *outputState) packing() *stage {
	if s.packed.buf == nil {
		s.packed.buf = make([]byte, stageSize)
	}
	return &s.packed
}

// copied is a Source that has its bytes in memory.
type copied []byte

func (c copied) Pack(dst []byte, off int64) { copy(dst, c[off:]) }

// detach makes what is left of a segment independent of its request.
func (seg *segment) detach() {
	r := seg.req
	if r.apart == nil {
		seg.buf, seg.req = append([]byte(nil), seg.buf...), nil
		return
	}
	own := make(copied, seg.rest)
	if seg.rest > 0 {
		r.pack(own)
	}
	seg.req = &Request{course: course{state: stateEnded, peer: r.peer, apart: &scattered{source: own}, flights: 1}}
}

// move copies the message of s, a send to this proc itself, to the receive r.
func (e *matcher) move(s, r *Request) {
	n := min(s.total, r.room)
	switch {
	case n == 0:
	case s.apart == nil:
		r.store(s.data[:n])
	case r.apart == nil:
		s.pack(r.data[:n])
	default:
		b := e.buffers.get(int(min(n, packAhead)))
		for off := int64(0); off < n; off += int64(len(b)) {
			b = b[:min(int64(len(b)), n-off)]
			s.pack(b)
			r.unpack(b, off)
		}
		e.buffers.put(b)
	}
}
