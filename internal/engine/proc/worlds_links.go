package proc

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// maxEarly is the most links from worlds that are not known yet that a proc keeps during a meeting.
// Outside of meetings it keeps none.
const maxEarly = 256

// card returns the business card of a rank of the world.
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

// openForeign asks the node for a link to a proc of another world. No agent carries packets to it.
func (ws *worlds) openForeign(peer message.Peer) {
	who := ws.Member(comm.Proc(peer))
	w := ws.WorldOf(comm.Proc(peer))
	card, err := w.card(who.Rank).AppendText(nil)
	if err == nil {
		w.opening[peer] = true
		err = ws.p.Node.Control.Send(wireup.Message{Kind: wireup.KindOpen, Peer: who.Rank, Meeting: &wireup.Meeting{
			World: w.World[:], Secret: w.Secret[:], Card: string(card),
		}})
	}
	if err != nil {
		ws.p.Eng.PeerDown(peer, err)
	}
}

// takeForeign handles a link to a proc of another world, or the message that there is none.
func (ws *worlds) takeForeign(d Delivery) {
	var name dynamic.World
	if copy(name[:], d.Msg.Meeting.World) != len(name) || ws.Description == nil {
		d.close()
		return
	}
	w := ws.Known(name)
	switch {
	case w == nil && d.L != nil && ws.meetings > 0 && len(ws.Early) < maxEarly:
		ws.Early = append(ws.Early, d)
	case w == nil || d.Msg.Peer < 0 || int(d.Msg.Peer) >= w.Members:
		if d.L != nil {
			ws.p.Disconnects.tellForgotten(name[:], d.Msg.Peer)
		}
		d.close()
	default:
		ws.takeLink(d, w, message.Peer(w.First)+message.Peer(d.Msg.Peer))
		delete(w.opening, message.Peer(w.First)+message.Peer(d.Msg.Peer))
		ws.forget(w)
	}
}

// takeLink is takeForeign for a world that is known.
func (ws *worlds) takeLink(d Delivery, w *MetWorld, peer message.Peer) {
	if d.L == nil {
		w.lost = true
		ws.p.Eng.PeerDown(peer, fmt.Errorf("%w: %s", ErrUnreachable, d.Msg.Reason))
		ws.p.WakeAll()
		return
	}
	w.opening[peer] = true // requests wait for the proc, even if the world is left
	ws.p.Disconnects.supersede(peer)
	q, err := ws.p.Endpoints.Add(ws.p.Trace.Traced(d.L, fmt.Sprintf("%s to %v", d.Msg.Transport, ws.Member(comm.Proc(peer))), message.NoPeer), peer)
	if err != nil {
		d.close()
		ws.p.Disconnects.tellForgotten(w.World[:], d.Msg.Peer)
		ws.p.Eng.PeerDown(peer, err)
		return
	}
	ws.p.Eng.SetRoute(peer, q.ID)
	if w.Leaving && ws.meetings == 0 {
		ws.p.Disconnects.askToClose(q)
	}
}

// takeEarly calls takeForeign again for links that came before their world was known.
func (ws *worlds) takeEarly() {
	early := ws.Early
	ws.Early = nil
	for _, d := range early {
		ws.takeForeign(d)
	}
}

// close closes the link of the delivery, if it has one.
func (d *Delivery) close() {
	if d.L != nil {
		_ = d.L.Close()
	}
}

// loseForeign is Lose for a link to another world. If this proc has asked to close it, the other
// end may have agreed in a word that has not come yet, and another link may follow. Otherwise the
// proc there is gone, and requests that need it fail from now on.
func (q *Endpoint) loseForeign(cause error) {
	p := q.p
	p.Disconnects.forgetLink(q)
	p.Eng.Detach(q.ID, cause)
	p.Endpoints.vacant = append(p.Endpoints.vacant, q.ID)
	if q.said != nil {
		p.Eng.Release(q.said)
		q.said = nil
	}
	p.WakeAll()
	if g := p.Worlds.Remotes[q.Peer]; g != nil {
		g.Gone()
		return
	}
	w := p.Worlds.WorldOf(comm.Proc(q.Peer))
	if q.closing != staying {
		p.Eng.Renew(q.Peer)
	}
	if w != nil {
		w.lost = w.lost || q.closing != agreed
		p.Worlds.forget(w)
	}
}
