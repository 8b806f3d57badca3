package meet

import (
	"context"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// connectLimit is how long a connect may take where the proc gives no time.
const connectLimit = time.Minute

// Peer is a proc of another world, or a port there, and how to greet it.
type Peer struct {
	Card  dynamic.Card
	Token dynamic.Token // keys the greeting
	Hello dynamic.Hello
}

// connect dials a port for a proc, which gets the link or the reason why there is none.
func (m *Meetings) connect(p *procs.Proc, x *wireup.Meeting) {
	to := Peer{Hello: dynamic.Hello{Call: true}}
	var ok bool
	if to.Token, ok = keyIn(x.Key); !ok {
		m.Refuse(p, wireup.KindConnected, x.Request, mpierr.Port, "the port's key has a wrong size")
		return
	}
	var err error
	if to.Card, err = dynamic.ParseCard([]byte(x.Card)); err != nil {
		m.Refuse(p, wireup.KindConnected, x.Request, mpierr.Port, err.Error())
		return
	}
	limit := x.Timeout
	if limit <= 0 {
		limit = connectLimit
	}
	m.BeginFor(p, wireup.KindConnected, x.Request, mpierr.Port, func() { m.dialPort(p, x.Request, &to, limit) })
}

// dialPort does what connect has checked, and answers the proc.
func (m *Meetings) dialPort(p *procs.Proc, request uint64, to *Peer, limit time.Duration) {
	ctx, cancel := context.WithTimeoutCause(m.Ctx, limit, fmt.Errorf("nobody answered for %v", limit))
	defer cancel()
	s := m.search(p, to, dynamic.CallSearch)
	l, w, last := s.Run(ctx)
	if l == nil {
		if m.Ctx.Err() == nil {
			m.Refuse(p, wireup.KindConnected, request, mpierr.Port, whyAbroad(ctx, s, last))
		}
		return
	}
	answer := wireup.Message{Kind: wireup.KindConnected, Meeting: &wireup.Meeting{Request: request}}
	_ = m.hand(p, answer, l, w.T.Name)
}

// search prepares a search for a link to another world. kind makes it for a number of ways.
func (m *Meetings) search(p *procs.Proc, to *Peer, kind func(ways int) *dynamic.Search) *dial.Search {
	ways := m.Routes.WaysAbroad(p.Rank(), &to.Card, p.Address())
	return &dial.Search{
		Search: kind(len(ways)), Lock: &m.mu, Ways: ways,
		Dial: func(ctx context.Context, w routes.Way, _ dynamic.SearchStep) (link.Link, error) {
			hello := to.Hello
			return dial.Greeted(ctx, to.Token, w.T.Through(routes.DataPlanes(m.Routes.RouteAbroad(&to.Card).Planes)), &hello, w)
		},
		Failed: func(w routes.Way, err error) {
			m.Log.Debug("link to another world failed", "from", p.Rank(), "transport", w.T.Name, "error", err)
		},
	}
}

// whyAbroad says why a search has found no link to another world within ctx.
func whyAbroad(ctx context.Context, s *dial.Search, last dynamic.SearchStep) string {
	missed := s.Missed()
	switch {
	case last.Yielded:
		return "the peer was about to connect and did not"
	case last.Verdict != dynamic.Accepted: // its word is the last
		m := missed[len(missed)-1]
		return fmt.Sprintf("%s: %v", s.Ways[m.Way].T.Name, m.Err)
	case ctx.Err() != nil:
		return context.Cause(ctx).Error()
	case len(missed) == 0:
		return noWayAbroad
	}
	return s.Reasons()
}

const noWayAbroad = `no transport is common to both worlds, works between them and is allowed by the route "*"`
