package meet

import (
	"context"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/accept"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// resumeLimit returns the maximum time that a link to another world may be without a connection; 0:
// the site's route to other worlds has no resume.
func (m *Meetings) resumeLimit() time.Duration {
	if !routes.ResumesToWorlds(m.Routes) {
		return 0
	}
	return routes.CurrentResumeLimit(m.Routes)
}

// repair makes a further connection for a link that has lost the last one, or tells the other end's
// node, which dials, that it is lost: over there nothing may have shown that.
func (m *Meetings) repair(s step) {
	began := time.Now()
	hello := dynamic.Hello{Src: s.Pair.Local.Rank, Dst: s.Pair.Peer.Rank, World: s.Pair.Local.World, ResumableID: s.Link.ID}
	redial := s.Repair == dynamic.Redial
	if hello.Resumes = redial; redial {
		m.Log.Warn("a link to another world is lost and dialled again", "from", s.Pair.Local.Rank, "to", s.Pair.Peer, "reason", s.Message.Reason)
	} else {
		hello.Lost, hello.Epoch = true, s.Epoch
	}
	l, by, v, why := m.dialAgain(s, &Peer{Card: s.Card, Token: s.Token, Hello: hello})
	if l == nil && m.Ctx.Err() != nil {
		return // the job ends, whose cause the proc is told
	}
	var again wireup.Message
	m.with(func(n *deciding) {
		if l != nil && redial {
			again = n.Further(s.Pair, s.Link)
		}
		n.Repaired(s, l != nil, v, why)
	})
	switch {
	case l == nil && redial:
		m.Log.Info("a link to another world is not resumed", "from", s.Pair.Local.Rank, "to", s.Pair.Peer, "reason", why)
	case l == nil:
	case redial:
		m.handAgain(s.Proc, s.Pair, again, l, by, true)
		m.Log.Info("a link to another world is resumed", "from", s.Pair.Local.Rank, "to", s.Pair.Peer, "transport", by, "after", time.Since(began).Round(time.Millisecond))
	default:
		_ = l.Close()
		m.Log.Debug("a link to another world is lost; told its other end", "from", s.Pair.Local.Rank, "to", s.Pair.Peer)
	}
}

// dialAgain dials all candidates again and again, until the limit for that or until the peer's node
// says that there is nothing to resume. Without a link, v is that node's verdict, and why the reason.
func (m *Meetings) dialAgain(s step, to *Peer) (l link.Link, by string, v dynamic.Verdict, why string) {
	limit := routes.CurrentResumeLimit(m.Routes)
	ctx, cancel := context.WithTimeout(m.Ctx, limit)
	defer cancel()
	m.mu.Lock()
	m.dialling[s.Link] = cancel
	m.mu.Unlock()
	candidates := routes.WorldResumeCandidates(m.Routes, s.Pair.Local.Rank, &to.Card, s.Proc.Address())
	d := dial.Dialing{
		DialPlan: dynamic.ResumePlan(len(candidates), limit), Candidates: candidates,
		Dial: func(ctx context.Context, w routes.Candidate, _ dynamic.DialStep) (link.Link, error) {
			hello := to.Hello
			return m.greet(ctx, to, &hello, w)
		},
	}
	d.RoundFailed = func() {
		m.Log.Debug("cannot resume a link to another world yet", "from", s.Pair.Local.Rank, "to", s.Pair.Peer, "reasons", d.Reasons())
	}
	l, w, last := d.Run(ctx)
	m.mu.Lock()
	delete(m.dialling, s.Link)
	m.mu.Unlock()
	switch {
	case l != nil:
		by = w.Transport.Name
	case last.Verdict != dynamic.Accepted:
		why = fmt.Sprintf("the node of %v says: %v", s.Pair.Peer, last.Verdict)
	default:
		why = fmt.Sprintf("limits { resume } is over: dialled %d times within %v, at last: %v", d.Rounds(), limit, d.Errors())
	}
	return l, by, last.Verdict, why
}

// acceptAgain takes a further connection that a peer's node has made, or its message that the link
// is lost there, so that this node dials.
func (m *Meetings) acceptAgain(ctx context.Context, p *procs.Proc, x dynamic.WorldPair, to meetings.Receiver, a *accept.Arrival, transport string) error {
	var s *dynamic.ResumableLink
	var verdict dynamic.Verdict
	var tell *wireup.Message
	m.with(func(n *deciding) { s, verdict, tell = n.ArriveAgain(time.Now(), x, a.Hello, to) })
	if tell != nil && p.Send(*tell) != nil { // before the answer
		verdict = dynamic.UnknownLink // the proc is gone
	}
	if err := a.Answer(ctx, verdict); err != nil {
		return err
	}
	if a.Hello.Lost {
		return a.Link.Close()
	}
	var again wireup.Message
	m.with(func(n *deciding) {
		if cancel := m.dialling[s]; cancel != nil {
			cancel() // the peer's node need not be informed any more
		}
		again = n.Further(x, s)
	})
	m.handAgain(p, x, again, a.Link, transport, false)
	m.Log.Debug("a link to another world is resumed by its other end", "rank", x.Local.Rank, "peer", x.Peer, "transport", transport)
	return nil
}

// handAgain gives a proc a further connection for a link.
func (m *Meetings) handAgain(p *procs.Proc, x dynamic.WorldPair, message wireup.Message, l link.Link, transport string, dialled bool) {
	m.with(func(n *deciding) { n.SetLink(x, linked{transport, dial.OriginOf(l).Plane, dialled, time.Now()}) })
	_ = m.hand(p, message, l, transport) // the proc asks for another one, unless it has ended
}
