package message

import (
	"fmt"

	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/wire"
)

type peer struct {
	index     Peer
	proc      wire.Proc
	as        *worldTerms // terms between this proc and the procs of the peer's world
	window    flow.Window
	down      error      // reason why the peer cannot be reached, wraps ErrPeerDown; nil: it can
	link      *linkState // link of packets to the peer; nil: no route yet
	from      *linkState // link of the last packet from the peer
	fastBoxes *linkState // the direct link, if it has fast boxes
	asked     bool       // Unrouted has returned the peer, or will

	allowance
	acks    int           // PROTOACKs that are to be sent
	control fifo[control] // counted packets without data
	firsts  requests      // sends of which no packet is committed, in the order of the MPI calls
	rests   requests      // sends that still have continuation packets
	turn    bool          // the next packet is one of rests, if both lists have something
	ready   bool          // the peer is in the link's queue ready
	owing   bool          // the peer is in the link's queue owing
	sent    uint64        // number of messages, for pk_seqnum
	boxed   uint64        // number of fast-box messages by links that are gone
	bytes   uint64        // bytes of data of messages to the peer
}

// control is a packet without data that waits until the window opens.
type control struct {
	typ            wire.PacketType
	srcReq, dstReq wire.RequestID
}

// waiting reports whether counted packets are to be sent.
func (p *peer) waiting() bool {
	return p.control.len > 0 || p.firsts.head != nil || p.rests.head != nil
}

// owes reports whether a PROTOACK is to be sent.
func (p *peer) owes() bool { return p.acks > 0 || p.due }

// nextSend returns the send whose packet is next. First packets keep the order of the calls
// (MPI-4.1, 3.5); they and continuation packets take turns, so that a short message does not wait
// for all of a long one.
func (p *peer) nextSend() *Request {
	first, rest := p.firsts.head, p.rests.head
	if first == nil || rest != nil && p.turn {
		p.turn = false
		return rest
	}
	p.turn = true
	return first
}

// wake puts p where Output or Unrouted finds it, if something is to be sent to it.
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

// answer sends a counted packet without data to p, once the window allows it.
func (e *linkTable) answer(p *peer, typ wire.PacketType, srcReq, dstReq wire.RequestID) {
	if p.down != nil {
		return
	}
	p.control.push(control{typ, srcReq, dstReq})
	e.wake(p)
}

// received counts a packet that has arrived completely. IMPI ch.3, Packet Protocol: one
// PROTOACK for each ackmark counted packets, at once, whether or not their messages are
// matched.
func (e *linkTable) received(p *peer) {
	if p.window.Received() && p.down == nil {
		p.acks++
		e.wake(p)
	}
	e.review(p)
}

// PeerDown records that p is gone. Messages that have come from it completely can still be
// received. All other requests that need p fail, now and later, with ErrPeerDown, which wraps
// cause. Receives with AnySource continue to wait for others. Packets of p that still come by a
// shared link are dropped.
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
