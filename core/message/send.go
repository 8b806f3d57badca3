package message

import "github.com/openimpi/impi/core/wire"

// Send starts a send to a peer (MPI-4.1, 3.7.2). env.Rank is the sender's own rank in the
// communicator. data belongs to the engine until the request is done; a short send usually is when
// Send returns. count and dtype are sent for information.
//
// A send to a peer that is down, and a buffered send that does not fit, are done at once and have
// failed.
func (e *sender) Send(to Peer, env Envelope, mode Mode, data []byte, count int64, dtype uint64) *Request {
	p := e.peers.find(to)
	if p == nil {
		p = e.newPeer(to)
	}
	r := e.newRequest()
	r.peer, r.env, r.mode = p, env, mode
	r.data, r.total = data, int64(len(data))
	r.count, r.dtype = count, dtype
	e.beginSend(r)
	return r
}

// SendFrom is Send of size bytes that src packs. src belongs to the engine until the
// request is done.
func (e *sender) SendFrom(to Peer, env Envelope, mode Mode, src Source, size, count int64, dtype uint64) *Request {
	r := e.newRequest()
	r.peer, r.env, r.mode = e.peer(to), env, mode
	r.scattered, r.total = e.newScattered(scattered{source: src}), size
	r.count, r.dtype = count, dtype
	e.beginSend(r)
	return r
}

// beginSend starts a send whose fields are set.
func (e *sender) beginSend(r *Request) {
	p := r.peer
	r.kind, r.state = kindSend, stateQueued
	e.sends++
	if err := e.Failed(r.env.Context); err != nil {
		e.end(r, err)
		return
	}
	if p.down != nil {
		e.end(r, p.down)
		return
	}
	if r.mode == Buffered {
		if !e.reserveRoom(r) {
			e.end(r, ErrBuffer)
			return
		}
		if r.scattered != nil {
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

// SendEager is Send, in standard mode, for a short message that can leave at once: data is the
// caller's again and there is no request. Only a message that is one DATA packet can leave so (IMPI
// ch.3, Message Passing Protocols). l is the link by which the message leaves; the driver must
// flush it unless it is NoLink, for a fast-box message, which has already been sent. If the
// message cannot be sent so, ok is false and nothing has changed.
func (e *sender) SendEager(to Peer, env Envelope, data []byte, count int64, dtype uint64) (l LinkID, ok bool) {
	p := e.peers.find(to)
	if e.Failed(env.Context) != nil {
		return NoLink, false
	}
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
	p.bytes += uint64(len(data))
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

// SendFastBox is SendEager for a message that leaves as a fast-box message.
func (e *sender) SendFastBox(to Peer, env Envelope, data []byte, dtype uint64) bool {
	p := e.peers.find(to)
	return p != nil && e.Failed(env.Context) == nil && p.writeFastBox(&env, data, dtype)
}

// idle reports whether a new packet to p may be committed at once: the window is open, and nothing
// waits to leave for p or by its link. A peer that is down has no link.
func (p *peer) idle() bool {
	s := p.link
	return s != nil && !p.waiting() && p.window.Open() &&
		s.owing.len == 0 && s.ready.len == 0 && s.committed < s.limit && s.unpacked == 0 && s.err == nil
}

// sendRemote commits the first packet if nothing has to be sent before it, or queues the send, so
// that messages do not overtake each other (MPI-4.1, 3.5).
func (e *sender) sendRemote(p *peer, r *Request) {
	if r.scattered == nil && r.mode != Synchronous && p.writeFastBox(&r.env, r.data, r.dtype) {
		r.pos, r.seq, r.state = r.total, p.sent, stateSent
		e.sendProgress(r)
		return
	}
	idle := p.idle()
	p.firsts.push(r)
	if p.on && p.link != nil && !p.affords(min(r.total, p.piece(r))) {
		p.link.wantsAllowance, idle = true, false
	}
	if !idle || !e.emitData(p.link, p) {
		e.wake(p)
	}
}

// sendProgress ends a send if nothing is left to be done for it.
func (e *operations) sendProgress(r *Request) {
	if r.state == stateSent && r.flights == 0 && !r.needAck {
		e.end(r, nil)
	}
}

// syncAcked handles the peer's SYNCACK: the message is matched.
//
// IMPI ch.3, Long Messages: one SYNCACK completes the synchronous send and asks for the
// continuation packets, whichever are needed.
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
