package message

import (
	"github.com/openimpi/impi/core/match"
	"github.com/openimpi/impi/core/wire"
)

// Message is a message that has arrived and has no receive: an unexpected one, or an MPI_Message
// (MPI-4.1, 3.8.2). Take returns one to the caller, who must call RecvMessage for it.
type Message struct {
	entry  match.Entry[*Message]
	peer   *peer
	total  int64          // bytes of the message
	buf    []byte         // data of its first packet
	srcReq wire.RequestID // the sender's ID for the message
	sync   bool           // it came as DATASYNC
	whole  bool           // the first packet is complete
	req    *Request       // the receive that has matched the message before its first packet was complete
	count  int64          // informational, from the sender
	dtype  uint64
	cost   int64    // bytes charged to its sender while it is kept
	send   *Request // for a message from this proc itself: the send, whose buffer still holds the data
}

func (e *matcher) newMessage(p *peer, total int64) *Message {
	m := e.messages.get()
	m.entry.Value = m
	m.peer, m.total = p, total
	return m
}

func (e *matcher) freeMessage(m *Message) {
	e.buffers.put(m.buf)
	p, n := m.peer, m.cost
	*m = Message{}
	e.messages.put(m)
	if n > 0 {
		p.held -= n
		e.review(p)
	}
}

// lose removes a message whose first packet will never be complete, since its link is gone.
func (e *matcher) lose(m *Message) {
	if m.entry.Queued() {
		e.unexpected.Remove(&m.entry)
	}
	e.freeMessage(m)
}

func (e *matcher) status(m *Message) Status {
	key := m.entry.Key()
	return Status{Source: e.source(key, m.peer), Peer: m.peer.index, Tag: key.Tag, Len: m.total}
}

// accept matches message m, which has been taken from the queue, with receive r.
func (e *matcher) accept(m *Message, r *Request) {
	e.begin(r, m.peer, m.entry.Key(), m.total)
	r.remote, r.count, r.dtype = m.srcReq, m.count, m.dtype
	switch {
	case m.send != nil:
		e.copySelf(m.send, r)
		e.freeMessage(m)
	case m.whole:
		e.takeFirst(m, r)
	default:
		m.req, r.state = r, stateFirst
	}
}

// takeFirst copies the complete first packet of m to its receive and asks for the rest.
func (e *matcher) takeFirst(m *Message, r *Request) {
	n := int64(len(m.buf))
	r.store(m.buf)
	long := n < m.total
	if long && m.peer.down != nil {
		down := m.peer.down
		e.freeMessage(m)
		r.status.Len = min(n, r.status.Len)
		e.end(r, down)
		return
	}
	if m.sync {
		e.syncAck(r, long)
	}
	e.freeMessage(m)
	e.recvProgress(r, n)
}

// Probe looks for a message that a receive with env and from would match (MPI-4.1, 3.8.1): the
// first that was sent (IMPI ch.3, Message Matching). It is found as soon as its first packet has
// arrived; its length is that of the whole message.
func (e *matcher) Probe(env Envelope, from Peer) (Status, bool) {
	m := e.probe(env, from)
	if m == nil {
		return Status{}, false
	}
	return e.status(m), true
}

func (e *matcher) probe(env Envelope, from Peer) *Message {
	m, ok := e.unexpected.Find(e.key(&env, from))
	if !ok || !m.whole {
		return nil
	}
	return m
}

// Take is Probe, and removes the message from the queue, as MPI_Mprobe does (MPI-4.1, 3.8.2): only
// RecvMessage can receive it. Its sender cannot cancel it any more.
func (e *matcher) Take(env Envelope, from Peer) (*Message, Status, bool) {
	m := e.probe(env, from)
	if m == nil {
		return nil, Status{}, false
	}
	e.unexpected.Remove(&m.entry)
	return m, e.status(m), true
}

// RecvMessage starts the receive of a message that Take has returned (MPI-4.1, 3.8.3). m must not
// be used again.
func (e *matcher) RecvMessage(m *Message, buf []byte) *Request {
	r := e.newReceive(buf)
	r.env.Context = m.entry.Key().Context
	e.accept(m, r)
	return r
}

// RecvMessageInto is RecvMessage into a Sink, as RecvInto is Recv.
func (e *matcher) RecvMessageInto(m *Message, sink Sink) *Request {
	r := e.newReceive(nil)
	r.scattered = e.newScattered(scattered{sink: sink})
	r.env.Context = m.entry.Key().Context
	e.accept(m, r)
	return r
}

// Waiting returns the numbers of messages that wait for a receive, and of receives that wait for a
// message.
func (e *matcher) Waiting() (messages, receives int) {
	for range e.unexpected.All() {
		messages++
	}
	for range e.posted.All() {
		receives++
	}
	return messages, receives
}
