package mpi

import (
	"io"
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// A link to a proc of another world is closed only where both procs have agreed to
// it. Who has no communicator with that world any more says so; who hears it says
// the same, and then neither sends anything by this link again, or that the link
// stays, and then says it later. So there is never a link that one of them uses and
// the other one has given up, whatever each of them does in the meantime.

// word is what two procs say to each other about their link, as a tag in a context
// that no communicator has.
type word wire.Tag

const (
	wordPart word = 1 + iota // I shall not use the link again, unless you say stay
	wordStay                 // I still need the world that you are of

	partContext wire.ContextID = 1<<64 - 12
)

// parting is how far a port is on its way to be closed.
type parting uint8

const (
	staying parting = iota
	asked           // we have said part and have no answer
	agreed          // so has the other proc: the port ends once all is written
)

// hearing hears the words of all procs of other worlds. It is a background operation that is over
// when there are none.
type hearing struct {
	p       *process
	r       *message.Request
	closing []*port // that both ends have agreed on
}

// listenForWords begins to hear the words of those who are met.
func (p *process) listenForWords() {
	if p.hearing == nil {
		p.hearing = &hearing{p: p}
		p.hearing.post()
		p.background = append(p.background, p.hearing)
	}
}

func (x *hearing) post() {
	x.r = x.p.eng.Recv(message.Envelope{Context: partContext, Rank: message.AnySource, Tag: message.AnyTag}, message.NoPeer, nil)
}

// carryOn is of backgroundOp.
func (x *hearing) carryOn() bool {
	p := x.p
	for x.r.Done() {
		s := x.r.Status()
		peer, w := s.Peer, word(s.Tag)
		p.eng.Release(x.r)
		x.post()
		if q := p.portOf(peer); q != nil {
			p.heardWord(q, w)
		}
	}
	for _, q := range slices.Clone(x.closing) {
		if p.ports[q.id] != q {
			x.closing = slices.DeleteFunc(x.closing, func(c *port) bool { return c == q })
		} else if !q.ended && q.word.Done() && !p.eng.HasOutput(q.id) {
			p.forgetLink(q)
			p.endPort(q)
		}
	}
	if len(p.worlds.Load().met) > 0 {
		return false
	}
	p.eng.Cancel(x.r)
	p.eng.Release(x.r)
	p.hearing = nil
	return true
}

// close ends a port that both ends have agreed on, once all is written.
func (x *hearing) close(q *port) {
	q.parting = agreed
	x.closing = append(x.closing, q)
}

// portOf gives the port of a proc of another world; nil if there is none.
func (p *process) portOf(peer message.Peer) *port {
	i := slices.IndexFunc(p.ports, func(q *port) bool { return q != nil && q.peer == peer })
	if i < 0 {
		return nil
	}
	return p.ports[i]
}

// say sends a word.
func (p *process) say(q *port, w word) *message.Request {
	r := p.eng.Send(q.peer, message.Envelope{Context: partContext, Tag: wire.Tag(w)}, message.Standard, nil, 0, 0)
	p.send(q.peer, 0, true)
	return r
}

// askToPart tells the other end of a link that we do not need it any more.
func (p *process) askToPart(q *port) {
	if q.parting == staying && !q.ended {
		q.parting = asked
		if q.word = p.say(q, wordPart); p.ports[q.id] != q { // it broke
			p.eng.Release(q.word)
			q.word = nil
		}
	}
}

// heardWord takes a word of the other end.
func (p *process) heardWord(q *port, w word) {
	switch {
	case w == wordStay && q.parting == asked:
		q.parting = staying
		p.eng.Release(q.word)
		q.word = nil
	case w == wordPart && q.parting == asked:
		p.hearing.close(q)
	case w == wordPart && q.parting == staying && p.done(q):
		p.askToPart(q)
		p.hearing.close(q)
	case w == wordPart && q.parting == staying:
		p.eng.Release(p.say(q, wordStay))
	}
	p.rouse() // who waits for it
}

// done tells whether nothing here needs the world that is at the other end of q.
func (p *process) done(q *port) bool {
	w := p.worldOf(comm.Proc(q.peer))
	return w != nil && w.leaving && p.meetings == 0
}

// beginMeeting and endMeeting are around what may make worlds known. Meanwhile no link
// to any is given up, because it may be needed at once.
func (p *process) beginMeeting() { p.meetings++ }

func (p *process) endMeeting() {
	if p.meetings--; p.meetings > 0 {
		return
	}
	p.takeEarly() // what still has no world is closed
	for _, w := range slices.Clone(p.worlds.Load().met) {
		if w.leaving {
			p.leave(w)
		}
	}
}

// leave gives up the links to a world that nothing refers to any more.
func (p *process) leave(w *world) {
	if p.meetings > 0 {
		return // endMeeting does it
	}
	for _, q := range p.ports {
		if q != nil && q.peer != message.NoPeer && w.has(comm.Proc(q.peer)) {
			p.askToPart(q)
		}
	}
	p.forget(w)
}

// arrive waits until all links to members of a group are ones that both ends use, or
// are closed. It must be called before anything is sent to members that were met in
// the meeting that goes on: who has said part must not send anything before it knows
// the answer, and a link that is to be closed is no way for it either.
func (p *process) arrive(g *comm.Group) error {
	for p.failure == nil {
		if !slices.ContainsFunc(p.ports, func(q *port) bool {
			return q != nil && (q.parting != staying || q.ended) && p.stranger(q.peer) && contains(g, q.peer)
		}) {
			return nil
		}
		p.turn()
	}
	return p.failure
}

func contains(g *comm.Group, peer message.Peer) bool {
	_, ok := g.Rank(comm.Proc(peer))
	return ok
}

// supersede drops the link to a proc that a new one has come from: the other end has
// closed it, or there would be no new one.
func (p *process) supersede(peer message.Peer) {
	if q := p.portOf(peer); q != nil {
		q.forgotten = true // what the node knows is the new one
		q.Drop(io.EOF)
		p.eng.Renew(peer)
	}
}

// forgetLink tells the node that there may be another link to the proc at the other
// end of q.
func (p *process) forgetLink(q *port) {
	if q.forgotten || p.guests[q.peer] != nil {
		return
	}
	q.forgotten = true
	if p.worldOf(comm.Proc(q.peer)) != nil {
		who := p.member(comm.Proc(q.peer))
		p.tellForgotten(who.World[:], who.Rank)
	}
}

func (p *process) tellForgotten(world []byte, rank wire.WorldRank) {
	_ = p.control.Send(wireup.Message{Kind: wireup.KindForget, Peer: rank, Meeting: &wireup.Meeting{World: world}}) // without a node there are no links either
}

// left tells whether this proc has disconnected from the world at the other end of q.
func (p *process) left(q *port) bool {
	w := p.worldOf(comm.Proc(q.peer))
	return w == nil || w.leaving
}

// abandon is part for a locked process.
func (p *process) abandon(met []*world) {
	for _, w := range met {
		if w.uses.Load() == 0 {
			w.leaving = true
			p.partFromSpawned(w)
			p.leave(w)
		}
	}
}

// partFromSpawned tells the node that a world that this proc has spawned is on its own
// now.
func (p *process) partFromSpawned(w *world) {
	if w.spawn != 0 && p.control != nil {
		_ = p.control.Send(wireup.Message{Kind: wireup.KindPart, Meeting: &wireup.Meeting{Request: w.spawn}})
		w.spawn = 0
	}
}

// bury parts from worlds whose jobs are over, as it seems: to remain connected with them
// is of no use.
func (p *process) bury(met []*world) {
	p.lock()
	defer p.unlock()
	p.abandon(slices.DeleteFunc(met, func(w *world) bool { return !w.lost }))
}

// part ends the links to worlds that nothing refers to any more.
func (p *process) part(met []*world) {
	p.lock()
	defer p.unlock()
	p.abandon(met)
}
