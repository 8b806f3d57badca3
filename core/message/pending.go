package message

import (
	"fmt"
	"io"
	"iter"
)

// Pending describes a request or message that is not finished.
type Pending struct {
	What  string // "send", "recv" or "message"
	Why   string // what it waits for
	Peer  Peer   // the other side; NoPeer if it may be any
	Env   Envelope
	Bytes int64 // moved so far
	Total int64 // bytes of the message; -1 if not known yet
}

func (p Pending) String() string {
	peer := "any"
	if p.Peer != NoPeer {
		peer = fmt.Sprint(p.Peer)
	}
	return fmt.Sprintf("%s peer=%s cid=%d rank=%d tag=%d bytes=%d/%d: %s",
		p.What, peer, p.Env.Context, p.Env.Rank, p.Env.Tag, p.Bytes, p.Total, p.Why)
}

// Pending returns all requests and messages that wait for something. The engine must not be
// changed meanwhile.
func (e *Engine) Pending() iter.Seq[Pending] {
	return func(yield func(Pending) bool) {
		_ = e.pendingReceives(yield) && e.pendingOnLinks(yield) && e.pendingSends(yield) && e.pendingMessages(yield)
	}
}

func (e *Engine) pendingOnLinks(yield func(Pending) bool) bool {
	for _, s := range e.links {
		if s == nil {
			continue
		}
		if r := s.arriving(); r != nil && r.id == 0 && !yield(r.pending()) {
			return false
		}
		for i := range s.segments.len {
			if r := s.segments.at(i).req; r != nil && r.id == 0 && !yield(r.pending()) {
				return false
			}
		}
	}
	return true
}

// arriving returns the receive whose data is being received, or nil.
func (s *inputState) arriving() *Request {
	if s.msg != nil {
		return s.msg.req
	}
	return s.recv
}

func (e *Engine) pendingReceives(yield func(Pending) bool) bool {
	for r := range e.posted.All() {
		p := Pending{What: "recv", Why: "a message", Peer: r.from, Env: r.env, Total: -1}
		if !yield(p) {
			return false
		}
	}
	for i := range e.ids.slots {
		r := e.ids.slots[i].req
		if r == nil {
			continue
		}
		if !yield(r.pending()) {
			return false
		}
	}
	return true
}

// pending describes a request that is neither posted nor queued.
func (r *Request) pending() Pending {
	p := Pending{What: "send", Peer: r.peer.index, Env: r.env, Bytes: r.pos, Total: r.total}
	switch {
	case r.kind == kindRecv:
		p.What, p.Why = "recv", "the rest of the message"
		p.Env.Rank, p.Env.Tag = r.status.Source, r.status.Tag
	case r.cancel == cancelSent:
		p.Why = "the answer to CANCEL"
	case r.state == stateWaiting:
		p.Why = "SYNCACK"
	case r.state == stateRest:
		p.Why = r.peer.blockage()
	default:
		p.Why = "the link"
	}
	return p
}

func (p *peer) blockage() string {
	switch {
	case p.link == nil:
		return "a route"
	case !p.window.Open():
		return fmt.Sprintf("PROTOACK, %d packets are out", p.window.Unacknowledged())
	}
	return "the link"
}

func (e *Engine) pendingSends(yield func(Pending) bool) bool {
	for _, q := range e.peers.sorted() {
		for r := q.firsts.head; r != nil; r = r.next {
			p := Pending{What: "send", Why: q.blockage(), Peer: q.index, Env: r.env, Total: r.total}
			if !yield(p) {
				return false
			}
		}
	}
	return true
}

func (e *Engine) pendingMessages(yield func(Pending) bool) bool {
	for m := range e.unexpected.All() {
		st := e.status(m)
		p := Pending{
			What: "message", Why: "a receive", Peer: st.Peer, Bytes: int64(len(m.buf)), Total: m.total,
			Env: Envelope{Context: m.entry.Key().Context, Rank: st.Source, Tag: st.Tag},
		}
		if !m.whole {
			p.Bytes, p.Why = 0, "its first packet"
		}
		if !yield(p) {
			return false
		}
	}
	return true
}

// Dump writes a line for each entry of Pending, and one with the state of the windows for
// each peer with traffic.
func (e *Engine) Dump(w io.Writer) {
	for p := range e.Pending() {
		fmt.Fprintln(w, p)
	}
	for _, p := range e.peers.sorted() {
		out, in := p.window.Unacknowledged(), p.window.ReceivedSinceAck()
		if p.down != nil {
			fmt.Fprintf(w, "peer %d: %v\n", p.index, p.down)
		} else if out != 0 || in != 0 || p.waiting() || p.acks > 0 {
			fmt.Fprintf(w, "peer %d: sent=%d received=%d acks=%d control=%d\n", p.index, out, in, p.acks, p.control.len)
		}
	}
}
