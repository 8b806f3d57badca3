package message

import (
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// Recv starts a receive into buf, which belongs to the engine until the request is done. from is
// the only peer whose messages match, or NoPeer with AnySource. If that peer goes down the receive
// fails; messages that the peer had sent before are still received. For a message longer than buf
// the error is ErrTruncate (MPI-4.1, 3.2.4).
func (e *matcher) Recv(env Envelope, from Peer, buf []byte) *Request {
	r := e.newReceive(buf)
	e.post(r, env, from)
	return r
}

// RecvOwn is Recv for a receive that the library posts for any message in a context of its own, in
// which the program receives nothing.
func (e *matcher) RecvOwn(env Envelope, from Peer, buf []byte) *Request {
	r := e.newReceive(buf)
	r.entry.Own = true
	e.post(r, env, from)
	return r
}

// RecvInto is Recv into sink, which belongs to the engine until the request is done. If the
// receive fails, Matched may not have been called.
func (e *matcher) RecvInto(env Envelope, from Peer, sink Sink) *Request {
	r := e.newReceive(nil)
	r.scattered = e.newScattered(scattered{sink: sink})
	e.post(r, env, from)
	return r
}

// post matches a receive with the oldest unexpected message that fits, or queues it behind earlier
// receives (MPI-4.1, 3.5).
func (e *matcher) post(r *Request, env Envelope, from Peer) {
	r.env, r.from = env, from
	if err := e.Failed(env.Context); err != nil {
		e.end(r, err)
		return
	}
	key := e.key(&env, from)
	if m, ok := e.unexpected.Find(key); ok {
		e.unexpected.Remove(&m.entry)
		e.accept(m, r)
		return
	}
	if from != NoPeer && e.lost > 0 {
		if down := e.Unreachable(from); down != nil {
			e.end(r, down)
			return
		}
	}
	r.state = statePosted
	e.posted.Add(&r.entry, key)
}

func (e *matcher) newReceive(buf []byte) *Request {
	r := e.newRequest()
	r.kind, r.data, r.room = kindRecv, buf, int64(len(buf))
	return r
}

// firstPacket matches the first packet of a message with a posted receive, or queues the
// message.
//
// IMPI ch.3, Message Matching: the first packets decide the order, and a context that this
// proc does not know yet is no reason to refuse a message.
func (e *matcher) firstPacket(s *linkState, p *peer) {
	in := &e.in
	if in.Type == wire.PkDataSync && in.MsgLen > uint64(in.Len) && int64(in.Len) < p.as.maxData && !p.on {
		e.counters.ShortPackets++
	}
	p.arrives(int64(in.Len))
	if e.Failed(in.Context) != nil {
		e.counters.LatePackets++
		e.startPayload(s, p, nil)
		return
	}
	key := match.Key{Context: in.Context, Source: in.LSRank, Tag: in.Tag}
	r, ok := e.posted.Match(key)
	if !ok {
		m := e.newMessage(p, int64(in.MsgLen))
		m.srcReq, m.sync = in.SrcReq, in.Type == wire.PkDataSync
		m.count, m.dtype = in.Count, in.Datatype
		m.keep(cost(int64(in.Len)))
		m.buf = e.buffers.get(int(in.Len))
		e.unexpected.Add(&m.entry, key)
		s.msg = m
		e.startPayload(s, p, m.buf)
		return
	}
	e.begin(r, p, key, int64(in.MsgLen))
	r.remote, r.count, r.dtype = in.SrcReq, in.Count, in.Datatype
	if in.Type == wire.PkDataSync {
		e.syncAck(r, in.MsgLen > uint64(in.Len))
	}
	r.state = stateFirst
	s.recv = r
	e.startPayload(s, p, r.data)
}

func (e *matcher) begin(r *Request, p *peer, key match.Key, total int64) {
	r.peer, r.total = p, total
	r.status.Source, r.status.Peer, r.status.Tag = e.source(key, p), p.index, key.Tag
	if r.scattered != nil {
		r.room = max(0, r.scattered.sink.Matched(p.index, total))
	}
	if e.there != nil && r.scattered == nil && total > 0 && !e.there(r.data[:min(total, r.room)]) {
		r.data, r.room = nil, 0
		r.status.Err = ErrMemory
		return
	}
	r.status.Len = min(total, r.room)
	if total > r.room {
		r.status.Err = ErrTruncate
	}
}

// syncAck tells the sender that its message is matched. A nonzero ID asks for the rest of a
// long message.
//
// A message that does not fit is acknowledged like any other: the protocol has no refusal,
// so all of it is received, and what does not fit is dropped.
//
// IMPI ch.3, Long Messages: the SYNCACK returns the sender's pk_srqid and brings pk_drqid, which
// the rest of the message carries.
func (e *matcher) syncAck(r *Request, long bool) {
	if long {
		e.ids.add(r)
	}
	e.answer(r.peer, wire.PkSyncAck, r.remote, r.id)
}

// continuation finds the receive that a packet belongs to (IMPI ch.3, Long Messages: by its
// pk_drqid).
func (e *matcher) continuation(s *linkState, p *peer) error {
	in := &e.in
	r := e.ids.find(in.DestReq)
	if r == nil || r.kind != kindRecv || r.state != stateRest || r.peer != p {
		if r = e.findRest(p, in.SrcReq); r == nil && e.gaveUp {
			e.counters.LatePackets++
			e.startPayload(s, p, nil)
			return nil
		} else if r == nil {
			return e.fault(s, "pk_drqid", uint64(in.DestReq), "no message of this peer is expected to go on")
		}
		e.counters.UnknownDestReq++
	}
	if int64(in.Len) > r.total-r.pos {
		return e.fault(s, "pk_len", uint64(in.Len), "the message has fewer bytes to come")
	}
	if int64(in.Len) < min(r.total-r.pos, p.as.maxData) {
		e.counters.ShortPackets++
	}
	s.recv = r
	var dst []byte
	if r.scattered == nil && r.pos < r.room {
		dst = r.data[r.pos:]
	}
	e.startPayload(s, p, dst)
	return nil
}

// findRest finds the receive by the sender's request ID, for a peer that did not copy our
// pk_drqid.
func (e *matcher) findRest(p *peer, srcReq wire.RequestID) *Request {
	for i := range e.ids.slots {
		r := e.ids.slots[i].req
		if r != nil && r.kind == kindRecv && r.state == stateRest && r.peer == p && r.remote == srcReq {
			return r
		}
	}
	return nil
}

func (e *matcher) recvProgress(r *Request, n int64) {
	r.pos += n
	if r.pos < r.total {
		r.state = stateRest
		return
	}
	e.end(r, nil)
}
