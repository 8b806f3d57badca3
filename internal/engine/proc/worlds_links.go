package proc

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
func (w *MetWorld) card(rank wire.WorldRank) *dynamic.Card {
	n := int(rank)
	for i := range w.Groups {
		if n < w.Groups[i].Count {
			return &w.Groups[i].Card
		}
		n -= w.Groups[i].Count
	}
	panic(fmt.Sprintf("mpi: rank %d of a world of %d", rank, w.Members))
}

// openStranger asks the node for a link to a proc of another world. There is no
// other way to reach it.
func (p *Process) openStranger(peer message.Peer) {
	who := p.Member(comm.Proc(peer))
	w := p.WorldOf(comm.Proc(peer))
	card, err := w.card(who.Rank).AppendText(nil)
	if err == nil {
		w.opening[peer] = true
		err = p.Control.Send(wireup.Message{Kind: wireup.KindOpen, Peer: who.Rank, Meeting: &wireup.Meeting{
			World: w.World[:], Secret: w.Secret[:], Card: string(card),
		}})
	}
	if err != nil {
		p.Eng.PeerDown(peer, err)
	}
}

// takeStranger takes a link to a proc of another world, or the news that there is
// none.
func (p *Process) takeStranger(d Delivery) {
	var name dynamic.World
	if copy(name[:], d.Msg.Meeting.World) != len(name) || p.Description == nil {
		d.close()
		return
	}
	w := p.Known(name)
	switch {
	case w == nil && d.L != nil && p.meetings > 0 && len(p.Early) < maxEarly:
		p.Early = append(p.Early, d)
	case w == nil || d.Msg.Peer < 0 || int(d.Msg.Peer) >= w.Members:
		if d.L != nil {
			p.tellForgotten(name[:], d.Msg.Peer)
		}
		d.close()
	default:
		p.takeLink(d, w, message.Peer(w.First)+message.Peer(d.Msg.Peer))
		delete(w.opening, message.Peer(w.First)+message.Peer(d.Msg.Peer))
		p.forget(w)
	}
}

// takeLink takes a link to a proc of a world that is known, or that there is none.
func (p *Process) takeLink(d Delivery, w *MetWorld, peer message.Peer) {
	if d.L == nil {
		w.lost = true
		p.Eng.PeerDown(peer, fmt.Errorf("%w: %s", ErrUnreachable, d.Msg.Reason))
		p.Rouse()
		return
	}
	w.opening[peer] = true // it is needed, even if it is left
	p.supersede(peer)
	q, err := p.AddPort(p.Traced(d.L, fmt.Sprintf("%s to %v", d.Msg.Transport, p.Member(comm.Proc(peer))), message.NoPeer), peer)
	if err != nil {
		d.close()
		p.tellForgotten(w.World[:], d.Msg.Peer)
		p.Eng.PeerDown(peer, err)
		return
	}
	p.Eng.SetRoute(peer, q.ID)
	if w.Leaving && p.meetings == 0 {
		p.askToPart(q)
	}
}

// takeEarly looks again at links that came before their world was known.
func (p *Process) takeEarly() {
	early := p.Early
	p.Early = nil
	for _, d := range early {
		p.takeStranger(d)
	}
}

// close closes the link that was delivered, if there is one.
func (d *Delivery) close() {
	if d.L != nil {
		_ = d.L.Close()
	}
}

// loseStranger is lose for a link to another world. One that this proc has asked to
// close may be followed by another: the other end's word may not have been heard yet.
// Otherwise the proc there is gone, and what needs it fails from now on.
func (p *Process) loseStranger(q *Port, cause error) {
	p.forgetLink(q)
	p.Eng.Detach(q.ID, cause)
	p.vacant = append(p.vacant, q.ID)
	if q.word != nil {
		p.Eng.Release(q.word)
		q.word = nil
	}
	p.Rouse()
	if g := p.Guests[q.Peer]; g != nil {
		g.Gone()
		return
	}
	w := p.WorldOf(comm.Proc(q.Peer))
	if q.parting != staying {
		p.Eng.Renew(q.Peer)
	}
	if w != nil {
		w.lost = w.lost || q.parting != agreed
		p.forget(w)
	}
}
