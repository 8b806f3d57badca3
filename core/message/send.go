package message

import "github.com/openimpi/impi/core/wire"

// Send starts a send to a peer. env.Rank is the sender's own rank in the
// communicator. data belongs to the engine until the request is done; a small
// one is, mostly, when Send returns. count and dtype travel for information.
//
// A send to a peer that is down is done at once and has failed, so is a buffered
// one that does not fit.
func (e *sender) Send(to Peer, env Envelope, mode Mode, data []byte, count int64, dtype uint64) *Request {
	p := e.peers.find(to)
	if p == nil {
		p = e.newPeer(to)
	}
	r := e.newRequest()
	r.peer, r.env, r.mode = p, env, mode
	r.data, r.total = data, int64(len(data))
	r.count, r.dtype = count, dtype
	e.launch(r)
	return r
}

// SendFrom is Send of size bytes that src packs. src belongs to the engine until
// the request is done.
func (e *sender) SendFrom(to Peer, env Envelope, mode Mode, src Source, size, count int64, dtype uint64) *Request {
	r := e.newRequest()
	r.peer, r.env, r.mode = e.peer(to), env, mode
	r.apart, r.total = e.newApart(scattered{source: src}), size
	r.count, r.dtype = count, dtype
	e.launch(r)
	return r
}

// launch starts a send that is filled in.
func (e *sender) launch(r *Request) {
	p := r.peer
	r.kind, r.state = kindSend, stateQueued
	e.sends++
	if p.down != nil {
		e.end(r, p.down)
		return
	}
	if r.mode == Buffered {
		if !e.reserveRoom(r) {
			e.end(r, ErrBuffer)
			return
		}
		if r.apart != nil {
			e.keepSource(r)
		}
	}
	if p == e.self {
		e.sendSelf(r)
	} else {
		e.sendRemote(p, r)
	}
	if r.mode == Buffered && r.busy {
		e.keepData(r)
	}
}

// SendEager is Send, in standard mode, for a short message that nothing keeps from
// leaving: data is the caller's again, nobody has to wait for anything, and there
// is no request. It gives the link by which the message leaves, NoLink if it has left as
// a fast-box message. ok is false if this is no such message; then nothing has happened.
func (e *sender) SendEager(to Peer, env Envelope, data []byte, count int64, dtype uint64) (l LinkID, ok bool) {
	p := e.peers.find(to)
	if p != nil && p.writeFastBox(&env, data, dtype) {
		return NoLink, true
	}
	if p == nil || len(data) > e.cfg.StageLimit || int64(len(data)) > p.as.maxData || !p.idle() || !p.affords(int64(len(data))) {
		return NoLink, false
	}
	b := p.link.reserve(headerSize + len(data))
	if b == nil {
		return NoLink, false
	}
	p.sent++
	p.charge(int64(len(data)))
	o := &e.out
	o.Type, o.Len, o.MsgLen = wire.PkData, uint32(len(data)), uint64(len(data))
	o.Src, o.Dest = p.as.self, p.proc
	o.SrcReq, o.DestReq, o.Seq = 0, 0, p.sent
	o.LSRank, o.Tag, o.Context = env.Rank, env.Tag, env.Context
	o.Count, o.Datatype = count, dtype
	if e.cfg.Dialect == wire.Draft {
		draftOut(o)
	}
	e.cfg.Dialect.PutHeader(b, o)
	copy(b[headerSize:], data)
	p.window.Sent()
	return p.link.id, true
}

// idle tells whether a packet to p can be committed before any other. A peer
// that is down has no link.
func (p *peer) idle() bool {
	s := p.link
	return s != nil && !p.waiting() && p.window.Open() &&
		s.owing.len == 0 && s.ready.len == 0 && s.committed < s.limit && s.unpacked == 0 && s.err == nil
}

// sendRemote commits the first packet if nothing is before it, or queues it.
func (e *sender) sendRemote(p *peer, r *Request) {
	if r.apart == nil && r.mode != Synchronous && p.writeFastBox(&r.env, r.data, r.dtype) {
		r.pos, r.seq, r.state = r.total, p.sent, stateSent
		e.sendProgress(r)
		return
	}
	idle := p.idle()
	p.firsts.push(r)
	if p.on && p.link != nil && !p.affords(min(r.total, p.piece(r))) {
		p.link.needy, idle = true, false
	}
	if !idle || !e.emitData(p.link, p) {
		e.wake(p)
	}
}

// sendProgress ends a send that has nothing left to do.
func (e *operations) sendProgress(r *Request) {
	if r.state == stateSent && r.flights == 0 && !r.needAck {
		e.end(r, nil)
	}
}

// syncAcked takes the peer's word that the message is matched.
//
// IMPI ch.3, Long Messages: one SYNCACK completes the synchronous send and asks
// for the continuation packets, whichever are needed.
func (e *sender) syncAcked(p *peer) {
	r := e.ids.find(e.in.SrcReq)
	if r == nil || r.kind != kindSend || r.peer != p || !r.needAck {
		e.counters.StraySyncAcks++
		return
	}
	r.needAck = false
	r.remote = e.in.DestReq
	if r.pos < r.total {
		r.state = stateRest
		p.rests.push(r)
		e.wake(p)
		return
	}
	r.state = stateSent
	e.sendProgress(r)
}
