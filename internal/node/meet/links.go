package meet

import (
	"context"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// pairOf makes the pair of a proc of ours and a rank of a world that is filled in later.
func (m *Meetings) pairOf(p *procs.Proc, peer wire.WorldRank) dynamic.WorldPair {
	return dynamic.WorldPair{Local: dynamic.Member{World: m.world, Rank: p.Rank()}, Peer: dynamic.Member{Rank: peer}}
}

// openLink makes a link to a proc of another world for a proc that asks for one.
func (m *Meetings) openLink(p *procs.Proc, peer wire.WorldRank, x *wireup.Meeting) {
	pair := m.pairOf(p, peer)
	to := Peer{Hello: dynamic.Hello{Src: pair.Local.Rank, Dst: peer, World: m.world}}
	secret, ok := keyIn(x.Secret)
	card, err := dynamic.ParseCard([]byte(x.Card))
	switch {
	case !worldIn(x.World, &pair.Peer.World), pair.Peer.World == m.world, peer < 0, !ok:
		m.noLink(p, pair, "the peer's world, rank or secret is none")
		return
	case err != nil:
		m.noLink(p, pair, err.Error())
		return
	case !m.Able:
		m.noLink(p, pair, "the job cannot meet others")
		return
	}
	to.Token, to.Card = secret, card
	m.mu.Lock()
	dials := m.links.Ask(pair, x)
	m.mu.Unlock()
	if dials && !m.Begin(func() { m.DialLink(p, pair, &to) }) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.links.Ties.Fail(pair)
	}
}

func worldIn(b []byte, to *dynamic.World) bool {
	return copy(to[:], b) == len(to) && len(b) == len(to) && *to != dynamic.World{}
}

// DialLink dials for a link that a proc has asked for. If the other end dials at the same time, it may
// be the other end's link that the proc gets.
func (m *Meetings) DialLink(p *procs.Proc, x dynamic.WorldPair, to *Peer) {
	s := m.search(p, to, func(ways int) *dynamic.Search { return dynamic.WorldSearch(ways, &m.links.Ties, x) })
	s.Holds = func() {
		m.Log.Debug("link to another world waits until the last one is forgotten", "from", x.Local.Rank, "to", x.Peer)
	}
	l, w, last := s.Run(m.Ctx)
	switch {
	case last.Action == dynamic.KeepLink:
		m.deliver(p, x, l, w.T.Name, true)
	case last.Action == dynamic.GiveUp && m.Ctx.Err() == nil:
		m.noLink(p, x, whyAbroad(m.Ctx, s, last))
	}
}

func (m *Meetings) deliver(p *procs.Proc, x dynamic.WorldPair, l link.Link, transport string, dialled bool) {
	m.mu.Lock()
	m.links.Give(x, linked{transport, dial.OriginOf(l).Plane, dialled, time.Now()})
	m.mu.Unlock()
	if m.hand(p, message(x), l, transport) != nil {
		m.drop(x)
	}
}

func message(x dynamic.WorldPair) wireup.Message {
	return wireup.Message{Kind: wireup.KindLink, Peer: x.Peer.Rank, Meeting: &wireup.Meeting{World: x.Peer.World[:]}}
}

// noLink tells a proc that there is no link. It may ask again.
func (m *Meetings) noLink(p *procs.Proc, x dynamic.WorldPair, reason string) {
	m.mu.Lock()
	m.links.Deny(x)
	m.mu.Unlock()
	m.Log.Info("no link to a proc of another world", "from", x.Local.Rank, "to", x.Peer, "reason", reason)
	no := message(x)
	no.Reason, no.Meeting.Class = reason, int(mpierr.Port)
	m.Answer(p, no)
}

// forgetLink is for a link that the proc has closed: another one can be made.
func (m *Meetings) forgetLink(p *procs.Proc, peer wire.WorldRank, x *wireup.Meeting) {
	pair := m.pairOf(p, peer)
	if worldIn(x.World, &pair.Peer.World) {
		m.drop(pair)
	}
}

func (m *Meetings) drop(x dynamic.WorldPair) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links.Drop(x)
}

// AcceptLink gives a link from another world to the proc that it is for.
func (m *Meetings) AcceptLink(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *routes.Transport) error {
	x := dynamic.WorldPair{Local: dynamic.Member{World: m.world, Rank: hello.Dst}, Peer: dynamic.Member{World: hello.World, Rank: hello.Src}}
	p, verdict := m.judge(x, l, t)
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		if verdict == dynamic.Accepted {
			m.broke(p, x)
		}
		return err
	}
	m.deliver(p, x, l, t.Name, false)
	return nil
}

// broke is for a link that was accepted and broke before our proc had it. If the proc has asked for
// a link meanwhile, another one is made.
func (m *Meetings) broke(p *procs.Proc, x dynamic.WorldPair) {
	m.mu.Lock()
	asked, again := m.links.Broke(x)
	m.mu.Unlock()
	if again {
		m.openLink(p, x.Peer.Rank, asked)
	}
}

// judge decides whether a link from another world is accepted, and gives the proc that it is for.
func (m *Meetings) judge(x dynamic.WorldPair, l link.Link, t *routes.Transport) (*procs.Proc, dynamic.Verdict) {
	p := m.Procs.Of(x.Local.Rank)
	switch {
	case p == nil || x.Peer.World == m.world:
		return nil, dynamic.UnknownRank
	case p.Phase() != ending.InMPI:
		return nil, dynamic.Leaving
	case !m.Routes.AllowsAbroad(l, t):
		return nil, dynamic.NotAllowed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return p, m.links.Arrive(x)
}
