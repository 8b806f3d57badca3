package message

import "github.com/openimpi/impi/core/wire"

const headerSize = wire.HeaderSize

// emit commits the next counted packet to p. It returns false if the link has no room for
// it now. The window must be open and something waiting.
//
// IMPI ch.3, Packet Protocol: each packet counts, whatever its kind, except a PROTOACK.
func (e *sender) emit(s *linkState, p *peer) bool {
	if p.control.len > 0 {
		b := s.reserve(headerSize)
		if b == nil {
			return false
		}
		e.putControl(b, p, p.control.pop())
		p.window.Sent()
		return true
	}
	return e.emitData(s, p)
}

func (e *sender) emitData(s *linkState, p *peer) bool {
	turn := p.turn
	r := p.nextSend()
	n := min(r.total-r.pos, p.piece(r))
	sync := r.mode == Synchronous || r.total > p.as.maxData
	if r.state == stateQueued && !p.affords(n) {
		n, sync = min(n, headData), true
	}
	b := e.packetRoom(s, r, int(n))
	if b == nil {
		p.turn = turn
		return false
	}
	if r.state == stateQueued {
		p.firsts.remove(r)
	}
	e.putData(b, p, r, uint32(n), sync)
	switch {
	case len(b) == headerSize && n > 0:
		s.commitData(r, int(n))
	case r.scattered == nil:
		copy(b[headerSize:], r.data[r.pos:])
	case n > 0:
		r.pack(b[headerSize:])
	}
	p.window.Sent()
	e.packetCommitted(p, r, n)
	return true
}

// packetRoom reserves memory for the header of the next packet of r, and for its
// n data bytes if they are to be copied there.
func (e *sender) packetRoom(s *linkState, r *Request, n int) []byte {
	packed := r.scattered == nil || r.scattered.packed == r.pos // the data is contiguous, or is packed next
	if n <= e.cfg.StageLimit && packed {
		return s.reserve(headerSize + n)
	}
	if r.scattered != nil && packed {
		if b := s.place(headerSize + n); b != nil {
			return b
		}
	}
	return s.reserve(headerSize)
}

// commitData commits the next n bytes of r behind their packet's header, without copying
// them.
func (s *outputState) commitData(r *Request, n int) {
	seg := segment{req: r}
	if r.scattered == nil {
		seg.buf = r.data[r.pos : r.pos+int64(n)]
	} else {
		seg.rest = n
		s.unpacked++
	}
	s.segments.push(seg)
	s.committed += n
	r.flights++
}

func (e *sender) packetCommitted(p *peer, r *Request, n int64) {
	r.pos += n
	if r.state == stateRest {
		if r.pos < r.total {
			return
		}
		p.rests.remove(r)
	} else if r.needAck {
		r.state = stateWaiting
		return
	}
	r.state = stateSent
	e.sendProgress(r)
}

// putData writes the header of the next packet of r, which has n data bytes; sync says that
// its first packet has to be answered.
//
// IMPI ch.3, Message Passing Protocols: a message of at most the data length is one DATA,
// or one DATASYNC if it is synchronous. A longer one begins with a DATASYNC; the rest
// follows the SYNCACK as DATA packets with its pk_drqid.
func (e *sender) putData(b []byte, p *peer, r *Request, n uint32, sync bool) {
	o := &e.out
	o.Type, o.Src, o.DestReq = wire.PkData, p.as.self, 0
	switch {
	case r.state == stateRest:
		o.DestReq = r.remote
	case sync:
		o.Type = wire.PkDataSync
		r.needAck = true
		e.ids.add(r)
		fallthrough
	default:
		p.sent++
		p.bytes += uint64(r.total)
		p.charge(int64(n))
		r.seq = p.sent
	}
	o.Len, o.Dest, o.SrcReq, o.MsgLen = n, p.proc, r.id, uint64(r.total)
	o.LSRank, o.Tag, o.Context = r.env.Rank, r.env.Tag, r.env.Context
	o.Seq, o.Count, o.Datatype = r.seq, r.count, r.dtype
	if e.cfg.Dialect == wire.Draft {
		draftOut(o)
	}
	e.cfg.Dialect.PutHeader(b, o)
}

// putControl writes a counted packet without data.
func (e *sender) putControl(b []byte, p *peer, c control) {
	h := wire.Packet{Type: c.typ, Src: p.as.self, Dest: p.proc, SrcReq: c.srcReq, DestReq: c.dstReq}
	if c.typ == wire.PkSyncAck {
		h.MsgLen = e.grant(p)
	}
	e.cfg.Dialect.PutHeader(b, &h)
}

// putProtoAck writes a PROTOACK that is due, or one that only brings an allowance.
//
// IMPI ch.3, Packet Protocol: it is not counted, so it never waits for a window.
func (e *sender) putProtoAck(b []byte, p *peer) {
	h := wire.Packet{Type: wire.PkProtoAck, Src: p.as.self, Dest: p.proc, MsgLen: e.grant(p)}
	if p.acks > 0 {
		p.acks--
	} else {
		h.SrcReq = saysMore
	}
	e.cfg.Dialect.PutHeader(b, &h)
}
