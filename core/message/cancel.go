package message

import "github.com/openimpi/impi/core/wire"

type cancelState uint8

const (
	cancelNone    cancelState = iota
	cancelSent                // CANCEL was sent, its answer has not come
	cancelDecided             // the answer has come
)

// Cancel tries to undo an operation. The request becomes done in any case, with Status.Cancelled if
// it worked, but possibly later: once the first packet of a send has left, the receiver decides
// whether it can be undone (MPI-4.1, 3.8.4; IMPI ch.3, Cancel). A request that is done stays as it
// is.
func (e *sender) Cancel(r *Request) {
	switch {
	case r.done:
	case r.kind == kindRecv:
		if r.state == statePosted {
			e.posted.Remove(&r.entry)
			e.cancelled(r)
		}
	case r.state == stateQueued:
		r.peer.firsts.remove(r)
		e.cancelled(r)
	case r.state != stateWaiting:
	case r.msg != nil:
		e.cancelSelf(r)
	case r.cancel == cancelNone:
		// IMPI ch.3, Cancel: CANCEL is sent at most once, and only before the SYNCACK.
		r.cancel = cancelSent
		e.answer(r.peer, wire.PkCancel, r.id, 0)
	}
}

func (e *operations) cancelled(r *Request) {
	r.status.Cancelled = true
	e.end(r, nil)
}

// cancelSelf undoes a send to this proc itself unless the message has been taken.
func (e *matcher) cancelSelf(r *Request) {
	if m := r.msg; m.entry.Queued() {
		e.unexpected.Remove(&m.entry)
		e.freeMessage(m)
		e.cancelled(r)
	}
}

// cancelAsked handles a CANCEL: it destroys the youngest message with that request ID that nobody
// has received, and answers in any case (IMPI ch.3, Cancel). Older messages with the same ID belong
// to sends that are over.
func (e *matcher) cancelAsked(p *peer) {
	id := e.in.SrcReq
	for m := range e.unexpected.Backward() {
		if m.peer == p && m.srcReq == id && m.whole {
			e.unexpected.Remove(&m.entry)
			e.freeMessage(m)
			e.answer(p, wire.PkCancelYes, id, 0)
			return
		}
	}
	e.answer(p, wire.PkCancelNo, id, 0)
}

// cancelRefused handles a CANCELNO: the message is matched, and the send goes on (IMPI ch.3,
// Cancel).
func (e *sender) cancelRefused(p *peer) {
	r := e.ids.find(e.in.SrcReq)
	if r == nil || r.kind != kindSend || r.peer != p || r.cancel != cancelSent {
		e.counters.StrayCancelNos++
		return
	}
	r.cancel = cancelDecided
}

// cancelGranted ends the send, once the link has taken all data: where it lends memory, the
// peer's answer can come first. A CANCELNO that nobody waits for is harmless, since it
// happens when the SYNCACK comes first. A CANCELYES that nobody waits for is an error of
// the peer: it would mean that the peer has destroyed a message which it must keep.
func (e *sender) cancelGranted(s *linkState, p *peer) error {
	r := e.ids.find(e.in.SrcReq)
	switch {
	case r == nil && e.gaveUp:
		e.counters.LatePackets++
		return nil
	case r == nil || r.kind != kindSend || r.peer != p || r.cancel != cancelSent:
		return e.fault(s, "pk_srqid", uint64(e.in.SrcReq), "no cancel of that was asked for")
	case r.state != stateWaiting:
		return e.fault(s, "pk_srqid", uint64(e.in.SrcReq), "that message has been acknowledged as received")
	}
	r.cancel, r.status.Cancelled = cancelDecided, true
	r.needAck, r.state = false, stateSent
	e.sendProgress(r)
	return nil
}

// FailContext gives up a context: all operations in it end with err, both those in progress and
// later ones. Messages that arrive in it are dropped. The members of the context's group have to do
// the same, since messages are cut in the middle. Only data that was passed to a link is still
// sent, and only packets that have begun to arrive are still read. The context's ID is never used
// again.
func (e *Engine) FailContext(c wire.ContextID, err error) {
	if e.failed == nil {
		e.failed = make(map[wire.ContextID]error)
	}
	e.failed[c], e.gaveUp = err, true
	for r := range e.posted.All() {
		if r.env.Context == c {
			e.posted.Remove(&r.entry)
			e.end(r, err)
		}
	}
	for _, p := range e.peers.made {
		e.giveUpQueued(p, c, err)
	}
	for i := range e.ids.slots {
		if r := e.ids.slots[i].req; r != nil && r.env.Context == c {
			e.giveUp(r, err)
		}
	}
	e.dropUnexpected(c, err)
}

// Failed returns the error of FailContext, or nil for a context that was not given up.
func (e *matcher) Failed(c wire.ContextID) error {
	if len(e.failed) == 0 {
		return nil
	}
	return e.failed[c]
}

// giveUpQueued ends the sends to p that wait to leave.
func (e *Engine) giveUpQueued(p *peer, c wire.ContextID, err error) {
	for r := p.firsts.head; r != nil; {
		next := r.next
		if r.env.Context == c {
			p.firsts.remove(r)
			e.end(r, err)
		}
		r = next
	}
	for r := p.rests.head; r != nil; {
		next := r.next
		if r.env.Context == c {
			p.rests.remove(r)
			e.giveUp(r, err)
		}
		r = next
	}
}

// giveUp ends an operation of which a part has been sent or received.
func (e *Engine) giveUp(r *Request, err error) {
	switch {
	case r.kind == kindRecv:
		e.giveUpInput(r)
		e.end(r, err)
	case r.state == stateSent && !r.needAck: // the link has taken all of it
	default:
		if r.status.Err == nil {
			r.status.Err = err
		}
		r.needAck, r.state = false, stateSent
		e.sendProgress(r)
	}
}

// giveUpInput has the rest of the packet dropped that is coming for a receive.
func (e *Engine) giveUpInput(r *Request) {
	for _, s := range e.links {
		if s == nil || s.recv != r && (s.msg == nil || s.msg.req != r) {
			continue
		}
		m := s.msg
		s.dropRest()
		if m != nil {
			e.lose(m)
		}
	}
}

// dropUnexpected drops the messages that have come in a context, so that their senders are not
// charged for them, and ends the sends of this proc to itself among them.
func (e *Engine) dropUnexpected(c wire.ContextID, err error) {
	for m := range e.unexpected.All() {
		if m.entry.Key().Context != c || !m.whole {
			continue
		}
		e.unexpected.Remove(&m.entry)
		if r := m.send; r != nil {
			e.end(r, err)
		}
		e.freeMessage(m)
	}
}
