package meet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// connectLimit is how long a connect may take where the proc gives no time.
const connectLimit = time.Minute

// Peer is a proc of another world, or a port there, with what is needed to greet it.
type Peer struct {
	Card  dynamic.BusinessCard
	Token dynamic.Token // keys the greeting
	Hello dynamic.Hello
}

// call connects to a port for a proc, which gets the link or the reason why there is none.
func (m *Meetings) call(c step) {
	limit := c.Limit
	if limit <= 0 {
		limit = connectLimit
	}
	ctx, cancel := context.WithTimeoutCause(m.Ctx, limit, fmt.Errorf("nobody answered for %v", limit))
	defer cancel()
	s := m.dialing(c.Proc, &Peer{Card: c.Card, Token: c.Token, Hello: dynamic.Hello{Connect: true}}, dynamic.ConnectPlan)
	l, w, last := s.Run(ctx)
	switch {
	case l != nil:
		_ = m.hand(c.Proc, meetings.Connected(c.Request), l, w.Transport.Name)
	case m.Ctx.Err() == nil:
		why := whyNoWorldLink(ctx, s, last)
		m.with(func(n *deciding) { n.ConnectFailed(c.Proc, c.Request, why) })
	}
}

// dialing prepares to dial another world. kind returns the dial plan for a number of candidates.
func (m *Meetings) dialing(p *procs.Proc, to *Peer, kind func(candidates int) *dynamic.DialPlan) *dial.Dialing {
	candidates := m.Routes.WorldCandidates(p.Rank(), &to.Card, p.Address())
	return &dial.Dialing{
		DialPlan: kind(len(candidates)), Lock: &m.mu, Candidates: candidates,
		Dial: func(ctx context.Context, w routes.Candidate, _ dynamic.DialStep) (link.Link, error) {
			hello := to.Hello
			return m.greet(ctx, to, &hello, w)
		},
		Failed: func(w routes.Candidate, err error) {
			m.Log.Debug("link to another world failed", "from", p.Rank(), "transport", w.Transport.Name, "error", err)
		},
	}
}

// greet makes a link by a candidate, with a greeting that may be another one than to has.
func (m *Meetings) greet(ctx context.Context, to *Peer, hello *dynamic.Hello, w routes.Candidate) (link.Link, error) {
	t := w.Transport.WithPlanes(routes.DataPlanes(m.Routes.RouteToWorlds(&to.Card).Planes))
	return dial.DialAndGreet(ctx, to.Token, t, hello, w)
}

func whyNoWorldLink(ctx context.Context, s *dial.Dialing, last dynamic.DialStep) error {
	missed := s.FailedCandidates()
	switch {
	case last.Yielded:
		return errors.New("the peer was about to connect and did not")
	case last.Verdict != dynamic.Accepted: // the peer's verdict decides
		m := missed[len(missed)-1]
		return fmt.Errorf("%s: %w", s.Candidates[m.Candidate].Transport.Name, m.Err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(missed) == 0:
		return errNoCandidate
	}
	return errors.New(s.Reasons())
}

var errNoCandidate = errors.New(`no transport is common to both worlds, works between them and is allowed by the route "*"`)
