package proc

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
	p       *Process
	r       *message.Request
	closing []*Port // that both ends have agreed on
}

// listenForWords begins to hear the words of those who are met.
func (p *Process) listenForWords() {
	if p.hearing == nil {
		p.hearing = &hearing{p: p}
		p.hearing.post()
		p.Background = append(p.Background, p.hearing)
	}
}

func (x *hearing) post() {
	x.r = x.p.Eng.Recv(message.Envelope{Context: partContext, Rank: message.AnySource, Tag: message.AnyTag}, message.NoPeer, nil)
}

// CarryOn is of backgroundOp.
func (x *hearing) CarryOn() bool {
	p := x.p
	for x.r.Done() {
		s := x.r.Status()
		peer, w := s.Peer, word(s.Tag)
		p.Eng.Release(x.r)
		x.post()
		if q := p.portOf(peer); q != nil {
			p.heardWord(q, w)
		}
	}
	for _, q := range slices.Clone(x.closing) {
		if p.Ports[q.ID] != q {
			x.closing = slices.DeleteFunc(x.closing, func(c *Port) bool { return c == q })
		} else if !q.ended && q.word.Done() && !p.Eng.HasOutput(q.ID) {
			p.forgetLink(q)
			p.EndPort(q)
		}
	}
	if len(p.Worlds.Load().Met) > 0 {
		return false
	}
	p.Eng.Cancel(x.r)
	p.Eng.Release(x.r)
	p.hearing = nil
	return true
}

// close ends a port that both ends have agreed on, once all is written.
func (x *hearing) close(q *Port) {
	q.parting = agreed
	x.closing = append(x.closing, q)
}

// portOf gives the port of a proc of another world; nil if there is none.
func (p *Process) portOf(peer message.Peer) *Port {
	i := slices.IndexFunc(p.Ports, func(q *Port) bool { return q != nil && q.Peer == peer })
	if i < 0 {
		return nil
	}
	return p.Ports[i]
}

// say sends a word.
func (p *Process) say(q *Port, w word) *message.Request {
	r := p.Eng.Send(q.Peer, message.Envelope{Context: partContext, Tag: wire.Tag(w)}, message.Standard, nil, 0, 0)
	p.Send(q.Peer, 0, true)
	return r
}

// askToPart tells the other end of a link that we do not need it any more.
func (p *Process) askToPart(q *Port) {
	if q.parting == staying && !q.ended {
		q.parting = asked
		if q.word = p.say(q, wordPart); p.Ports[q.ID] != q { // it broke
			p.Eng.Release(q.word)
			q.word = nil
		}
	}
}

// heardWord takes a word of the other end.
func (p *Process) heardWord(q *Port, w word) {
	switch {
	case w == wordStay && q.parting == asked:
		q.parting = staying
		p.Eng.Release(q.word)
		q.word = nil
	case w == wordPart && q.parting == asked:
		p.hearing.close(q)
	case w == wordPart && q.parting == staying && p.done(q):
		p.askToPart(q)
		p.hearing.close(q)
	case w == wordPart && q.parting == staying:
		p.Eng.Release(p.say(q, wordStay))
	}
	p.Rouse() // who waits for it
}

// done tells whether nothing here needs the world that is at the other end of q.
func (p *Process) done(q *Port) bool {
	w := p.WorldOf(comm.Proc(q.Peer))
	return w != nil && w.Leaving && p.meetings == 0
}

// BeginMeeting and EndMeeting are around what may make worlds known. Meanwhile no link
// to any is given up, because it may be needed at once.
func (p *Process) BeginMeeting() { p.meetings++ }

// EndMeeting is the other end of BeginMeeting.
func (p *Process) EndMeeting() {
	if p.meetings--; p.meetings > 0 {
		return
	}
	p.takeEarly() // what still has no world is closed
	for _, w := range slices.Clone(p.Worlds.Load().Met) {
		if w.Leaving {
			p.leave(w)
		}
	}
}

// leave gives up the links to a world that nothing refers to any more.
func (p *Process) leave(w *MetWorld) {
	if p.meetings > 0 {
		return // endMeeting does it
	}
	for _, q := range p.Ports {
		if q != nil && q.Peer != message.NoPeer && w.has(comm.Proc(q.Peer)) {
			p.askToPart(q)
		}
	}
	p.forget(w)
}

// Arrive waits until all links to members of a group are ones that both ends use, or
// are closed. It must be called before anything is sent to members that were met in
// the meeting that goes on: who has said part must not send anything before it knows
// the answer, and a link that is to be closed is no way for it either.
func (p *Process) Arrive(g *comm.Group) error {
	for p.Failure == nil {
		if !slices.ContainsFunc(p.Ports, func(q *Port) bool {
			return q != nil && (q.parting != staying || q.ended) && p.Stranger(q.Peer) && contains(g, q.Peer)
		}) {
			return nil
		}
		p.Turn()
	}
	return p.Failure
}

func contains(g *comm.Group, peer message.Peer) bool {
	_, ok := g.Rank(comm.Proc(peer))
	return ok
}

// supersede drops the link to a proc that a new one has come from: the other end has
// closed it, or there would be no new one.
func (p *Process) supersede(peer message.Peer) {
	if q := p.portOf(peer); q != nil {
		q.forgotten = true // what the node knows is the new one
		q.Drop(io.EOF)
		p.Eng.Renew(peer)
	}
}

// forgetLink tells the node that there may be another link to the proc at the other
// end of q.
func (p *Process) forgetLink(q *Port) {
	if q.forgotten || p.Guests[q.Peer] != nil {
		return
	}
	q.forgotten = true
	if p.WorldOf(comm.Proc(q.Peer)) != nil {
		who := p.Member(comm.Proc(q.Peer))
		p.tellForgotten(who.World[:], who.Rank)
	}
}

func (p *Process) tellForgotten(world []byte, rank wire.WorldRank) {
	_ = p.Control.Send(wireup.Message{Kind: wireup.KindForget, Peer: rank, Meeting: &wireup.Meeting{World: world}}) // without a node there are no links either
}

// Left tells whether this proc has disconnected from the world at the other end of q.
func (p *Process) Left(q *Port) bool {
	w := p.WorldOf(comm.Proc(q.Peer))
	return w == nil || w.Leaving
}

// Abandon is part for a locked process.
func (p *Process) Abandon(met []*MetWorld) {
	for _, w := range met {
		if w.Uses.Load() == 0 {
			w.Leaving = true
			p.partFromSpawned(w)
			p.leave(w)
		}
	}
}

// partFromSpawned tells the node that a world that this proc has spawned is on its own
// now.
func (p *Process) partFromSpawned(w *MetWorld) {
	if w.Spawn != 0 && p.Control != nil {
		_ = p.Control.Send(wireup.Message{Kind: wireup.KindPart, Meeting: &wireup.Meeting{Request: w.Spawn}})
		w.Spawn = 0
	}
}

// Bury parts from worlds whose jobs are over, as it seems: to remain connected with them
// is of no use.
func (p *Process) Bury(met []*MetWorld) {
	p.Lock()
	defer p.Unlock()
	p.Abandon(slices.DeleteFunc(met, func(w *MetWorld) bool { return !w.lost }))
}

// Part ends the links to worlds that nothing refers to any more.
func (p *Process) Part(met []*MetWorld) {
	p.Lock()
	defer p.Unlock()
	p.Abandon(met)
}
