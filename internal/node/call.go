package node

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

const (
	callLimit = time.Minute // where the caller gives none
	maxCalls  = 1024        // of a proc at once
)

// abroad is somebody of another world, or its port: how to get there, and what to
// say there.
type abroad struct {
	card  dynamic.Card
	token dynamic.Token // keys the greeting
	hello dynamic.Hello
}

// call dials a port and gives the proc the link, or the reason why there is none.
func (m *meetings) call(p *procs.Proc, x *wireup.Meeting) {
	to := abroad{hello: dynamic.Hello{Call: true}}
	var ok bool
	if to.token, ok = keyIn(x.Key); !ok {
		m.refuse(p, wireup.KindCalled, x.Request, mpierr.Port, "the port's key has a wrong size")
		return
	}
	var err error
	if to.card, err = dynamic.ParseCard([]byte(x.Card)); err != nil {
		m.refuse(p, wireup.KindCalled, x.Request, mpierr.Port, err.Error())
		return
	}
	limit := x.Timeout
	if limit <= 0 {
		limit = callLimit
	}
	begun := m.begin(p, func() { m.carryOut(p, x.Request, &to, limit) })
	if !begun {
		m.refuse(p, wireup.KindCalled, x.Request, mpierr.Port, "too many calls of the proc are under way, or the job is ending")
	}
}

// begin runs a call of a proc beside everything else. False: it must not.
func (m *meetings) begin(p *procs.Proc, f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[p] >= maxCalls {
		return false
	}
	started := m.d.begin(func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.calls[p]--; m.calls[p] == 0 {
				delete(m.calls, p)
			}
		}()
		f()
	})
	if started {
		m.calls[p]++
	}
	return started
}

// carryOut is a call from its begin to its answer.
func (m *meetings) carryOut(p *procs.Proc, request uint64, to *abroad, limit time.Duration) {
	ctx, cancel := context.WithTimeoutCause(m.d.ctx, limit, fmt.Errorf("nobody answered for %v", limit))
	defer cancel()
	s := m.search(p, to, dynamic.CallSearch)
	l, w, last := s.Run(ctx)
	if l == nil {
		if m.d.ctx.Err() == nil {
			m.refuse(p, wireup.KindCalled, request, mpierr.Port, whyAbroad(ctx, s, last))
		}
		return
	}
	answer := wireup.Message{Kind: wireup.KindCalled, Meeting: &wireup.Meeting{Request: request}}
	_ = m.hand(p, answer, l, w.T.Name)
}

// search prepares a search of one kind for a link to another world.
func (m *meetings) search(p *procs.Proc, to *abroad, kind func(ways int) *dynamic.Search) *dial.Search {
	n := m.d.n
	ways := n.routes.WaysAbroad(p.Rank(), &to.card, p.Address())
	return &dial.Search{
		Search: kind(len(ways)), Lock: &m.mu, Ways: ways,
		Dial: func(ctx context.Context, w routes.Way, _ dynamic.SearchStep) (link.Link, error) {
			hello := to.hello
			return dial.Greeted(ctx, to.token, w.T.Through(routes.DataPlanes(n.routes.RouteAbroad(&to.card))), &hello, w)
		},
		Failed: func(w routes.Way, err error) {
			n.log.Debug("link to another world failed", "from", p.Rank(), "transport", w.T.Name, "error", err)
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
