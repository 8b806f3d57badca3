package message

// commitLimit bounds the bytes that are committed to a link and that the link has not taken
// yet. There is room for some of the largest packets, since over TCP one long write moves
// data a quarter faster than one write for each packet, and links of shared memory always
// have one to take. It is small enough that a PROTOACK, which cannot overtake committed
// bytes, is not late.
const commitLimit = 1 << 20

type outputState struct {
	stage      stage
	segments   fifo[segment] // committed, in order
	committed  int           // bytes in segments
	limit      int           // maximum of committed
	owing      fifo[*peer]   // peers with PROTOACKs that are due
	ready      fifo[*peer]   // peers with counted packets that may leave
	outBatch   [][]byte
	space      WritableMemory // the link's own memory, if packets can be written there directly
	placed     int            // bytes written to space since the last Output
	boxes      FastBoxes      // fast boxes of the link, or nil
	apartBoxes apartBoxes     // boxes, if they support messages with the data apart
	packed     stage          // memory of the engine for data that Sources have packed
	unpacked   int            // number of segments that a Source has not packed completely yet
}

// WritableMemory is memory of a link into which packets are written directly, as in link.Memory.
type WritableMemory interface {
	// Reserve returns the next n bytes, or nil if there is no contiguous room.
	Reserve(n int) []byte
}

// InPlace lets packets for l be written into space as long as there is room and nothing
// else waits to leave by l. After Output the driver commits the space first, and then sends
// what Output returned.
func (e *linkTable) InPlace(l LinkID, space WritableMemory) {
	e.link(l).space = space
}

// RaiseOutputLimit records that l continues to read up to n bytes of Output's memory after they
// were written, as a link does that lends memory; Sent counts the bytes once the link is done with
// them. So up to n bytes may be committed to it.
func (e *linkTable) RaiseOutputLimit(l LinkID, n int) {
	s := e.link(l)
	s.limit = max(s.limit, n)
}

// HasNewOutput reports whether Output would return more than it did the last time.
func (e *linkTable) HasNewOutput(l LinkID) bool {
	s := e.linkOrNil(l)
	return s != nil && (s.owing.len > 0 || s.ready.len > 0 && s.committed < s.limit)
}

// PacksPiecewise reports whether data that leaves by l is packed piece by piece, the next piece
// once the last one is sent.
func (e *linkTable) PacksPiecewise(l LinkID) bool {
	s := e.linkOrNil(l)
	return s != nil && s.unpacked > 0
}

// segment is bytes that are committed to a link: in staging memory, or the data of a send.
type segment struct {
	buf    []byte
	req    *Request // the send whose data this is; nil: no send waits for it
	staged bool
	end    int // end offset in staging memory
	rest   int // bytes after buf that req's Source has not packed yet
}

// HasOutput reports whether Output might return something: sends that wait for a window or a
// SYNCACK do not count. It is cheap.
func (e *linkTable) HasOutput(l LinkID) bool {
	s := e.linkOrNil(l)
	return s != nil && s.busy()
}

func (s *outputState) busy() bool {
	return s.committed > 0 || s.placed > 0 || s.owing.len > 0 || s.ready.len > 0
}

// Output returns the bytes to write to l now, as one sequence, or nil if there are none. The slices
// are valid until the next call of any method; Sent must then be called with the number of bytes
// written, even if it is 0.
func (e *sender) Output(l LinkID) [][]byte {
	s := e.linkOrNil(l)
	if s == nil {
		return nil
	}
	if s.owing.len > 0 || s.ready.len > 0 {
		e.fill(s)
	}
	n := s.segments.len
	if s.unpacked > 0 {
		n = e.prepare(s)
	}
	s.placed = 0
	if n == 0 {
		return nil
	}
	s.outBatch = s.outBatch[:0]
	for i := range n {
		s.outBatch = append(s.outBatch, s.segments.at(i).buf)
	}
	return s.outBatch
}

// Sent records that the link has taken the next n bytes of the last Output.
func (e *linkTable) Sent(l LinkID, n int) {
	s := e.link(l)
	if n < 0 || n > s.committed {
		panic("message: more bytes were sent than the message has")
	}
	s.committed -= n
	for n > 0 {
		seg := s.segments.at(0)
		k := min(n, len(seg.buf))
		n -= k
		if seg.staged {
			s.stage.consume(k)
		} else if seg.req != nil && seg.req.scattered != nil {
			s.packed.consume(k)
		}
		if k < len(seg.buf) {
			seg.buf = seg.buf[k:]
			return
		}
		if seg.rest > 0 {
			seg.buf = nil
			return
		}
		e.leave(s)
	}
}

// Idle reports whether the engine has finished all sends, answers included, so that this proc could
// close its links. A host sends its FINI once all its procs are idle (IMPI ch.3, Finalization).
func (e *Engine) Idle() bool {
	if e.sends > 0 || e.unrouted.len > 0 {
		return false
	}
	for _, s := range e.links {
		if s != nil && e.HasOutput(s.id) {
			return false
		}
	}
	for _, p := range e.peers.made {
		if p.down == nil && (p.owes() || p.waiting()) {
			return false
		}
	}
	return true
}

// fill commits packets to the link. PROTOACKs go first and never wait for a window (IMPI ch.3,
// Packet Protocol); then the peers that may send have one packet each in turn, so that none keeps
// the others from the link.
func (e *sender) fill(s *linkState) {
	for s.owing.len > 0 {
		p := *s.owing.at(0)
		for p.owes() {
			b := s.reserve(headerSize)
			if b == nil {
				return
			}
			e.putProtoAck(b, p)
		}
		p.owing = false
		s.owing.pop()
	}
	for s.committed < s.limit && s.ready.len > 0 && (s.space == nil || s.unpacked == 0) {
		p := *s.ready.at(0)
		if p.down == nil && p.window.Open() && p.waiting() {
			if !e.emit(s, p) {
				return
			}
		}
		s.ready.pop()
		p.ready = false
		e.wake(p)
	}
}

// reserve commits n bytes of the link's own memory or of staging memory, which the caller
// fills in. It returns nil if there is no room before something has been sent.
func (s *outputState) reserve(n int) []byte {
	if b := s.place(n); b != nil {
		return b
	}
	b, at := s.stage.alloc(n)
	if b == nil {
		if len(s.stage.buf) == stageSize {
			return nil
		}
		s.growStage(n)
		b, at = s.stage.alloc(n)
	}
	s.committed += n
	if s.segments.len > 0 {
		if last := s.segments.at(s.segments.len - 1); last.staged && last.end == at {
			last.buf = last.buf[:len(last.buf)+n]
			last.end += n
			return b
		}
	}
	s.segments.push(segment{buf: b, staged: true, end: at + n})
	return b
}

// place commits n bytes of the link's own memory, if there is room and nothing else has to
// leave before them.
func (s *outputState) place(n int) []byte {
	if s.space == nil || s.committed > 0 {
		return nil
	}
	b := s.space.Reserve(n)
	s.placed += len(b)
	return b
}

// growStage allocates new staging memory with room for n bytes. The old one is dropped once
// its bytes have left.
func (s *outputState) growStage(n int) {
	for i := range s.segments.len {
		s.segments.at(i).staged = false
	}
	size := max(firstStage, stageGrowth*len(s.stage.buf))
	for size < n {
		size *= stageGrowth
	}
	s.stage = stage{buf: make([]byte, min(size, stageSize))}
}

// dropOutput removes the sends to p from their link. A committed packet still has to leave
// completely, because others follow it, but it no longer refers to the user's memory.
func (e *linkTable) dropOutput(p *peer) {
	if p.link == nil {
		return
	}
	for i := range p.link.segments.len {
		if seg := p.link.segments.at(i); seg.req != nil && seg.req.peer == p {
			r := seg.req
			seg.detach()
			if r.flights--; r.flights == 0 && r.state == stateSent {
				e.end(r, p.down)
			}
		}
	}
}
