package message

// A Source provides the data of a send that is not contiguous in memory, or is converted (MPI-4.1,
// 5.1.11 and 3.3.2).
type Source interface {
	// Pack writes the message's bytes from off on into dst, len(dst) of them. It is called once for
	// each byte of the message, in order.
	Pack(dst []byte, off int64)
}

// A Sink stores the data of a receive that is not contiguous in memory, or is converted.
type Sink interface {
	// Matched is called with the sender and the length of the message, before any of its data. It
	// returns the number of bytes that fit; the others are dropped.
	Matched(from Peer, total int64) (room int64)
	// Unpack stores the message's bytes from off on, each byte once, in order. src may be memory
	// that the sender can write to.
	Unpack(src []byte, off int64)
}

// scattered is the data of a request that has a Source or a Sink.
type scattered struct {
	source Source // for a send
	sink   Sink   // for a receive
	packed int64  // bytes that source has packed
}

func (e *operations) newScattered(x scattered) *scattered {
	a := e.scatteredSlab.get()
	*a = x
	return a
}

func (e *operations) putApart(r *Request) {
	*r.scattered = scattered{}
	e.scatteredSlab.put(r.scattered)
	r.scattered = nil
}

// The number of bytes that a Source packs at a time into memory of the engine.
const (
	packAhead = stageSize / 2
	// packBeside is the same for a link that has memory of its own, but no room in it.
	packBeside = 4 << 10
)

func (r *Request) pack(dst []byte) {
	r.scattered.source.Pack(dst, r.scattered.packed)
	r.scattered.packed += int64(len(dst))
}

// unpack passes to r's Sink as many of the bytes from off on as fit.
func (r *Request) unpack(b []byte, off int64) {
	if off < r.room {
		r.scattered.sink.Unpack(b[:min(int64(len(b)), r.room-off)], off)
	}
}

func (r *Request) store(b []byte) {
	if r.scattered == nil {
		copy(r.data, b)
	} else if len(b) > 0 {
		r.unpack(b, 0)
	}
}

// prepare packs what is committed to a link and not packed yet: into the link's own memory
// if there is room, else into memory of the engine, as much as fits. It returns how many
// segments can leave now.
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

// placeHead packs the first segment into the link's own memory, piece by piece while there
// is room.
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

// leave removes the first segment, all of which has been sent.
func (e *operations) leave(s *linkState) {
	if r := s.segments.pop().req; r != nil {
		r.flights--
		e.sendProgress(r)
	}
}

func (s *outputState) packing() *stage {
	if s.packed.buf == nil {
		s.packed.buf = make([]byte, stageSize)
	}
	return &s.packed
}

// copied is a Source of contiguous bytes.
type copied []byte

func (c copied) Pack(dst []byte, off int64) { copy(dst, c[off:]) }

// detach makes the rest of a segment independent of its request.
func (seg *segment) detach() {
	r := seg.req
	if r.scattered == nil {
		seg.buf, seg.req = append([]byte(nil), seg.buf...), nil
		return
	}
	own := make(copied, seg.rest)
	if seg.rest > 0 {
		r.pack(own)
	}
	seg.req = &Request{course: course{state: stateEnded, peer: r.peer, scattered: &scattered{source: own}, flights: 1}}
}

// move copies the message of s, a send to this proc itself, to the receive r.
func (e *matcher) move(s, r *Request) {
	n := min(s.total, r.room)
	switch {
	case n == 0:
	case s.scattered == nil:
		r.store(s.data[:n])
	case r.scattered == nil:
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
