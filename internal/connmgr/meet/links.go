package meet

import (
	"context"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

func (m *Meetings) dialLink(s step) {
	hello := dynamic.Hello{Src: s.Pair.Local.Rank, Dst: s.Pair.Peer.Rank, World: s.Pair.Local.World}
	m.dialAsked(s.Proc, s.Pair, &Peer{Card: s.Card, Token: s.Token, Hello: hello}, s.Question, s.Limit)
}

// DialLink dials for a link that a proc has asked for. If the other end dials at the same time, it
// may be the other end's link that the proc gets.
func (m *Meetings) DialLink(p *procs.Proc, x dynamic.WorldPair, to *Peer) {
	m.dialAsked(p, x, to, 0, 0)
}

// dialAsked is DialLink for a link by which a proc asks whether another one lives, if question is
// not 0, or one that may be without a connection for so long, if resume is not 0.
func (m *Meetings) dialAsked(p *procs.Proc, x dynamic.WorldPair, to *Peer, question meetings.QuestionID, resume time.Duration) {
	s := m.dialing(p, to, func(candidates int) *dynamic.DialPlan {
		return dynamic.WorldLinkPlan(candidates, &m.node.Links.Pairs, x, resume)
	})
	hello := to.Hello
	s.Holds = func() {
		m.Log.Debug("the link to another world waits until the previous one is gone", "from", x.Local.Rank, "to", x.Peer)
	}
	s.Dial = func(ctx context.Context, w routes.Candidate, step dynamic.DialStep) (link.Link, error) {
		if step.Fresh {
			m.with(func(n *deciding) { n.Links.Abandon(x, hello.ResumableID) })
			if hello = to.Hello; resume > 0 {
				hello.ResumableID = dial.NewSession()
			}
		}
		hello.Resumes = step.Resumes
		m.with(func(n *deciding) { n.Dialling(question) })
		l, err := m.greet(ctx, to, &hello, w)
		r := dial.ResultOf(err)
		m.with(func(n *deciding) {
			if r.Failure&dynamic.Uncertain != 0 {
				n.Links.Uncertain(x, hello.ResumableID)
			}
			n.Dialled(question, r)
		})
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
	m.with(func(n *deciding) {
		if last.Action == dynamic.KeepLink {
			n.Links.Made(x, hello.ResumableID)
		} else {
			n.Links.Abandon(x, hello.ResumableID)
		}
		n.SearchEnded(p, x, question, last, why)
	})
	if last.Action == dynamic.KeepLink {
		m.deliver(p, x, l, w.Transport.Name, hello.ResumableID, true)
	}
}

// deliver gives a new link to its proc; id is zero for one that does not resume.
func (m *Meetings) deliver(p *procs.Proc, x dynamic.WorldPair, l link.Link, transport string, id dynamic.ResumableID, dialled bool) {
	m.mu.Lock()
	message := m.node.SetLink(x, linked{transport, dial.OriginOf(l).Plane, dialled, time.Now()})
	m.mu.Unlock()
	if id != (dynamic.ResumableID{}) {
		message.Resumable = &wireup.Resumable{Session: id[:], Dialler: dialled, Window: resumable.Window, Limit: routes.CurrentResumeLimit(m.Routes)}
	}
	if m.hand(p, message, l, transport) != nil {
		m.with(func(n *deciding) { n.Links.Drop(x) })
	}
}

// AcceptLink passes a link from another world to the proc that it is for.
func (m *Meetings) AcceptLink(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *routes.Transport) error {
	x := dynamic.WorldPair{Local: dynamic.WorldProc{World: m.Token.World(), Rank: hello.Dst}, Peer: dynamic.WorldProc{World: hello.World, Rank: hello.Src}}
	p := m.Procs.OfRank(x.Local.Rank)
	to := meetings.Receiver{Known: p != nil, Allowed: m.Routes.AllowsWorlds(l, t)}
	if p != nil {
		to.State, to.Ended = p.State(), p.Over()
	}
	if hello.Resumes || hello.Lost {
		to.Allowed = routes.AllowsWorldsResume(m.Routes, l, t)
		return m.acceptAgain(ctx, p, x, to, &accept.Arrival{Link: l, Hello: hello, Greeting: g}, t.Name)
	}
	var verdict dynamic.Verdict
	m.with(func(n *deciding) { verdict = n.Arrive(x, hello.ResumableID, to) })
	if err := dial.Answer(ctx, l, g, verdict); err != nil {
		if verdict == dynamic.Accepted {
			m.with(func(n *deciding) { n.AcceptedLinkLost(p, x) })
		}
		return err
	}
	m.deliver(p, x, l, t.Name, hello.ResumableID, false)
	return nil
}
