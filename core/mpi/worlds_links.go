package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// maxEarly is how many links from worlds that this proc does not know yet may
// wait: it is just meeting them. Who is in no meeting, or has been in one that failed,
// has no use for them.
const maxEarly = 256

// card is the business card of a rank of the world.
func (w *world) card(rank wire.WorldRank) *dynamic.Card {
	n := int(rank)
	for i := range w.Groups {
		if n < w.Groups[i].Count {
			return &w.Groups[i].Card
		}
		n -= w.Groups[i].Count
	}
	panic(fmt.Sprintf("mpi: rank %d of a world of %d", rank, w.size))
}

// openStranger asks the node for a link to a proc of another world. There is no
// other way to reach it.
func (p *process) openStranger(peer message.Peer) {
	who := p.member(comm.Proc(peer))
	w := p.worldOf(comm.Proc(peer))
	card, err := w.card(who.Rank).AppendText(nil)
	if err == nil {
		w.opening[peer] = true
		err = p.control.Send(wireup.Message{Kind: wireup.KindOpen, Peer: who.Rank, Meeting: &wireup.Meeting{
			World: w.World[:], Secret: w.Secret[:], Card: string(card),
		}})
	}
	if err != nil {
		p.eng.PeerDown(peer, err)
	}
}

// takeStranger takes a link to a proc of another world, or the news that there is
// none.
func (p *process) takeStranger(d delivery) {
	var name dynamic.World
	if copy(name[:], d.msg.Meeting.World) != len(name) || p.description == nil {
		d.close()
		return
	}
	w := p.known(name)
	switch {
	case w == nil && d.l != nil && p.meetings > 0 && len(p.early) < maxEarly:
		p.early = append(p.early, d)
	case w == nil || d.msg.Peer < 0 || int(d.msg.Peer) >= w.size:
		if d.l != nil {
			p.tellForgotten(name[:], d.msg.Peer)
		}
		d.close()
	default:
		p.takeLink(d, w, message.Peer(w.first)+message.Peer(d.msg.Peer))
		delete(w.opening, message.Peer(w.first)+message.Peer(d.msg.Peer))
		p.forget(w)
	}
}

// takeLink takes a link to a proc of a world that is known, or that there is none.
func (p *process) takeLink(d delivery, w *world, peer message.Peer) {
	if d.l == nil {
		w.lost = true
		p.eng.PeerDown(peer, fmt.Errorf("%w: %s", ErrUnreachable, d.msg.Reason))
		p.rouse()
		return
	}
	w.opening[peer] = true // it is needed, even if it is left
	p.supersede(peer)
	q, err := p.addPort(p.traced(d.l, fmt.Sprintf("%s to %v", d.msg.Transport, p.member(comm.Proc(peer))), message.NoPeer), peer)
	if err != nil {
		d.close()
		p.tellForgotten(w.World[:], d.msg.Peer)
		p.eng.PeerDown(peer, err)
		return
	}
	p.eng.SetRoute(peer, q.id)
	if w.leaving && p.meetings == 0 {
		p.askToPart(q)
	}
}

// takeEarly looks again at links that came before their world was known.
func (p *process) takeEarly() {
	early := p.early
	p.early = nil
	for _, d := range early {
		p.takeStranger(d)
	}
}

// close closes the link that was delivered, if there is one.
func (d *delivery) close() {
	if d.l != nil {
		_ = d.l.Close()
	}
}

// loseStranger is lose for a link to another world. One that this proc has asked to
// close may be followed by another: the other end's word may not have been heard yet.
// Otherwise the proc there is gone, and what needs it fails from now on.
func (p *process) loseStranger(q *port, cause error) {
	p.forgetLink(q)
	p.eng.Detach(q.id, cause)
	p.vacant = append(p.vacant, q.id)
	if q.word != nil {
		p.eng.Release(q.word)
		q.word = nil
	}
	p.rouse()
	if g := p.guests[q.peer]; g != nil {
		g.gone()
		return
	}
	w := p.worldOf(comm.Proc(q.peer))
	if q.parting != staying {
		p.eng.Renew(q.peer)
	}
	if w != nil {
		w.lost = w.lost || q.parting != agreed
		p.forget(w)
	}
}
