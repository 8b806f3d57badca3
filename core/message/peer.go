package message

import (
	"fmt"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/wire"
)

// peer is what the engine knows of one proc.
type peer struct {
	index     Peer
	proc      wire.Proc
	as        *standing // how we deal with it
	window    flow.Window
	down      error      // why it cannot be reached, wraps ErrPeerDown
	link      *linkState // where its packets leave, nil: no route yet
	from      *linkState // where the last packet came from
	fastBoxes *linkState // by which it sends fast-box messages
	asked     bool       // Unrouted has it or had it

	allowance
	acks    int           // PROTOACKs that are due
	control fifo[control] // counted packets without data
	firsts  requests      // sends none of whose packets is committed, in MPI's order
	rests   requests      // sends with continuation packets to go
	turn    bool          // of the rests, if both have something
	ready   bool          // in the link's queue of the peers that can send
	owing   bool          // in the link's queue of the peers with acks
	sent    uint64        // messages, for pk_seqnum
}

// control is a packet without data that waits for the window to open.
type control struct {
	typ            wire.PacketType
	srcReq, dstReq wire.RequestID
}

// waiting tells whether counted packets want to leave.
func (p *peer) waiting() bool {
	return p.control.len > 0 || p.firsts.head != nil || p.rests.head != nil
}

// owes tells whether a PROTOACK is to leave.
func (p *peer) owes() bool { return p.acks > 0 || p.due }

// nextSend gives the send whose packet is next. First packets keep their order;
// they and continuation packets take turns, so that a short message does not
// have to wait for all of a long one.
func (p *peer) nextSend() *Request {
	first, rest := p.firsts.head, p.rests.head
	if first == nil || rest != nil && p.turn {
		p.turn = false
		return rest
	}
	p.turn = true
	return first
}

// wake puts p where Output or Unrouted finds it, if it has something to send.
func (e *linkTable) wake(p *peer) {
	l := p.link
	switch {
	case p.down != nil:
	case l == nil:
		if !p.asked && (p.owes() || p.waiting()) {
			p.asked = true
			e.unrouted.push(p)
		}
	default:
		if p.owes() && !p.owing {
			p.owing = true
			l.owing.push(p)
		}
		if !p.ready && p.window.Open() && p.waiting() {
			p.ready = true
			l.ready.push(p)
		}
	}
}

// answer sends a counted packet without data to p, when the window allows.
func (e *linkTable) answer(p *peer, typ wire.PacketType, srcReq, dstReq wire.RequestID) {
	if p.down != nil {
		return
	}
	p.control.push(control{typ, srcReq, dstReq})
	e.wake(p)
}

// received counts a packet that has arrived completely.
// IMPI ch.3, Packet Protocol: one PROTOACK for each ackmark counted packets, at
// once, whether or not the messages are wanted yet.
func (e *linkTable) received(p *peer) {
	if p.window.Received() && p.down == nil {
		p.acks++
		e.wake(p)
	}
	e.review(p)
}

// PeerDown says that p is gone. What had come from it completely can still be
// received; requests that need more of it fail with ErrPeerDown, which wraps
// cause, now and in the future. Wildcard receives keep waiting for others.
// Packets of it that still come by a shared link are dropped.
func (e *Engine) PeerDown(p Peer, cause error) {
	q := e.peer(p)
	if q == e.self {
		panic("message: a proc cannot lose itself")
	}
	if q.down != nil {
		return
	}
	q.down = fmt.Errorf("%w: peer %d (%s): %w", ErrPeerDown, q.index, q.proc, cause)
	e.lost++
	q.acks, q.due = 0, false
	q.control.clear()
	e.dropOutput(q)
	e.dropInput(q)
	q.link = nil
	e.failAll(&q.firsts, q.down)
	e.failAll(&q.rests, q.down)
	for i := range e.ids.slots {
		if r := e.ids.slots[i].req; r != nil && r.peer == q {
			e.end(r, q.down)
		}
	}
	for r := range e.posted.All() {
		if r.from == p {
			e.posted.Remove(&r.entry)
			e.end(r, q.down)
		}
	}
}

func (e *operations) failAll(q *requests, err error) {
	for r := q.head; r != nil; r = q.head {
		q.remove(r)
		e.end(r, err)
	}
}
