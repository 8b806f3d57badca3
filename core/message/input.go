package message

// The receive buffer of one link, into which one read brings many small packets. It begins
// small, because a proc of a large job has little traffic on most of its links, and grows
// when a read has filled it.
const (
	firstInput  = 1 << 10
	inputSize   = 64 << 10
	inputGrowth = 4
)

// After a payload of more than bulkData bytes, the next read asks for little more than a
// header, so that the next payload can be read straight to its destination instead of into
// the receive buffer.
const (
	bulkData  = 8 << 10
	bulkAhead = 1 << 10
)

type inputState struct {
	buf     []byte // receive buffer; bytes [r,w) have not been parsed yet
	r, w    int
	ahead   int  // number of bytes of buf that the next read may fill
	tight   bool // buf should be larger
	inBatch [2][]byte

	payload bool // a packet's data is being received:
	sender  *peer
	size    uint32   // size of all of it
	dst     []byte   // destination of the next bytes
	skip    int      // bytes after dst that are read and dropped
	filler  Recaller // fills dst by itself; nil: it does not
	recv    *Request // request that the packet belongs to, or
	msg     *Message // an unexpected message whose first packet this is

	uncounted bool // not a packet, but the data of a fast-box message
}

// Input returns the memory for the next bytes from l, to be filled as one sequence. It is never
// empty. The slices are valid until the next call of any method; Received reports the number of
// bytes that were filled.
func (e *reader) Input(l LinkID) [][]byte {
	s := e.link(l)
	if s.tight {
		s.growInput()
	}
	end := s.ahead
	if s.skip > 0 {
		end = len(s.buf)
	}
	s.inBatch[1] = s.buf[s.w:end]
	if len(s.dst) == 0 {
		return s.inBatch[1:]
	}
	s.inBatch[0] = s.dst
	return s.inBatch[:]
}

// Received records that n bytes of the last Input were filled. An error means that the peer broke
// the protocol; it is a *ProtocolError. Everything before the wrong packet has been handled, but
// the link is useless: close it and call Detach.
func (e *reader) Received(l LinkID, n int) error {
	s := e.link(l)
	if n < 0 || n > len(s.dst)+len(s.buf)-s.w {
		panic("message: more was received than there was room")
	}
	if s.err != nil {
		return s.err
	}
	k := min(n, len(s.dst))
	s.dst = s.dst[k:]
	s.w += n - k
	if s.w == len(s.buf) {
		s.tight = true
	}
	if s.err = e.parse(s); s.err != nil {
		s.r, s.w = 0, 0
		s.dst = nil
	}
	return s.err
}

// Arrived is Received for bytes that are in the link's own memory: it handles the complete packets
// at the front of b and returns the number of their bytes. The rest, and everything while a packet
// is incomplete, has to come by Input and Received. The other side may write to b at any time.
func (e *reader) Arrived(l LinkID, b []byte) (n int, err error) {
	s := e.link(l)
	if s.payload && len(s.dst) == 0 {
		n = min(s.skip, len(b))
		s.pass(b[:n])
		if s.skip == 0 {
			s.payload = false
			e.packetArrived(s)
		}
	}
	if s.payload || s.w > 0 {
		return n, s.err
	}
	for len(b)-n >= headerSize && s.err == nil {
		e.cfg.Dialect.Header(b[n:], &e.in)
		size := headerSize
		if e.in.Type.HasData() {
			if uint64(e.in.Len) > uint64(len(b)-n-headerSize) {
				break
			}
			size += int(e.in.Len)
		}
		if s.err = e.header(s); s.payload {
			data := b[n+headerSize : n+size]
			s.pass(data[copy(s.dst, data):])
			s.payload = false
			e.packetArrived(s)
		}
		n += size
	}
	return n, s.err
}

// Begun is Arrived for the first bytes of a packet that is longer than b: it handles all of b, and
// the rest has to come by Input and Received. It returns the number of bytes handled, 0 if b is not
// the start of such a packet.
func (e *reader) Begun(l LinkID, b []byte) (n int, err error) {
	s := e.link(l)
	if s.err != nil || s.payload || s.w > 0 || len(b) < headerSize {
		return 0, s.err
	}
	e.cfg.Dialect.Header(b, &e.in)
	data := b[headerSize:]
	if !e.in.Type.HasData() || uint64(e.in.Len) <= uint64(len(data)) {
		return 0, nil
	}
	if s.err = e.header(s); s.err != nil || !s.payload {
		return headerSize, s.err
	}
	k := copy(s.dst, data)
	s.dst = s.dst[k:]
	if k < len(data) {
		s.pass(data[k:])
	}
	return len(b), nil
}

// growInput makes the receive buffer larger, up to inputSize. At most the beginning of a
// header is in it then.
func (s *inputState) growInput() {
	if len(s.buf) < inputSize {
		buf := make([]byte, min(max(firstInput, inputGrowth*len(s.buf), s.skip), inputSize))
		copy(buf, s.buf[:s.w])
		s.buf, s.ahead = buf, len(buf)
	}
	s.tight = false
}

// parse handles all complete packets in the receive buffer, and copies what has come of an
// incomplete one to its destination.
func (e *reader) parse(s *linkState) error {
	for {
		if s.payload {
			if !s.takePayload() {
				s.r, s.w = 0, 0
				return nil
			}
			s.payload = false
			e.packetArrived(s)
		}
		if s.w-s.r < headerSize {
			s.w = copy(s.buf, s.buf[s.r:s.w])
			s.r = 0
			return nil
		}
		e.cfg.Dialect.Header(s.buf[s.r:], &e.in)
		s.r += headerSize
		if err := e.header(s); err != nil {
			return err
		}
	}
}

// takePayload moves payload from the receive buffer to its destination and reports whether
// that was all of it.
func (s *inputState) takePayload() bool {
	if len(s.dst) > 0 {
		k := copy(s.dst, s.buf[s.r:s.w])
		s.dst = s.dst[k:]
		s.r += k
	}
	if s.skip > 0 {
		k := min(s.skip, s.w-s.r)
		s.pass(s.buf[s.r : s.r+k])
		s.r += k
	}
	return len(s.dst) == 0 && s.skip == 0
}

// pass handles payload that is not read straight to its destination: it goes to the Sink
// that takes it, or is dropped.
func (s *inputState) pass(b []byte) {
	if r := s.recv; r != nil && r.scattered != nil && len(b) > 0 {
		r.unpack(b, r.pos+int64(s.size)-int64(s.skip))
	}
	s.skip -= len(b)
}

// startPayload sets the destination of the data of the packet in e.in: as much as fits goes
// into dst, the rest to the receive's Sink or nowhere.
func (e *linkTable) startPayload(s *linkState, p *peer, dst []byte) {
	n := int(e.in.Len)
	s.payload, s.sender, s.size = true, p, e.in.Len
	s.dst = dst[:min(n, len(dst))]
	s.skip = n - len(s.dst)
	s.ahead = len(s.buf)
	if n > bulkData {
		s.ahead = min(s.ahead, bulkAhead)
		s.tight = s.tight || s.skip > len(s.buf)
	}
}

func (e *reader) packetArrived(s *linkState) {
	p, r, m := s.sender, s.recv, s.msg
	s.sender, s.recv, s.msg, s.dst = nil, nil, nil, nil
	if s.uncounted {
		s.uncounted = false
		e.review(p)
	} else {
		e.received(p)
	}
	switch {
	case r != nil:
		e.recvProgress(r, int64(s.size))
	case m != nil:
		m.whole = true
		e.events++
		if r := m.req; r != nil {
			e.takeFirst(m, r)
		}
	}
}

// incomplete returns how many bytes are missing of a packet that has begun.
func (s *inputState) incomplete() int {
	switch {
	case s.payload:
		return len(s.dst) + s.skip
	case s.w > 0:
		return headerSize - s.w
	}
	return 0
}

// Recaller is a link that fills Input's memory also between calls, as in link.Recaller.
type Recaller interface {
	// Recall returns when the link does not write to that memory any more.
	Recall()
}

// FillsInput records that l may write to Input's memory until Recall returns. The engine calls that
// before it gives memory back to which bytes have not come.
func (e *linkTable) FillsInput(l LinkID, r Recaller) { e.link(l).filler = r }

// dropRest has the rest of the packet that is coming dropped, and its memory left alone.
func (s *inputState) dropRest() {
	if s.filler != nil && len(s.dst) > 0 {
		s.filler.Recall()
	}
	s.skip += len(s.dst)
	s.dst, s.recv, s.msg = nil, nil, nil
}

// dropInput gives up the packet of p that is being received, if there is one. Its bytes are
// still read, but dropped.
func (e *reader) dropInput(p *peer) {
	for _, s := range e.links {
		if s == nil || !s.payload || s.sender != p {
			continue
		}
		r, m := s.recv, s.msg
		s.dropRest()
		if m != nil {
			r = m.req
			e.lose(m)
		}
		if r != nil {
			e.end(r, p.down)
		}
	}
}
