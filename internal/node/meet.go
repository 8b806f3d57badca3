package node

import (
	"context"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// meetPair is a local proc and one of another world. Its links are not resumed, and
// no packets go by agents instead.
type meetPair struct {
	local wire.WorldRank
	peer  dynamic.Member
}

// open is a proc's wish for a link to a proc of another world.
func (m *meetings) open(p *procs.Proc, peer wire.WorldRank, x *wireup.Meeting) {
	pair := meetPair{p.Rank(), dynamic.Member{Rank: peer}}
	to := abroad{hello: dynamic.Hello{Src: pair.local, Dst: peer, World: m.world}}
	secret, ok := keyIn(x.Secret)
	card, err := dynamic.ParseCard([]byte(x.Card))
	switch {
	case !worldIn(x.World, &pair.peer.World), pair.peer.World == m.world, peer < 0, !ok:
		m.noLink(p, pair, "the peer's world, rank or secret is none")
		return
	case err != nil:
		m.noLink(p, pair, err.Error())
		return
	case !m.able():
		m.noLink(p, pair, "the job cannot meet others")
		return
	}
	to.token, to.card = secret, card
	if !m.want(pair, x) {
		return // it is under way, or there
	}
	if !m.d.begin(func() { m.connect(p, pair, &to) }) {
		m.decide((*dynamic.Ties[meetPair]).Fail, pair)
	}
}

// want notes that a proc has asked for a link. False: it is under way, or there.
func (m *meetings) want(x meetPair, what *wireup.Meeting) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.links[x]; there {
		return false
	}
	m.wants[x] = what
	return m.ties.Want(x)
}

func worldIn(b []byte, to *dynamic.World) bool {
	return copy(to[:], b) == len(to) && len(b) == len(to) && *to != dynamic.World{}
}

// connect makes a link, or waits for the other end's, or gives up.
func (m *meetings) connect(p *procs.Proc, x meetPair, to *abroad) {
	s := m.search(p, to, func(ways int) *dynamic.Search { return dynamic.WorldSearch(ways, &m.ties, x) })
	s.Holds = func() {
		m.d.n.log.Debug("link to another world waits until the last one is forgotten", "from", x.local, "to", x.peer)
	}
	l, w, last := s.Run(m.d.ctx)
	switch {
	case last.Action == dynamic.KeepLink:
		m.deliver(p, x, l, w.T.Name, true)
	case last.Action == dynamic.GiveUp && m.d.ctx.Err() == nil:
		m.noLink(p, x, whyAbroad(m.d.ctx, s, last))
	}
}

func (m *meetings) deliver(p *procs.Proc, x meetPair, l link.Link, transport string, dialled bool) {
	m.note(x, metLink{transport, dial.OriginOf(l).Plane, dialled, time.Now()})
	if m.hand(p, message(x), l, transport) != nil {
		m.drop(x)
	}
}

func message(x meetPair) wireup.Message {
	return wireup.Message{Kind: wireup.KindLink, Peer: x.peer.Rank, Meeting: &wireup.Meeting{World: x.peer.World[:]}}
}

// noLink tells a proc that there is no link. It may ask again.
func (m *meetings) noLink(p *procs.Proc, x meetPair, reason string) {
	m.mu.Lock()
	delete(m.wants, x)
	m.mu.Unlock()
	m.d.n.log.Info("no link to a proc of another world", "from", x.local, "to", x.peer, "reason", reason)
	no := message(x)
	no.Reason, no.Meeting.Class = reason, int(mpierr.Port)
	m.answer(p, no)
}

// forget lets go of a link that the proc has closed: another one can be made.
func (m *meetings) forget(p *procs.Proc, peer wire.WorldRank, x *wireup.Meeting) {
	pair := meetPair{p.Rank(), dynamic.Member{Rank: peer}}
	if worldIn(x.World, &pair.peer.World) {
		m.drop(pair)
	}
}

// decide asks the ties about a pair, with what they are to be told.
func (m *meetings) decide(what func(*dynamic.Ties[meetPair], meetPair) bool, x meetPair) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return what(&m.ties, x)
}

// drop is for a link that is no more.
func (m *meetings) drop(x meetPair) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ties.Drop(x) {
		delete(m.links, x)
	}
}

// acceptMeet gives a link from another world to the proc that it is for.
func (m *meetings) acceptMeet(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *routes.Transport) error {
	x := meetPair{hello.Dst, dynamic.Member{World: hello.World, Rank: hello.Src}}
	p, verdict := m.judge(x, l, t)
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		if verdict == dynamic.Accepted {
			m.replace(p, x)
		}
		return err
	}
	m.deliver(p, x, l, t.Name, false)
	return nil
}

// replace is for a link that was let in and broke before our proc had it. If that has asked
// for one, for which the link in would have done, it gets another.
func (m *meetings) replace(p *procs.Proc, x meetPair) {
	m.drop(x)
	m.mu.Lock()
	wanted := m.wants[x]
	m.mu.Unlock()
	if wanted != nil {
		m.open(p, x.peer.Rank, wanted)
	}
}

// judge decides about a link from another world.
func (m *meetings) judge(x meetPair, l link.Link, t *routes.Transport) (*procs.Proc, dynamic.Verdict) {
	p := m.d.n.procs.Of(x.local)
	switch {
	case p == nil || x.peer.World == m.world:
		return nil, dynamic.UnknownRank
	case p.Phase() != procs.InMPI:
		return nil, dynamic.Leaving
	case !m.d.n.routes.AllowsAbroad(l, t):
		return nil, dynamic.NotAllowed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.ties.Arrive(x, x.peer.Compare(dynamic.Member{World: m.world, Rank: x.local}) < 0)
	if v != dynamic.Accepted {
		return nil, v
	}
	return p, v
}
