package meet

import (
	"context"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
)

func (m *Meetings) dialLink(s step) {
	hello := dynamic.Hello{Src: s.Pair.Local.Rank, Dst: s.Pair.Peer.Rank, World: s.Pair.Local.World}
	m.dialAsked(s.Proc, s.Pair, &Peer{Card: s.Card, Token: s.Token, Hello: hello}, s.Question)
}

// DialLink dials for a link that a proc has asked for. If the other end dials at the same time, it
// may be the other end's link that the proc gets.
func (m *Meetings) DialLink(p *procs.Proc, x dynamic.WorldPair, to *Peer) { m.dialAsked(p, x, to, 0) }

func (m *Meetings) dialAsked(p *procs.Proc, x dynamic.WorldPair, to *Peer, question meetings.QuestionID) {
	s := m.dialing(p, to, func(candidates int) *dynamic.DialPlan {
		return dynamic.WorldLinkPlan(candidates, &m.node.Links.Pairs, x)
	})
	s.Holds = func() {
		m.Log.Debug("the link to another world waits until the previous one is gone", "from", x.Local.Rank, "to", x.Peer)
	}
	once := s.Dial
	s.Dial = func(ctx context.Context, w routes.Candidate, step dynamic.DialStep) (link.Link, error) {
		m.with(func(n *deciding) { n.Dialling(question) })
		l, err := once(ctx, w, step)
		m.with(func(n *deciding) { n.Dialled(question, dial.ResultOf(err)) })
		return l, err
	}
	l, w, last := s.Run(m.Ctx)
	if m.Ctx.Err() != nil && last.Action == dynamic.GiveUp {
		last = dynamic.DialStep{Action: dynamic.Abandon}
	}
	var why error
	if last.Action == dynamic.GiveUp {
		why = whyNoWorldLink(m.Ctx, s, last)
	}
	m.with(func(n *deciding) { n.SearchEnded(p, x, question, last, why) })
	if last.Action == dynamic.KeepLink {
		m.deliver(p, x, l, w.Transport.Name, true)
	}
}

func (m *Meetings) deliver(p *procs.Proc, x dynamic.WorldPair, l link.Link, transport string, dialled bool) {
	m.mu.Lock()
	message := m.node.SetLink(x, linked{transport, dial.OriginOf(l).Plane, dialled, time.Now()})
	m.mu.Unlock()
	if m.hand(p, message, l, transport) != nil {
		m.with(func(n *deciding) { n.Links.Drop(x) })
	}
}

// AcceptLink passes a link from another world to the proc that it is for.
func (m *Meetings) AcceptLink(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *routes.Transport) error {
	x := dynamic.WorldPair{Local: dynamic.WorldProc{World: m.Token.World(), Rank: hello.Dst}, Peer: dynamic.WorldProc{World: hello.World, Rank: hello.Src}}
	p := m.Procs.OfRank(x.Local.Rank)
	to := meetings.Receiver{Known: p != nil, Allowed: m.Routes.AllowsWorlds(l, t), Resumes: hello.ResumableID != dynamic.ResumableID{}}
	if p != nil {
		to.State, to.Ended = p.State(), p.Over()
	}
	var verdict dynamic.Verdict
	m.with(func(n *deciding) { verdict = n.Arrive(x, to) })
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		if verdict == dynamic.Accepted {
			m.with(func(n *deciding) { n.AcceptedLinkLost(p, x) })
		}
		return err
	}
	m.deliver(p, x, l, t.Name, false)
	return nil
}
