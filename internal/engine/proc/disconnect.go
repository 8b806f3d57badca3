package proc

import (
	"io"
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// A link to a proc of another world is closed only if both procs agree. A proc that has no
// communicator with that world any more sends wordClose. The other proc answers wordClose, after
// which neither sends anything by this link again, or wordStay, and sends wordClose later. So a
// link is never used by one proc after the other has given it up.

// linkWord is what two procs tell each other about closing their link: a tag in a context that no
// communicator has.
type linkWord wire.Tag

const (
	wordClose linkWord = 1 + iota // the sender will not use the link again, unless the answer is wordStay
	wordStay                      // the sender still needs the receiver's world

	closeContext wire.ContextID = 1<<64 - 12

	// firstOwnContext is the first of those that no communicator gets.
	firstOwnContext wire.ContextID = 1<<64 - 64
)

// closeState is how far an endpoint is on its way to be closed.
type closeState uint8

const (
	staying closeState = iota
	asked              // this proc has sent wordClose and has no answer
	agreed             // both procs have sent wordClose: the endpoint ends once all is written
)

// closingLinks receives the words of all procs of other worlds. It is a background operation that
// is over when there are none.
type closingLinks struct {
	p       *Process
	r       *message.Request
	closing []*Endpoint // endpoints that both ends have agreed to close
}

type disconnects struct {
	p       *Process
	closing *closingLinks // receives the words; nil: no world is known
}

func (dc *disconnects) listen() {
	if dc.closing == nil {
		dc.closing = &closingLinks{p: dc.p}
		dc.closing.isendWords()
		dc.p.Background.List = append(dc.p.Background.List, dc.closing)
	}
}

func (x *closingLinks) isendWords() {
	x.r = x.p.Eng.Recv(message.Envelope{Context: closeContext, Rank: message.AnySource, Tag: message.AnyTag}, message.NoPeer, nil)
}

// CarryOn implements BackgroundOp.
func (x *closingLinks) CarryOn() bool {
	p := x.p
	for x.r.Done() {
		s := x.r.Status()
		peer, w := s.Peer, linkWord(s.Tag)
		p.Eng.Release(x.r)
		x.isendWords()
		if q := p.Endpoints.endpointOf(peer); q != nil {
			p.Disconnects.heard(q, w)
		}
	}
	for _, q := range slices.Clone(x.closing) {
		if p.Endpoints.List[q.ID] != q {
			x.closing = slices.DeleteFunc(x.closing, func(c *Endpoint) bool { return c == q })
		} else if !q.ended && q.said.Done() && !p.Eng.HasOutput(q.ID) {
			p.Disconnects.forgetLink(q)
			q.CloseSend()
		}
	}
	if len(p.Worlds.Table.Load().Met) > 0 {
		return false
	}
	p.Eng.Cancel(x.r)
	p.Eng.Release(x.r)
	p.Disconnects.closing = nil
	return true
}

// close ends an endpoint that both ends have agreed on, once all is written.
func (x *closingLinks) close(q *Endpoint) {
	q.closing = agreed
	x.closing = append(x.closing, q)
}

func (es *endpoints) endpointOf(peer message.Peer) *Endpoint {
	i := slices.IndexFunc(es.List, func(q *Endpoint) bool { return q != nil && q.Peer == peer })
	if i < 0 {
		return nil
	}
	return es.List[i]
}

func (dc *disconnects) isendWord(q *Endpoint, w linkWord) *message.Request {
	r := dc.p.Eng.Send(q.Peer, message.Envelope{Context: closeContext, Tag: wire.Tag(w)}, message.Standard, nil, 0, 0)
	dc.p.Endpoints.Send(q.Peer, 0, true)
	return r
}

func (dc *disconnects) askToClose(q *Endpoint) {
	if q.closing == staying && !q.ended {
		q.closing = asked
		if q.said = dc.isendWord(q, wordClose); dc.p.Endpoints.List[q.ID] != q { // sending has found the link broken
			dc.p.Eng.Release(q.said)
			q.said = nil
		}
	}
}

func (dc *disconnects) heard(q *Endpoint, w linkWord) {
	switch {
	case w == wordStay && q.closing == asked:
		q.closing = staying
		dc.p.Eng.Release(q.said)
		q.said = nil
	case w == wordClose && q.closing == asked:
		dc.closing.close(q)
	case w == wordClose && q.closing == staying && dc.done(q):
		dc.askToClose(q)
		dc.closing.close(q)
	case w == wordClose && q.closing == staying:
		dc.p.Eng.Release(dc.isendWord(q, wordStay))
	}
	dc.p.WakeAll() // goroutines may wait for the answer
}

// done reports whether nothing here needs the world at the other end of q.
func (dc *disconnects) done(q *Endpoint) bool {
	w := dc.p.Worlds.WorldOf(comm.Proc(q.Peer))
	return w != nil && w.Leaving && dc.p.Worlds.meetings == 0
}

// BeginMeeting and EndMeeting enclose a meeting, which may make worlds known. Meanwhile no link to
// a world is given up, because the meeting may need it.
func (dc *disconnects) BeginMeeting() { dc.p.Worlds.meetings++ }

// EndMeeting ends a meeting. The end of the last one gives up links that are not needed.
func (dc *disconnects) EndMeeting() {
	if dc.p.Worlds.meetings--; dc.p.Worlds.meetings > 0 {
		return
	}
	dc.p.Worlds.takeEarly() // links whose worlds are still unknown are closed
	if dc.p.Survival != nil {
		dc.p.Node.news.Store(true) // links may be asked for now
	}
	for _, w := range slices.Clone(dc.p.Worlds.Table.Load().Met) {
		if w.Leaving {
			dc.leave(w)
		}
	}
}

// leave gives up the links to a world that no communicator of this proc has members of.
func (dc *disconnects) leave(w *ConnectedWorld) {
	if dc.p.Worlds.meetings > 0 {
		return // EndMeeting does it
	}
	for _, q := range dc.p.Endpoints.List {
		if q != nil && q.Peer != message.NoPeer && w.has(comm.Proc(q.Peer)) {
			dc.askToClose(q)
		}
	}
	dc.p.Worlds.forget(w)
}

// AwaitClosing waits until no link to a member of g is about to be closed. It must be called before
// anything is sent to members that were met in the current meeting: a proc that has sent wordClose
// must send nothing before it has the answer.
func (dc *disconnects) AwaitClosing(g *comm.Group) error {
	for dc.p.Failure == nil {
		if !slices.ContainsFunc(dc.p.Endpoints.List, func(q *Endpoint) bool {
			return q != nil && (q.closing != staying || q.ended) && dc.p.Worlds.Foreign(q.Peer) && contains(g, q.Peer)
		}) {
			return nil
		}
		dc.p.AwaitProgress()
	}
	return dc.p.Failure
}

func contains(g *comm.Group, peer message.Peer) bool {
	_, ok := g.Rank(comm.Proc(peer))
	return ok
}

// supersede drops the link to a proc from which a new link has come: the other end must have
// closed it.
func (dc *disconnects) supersede(peer message.Peer) {
	if q := dc.p.Endpoints.endpointOf(peer); q != nil {
		q.forgotten, q.superseded = true, true // the node has replaced this link by the new one
		q.Drop(io.EOF)
		dc.p.Eng.ResetPeer(peer)
	}
}

// forgetLink tells the node that the link at q is closed, so that another one may be made.
func (dc *disconnects) forgetLink(q *Endpoint) {
	if q.forgotten || dc.p.Worlds.Remotes[q.Peer] != nil {
		return
	}
	q.forgotten = true
	if dc.p.Worlds.WorldOf(comm.Proc(q.Peer)) != nil {
		who := dc.p.Worlds.Member(comm.Proc(q.Peer))
		dc.tellForgotten(who.World[:], who.Rank)
	}
}

func (dc *disconnects) tellForgotten(world []byte, rank wire.WorldRank) {
	_ = dc.p.Node.Control.Send(wireup.Message{Kind: wireup.KindForget, Peer: rank, Meeting: &wireup.OtherWorld{World: world}}) // without a node there are no links to forget
}

// HasDisconnected reports whether this proc has disconnected from the world at the other end of q.
func (dc *disconnects) HasDisconnected(q *Endpoint) bool {
	w := dc.p.Worlds.WorldOf(comm.Proc(q.Peer))
	return w == nil || w.Leaving
}

// DisconnectAll is Disconnect from each of the worlds, for a locked process.
func (dc *disconnects) DisconnectAll(met []*ConnectedWorld) {
	for _, w := range met {
		if w.Uses.Load() == 0 {
			w.Leaving = true
			dc.releaseSpawned(w)
			dc.leave(w)
		}
	}
}

func (dc *disconnects) releaseSpawned(w *ConnectedWorld) {
	if w.Spawn != 0 && dc.p.Node.Control != nil {
		_ = dc.p.Node.Control.Send(wireup.Message{Kind: wireup.KindDisconnect, Meeting: &wireup.OtherWorld{Request: w.Spawn}})
		w.Spawn = 0
	}
}

// DisconnectLost disconnects from those of the worlds whose jobs seem to be over.
func (dc *disconnects) DisconnectLost(met []*ConnectedWorld) {
	dc.p.Lock()
	defer dc.p.Unlock()
	dc.DisconnectAll(slices.DeleteFunc(met, func(w *ConnectedWorld) bool { return !w.lost }))
}

// Disconnect ends the links to those worlds in met of which this proc's communicators have no
// members any more (MPI-4.1, 11.10.4).
func (dc *disconnects) Disconnect(met []*ConnectedWorld) {
	dc.p.Lock()
	defer dc.p.Unlock()
	dc.DisconnectAll(met)
}
