package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/transports"
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
func (m *meetings) call(p *proc, x *wireup.Meeting) {
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
func (m *meetings) begin(p *proc, f func()) bool {
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
func (m *meetings) carryOut(p *proc, request uint64, to *abroad, limit time.Duration) {
	ctx, cancel := context.WithTimeoutCause(m.d.ctx, limit, fmt.Errorf("nobody answered for %v", limit))
	defer cancel()
	l, transport, err := m.reach(ctx, p, to, func() bool { return true })
	if err != nil {
		if m.d.ctx.Err() == nil {
			m.refuse(p, wireup.KindCalled, request, mpierr.Port, err.Error())
		}
		return
	}
	answer := wireup.Message{Kind: wireup.KindCalled, Meeting: &wireup.Meeting{Request: request}}
	_ = m.hand(p, answer, l, transport)
}

// reach tries the ways to another world one after the other, while wanted. A word
// of the other node, which proved to be the right one, is the last.
func (m *meetings) reach(ctx context.Context, p *proc, to *abroad, wanted func() bool) (l link.Link, transport string, err error) {
	n := m.d.n
	var reasons []string
	for _, w := range n.waysAbroad(p, &to.card) {
		l, err := m.dialPatiently(ctx, to, w, wanted)
		if err == nil {
			return l, w.t.name, nil
		}
		n.log.Debug("link to another world failed", "from", p.rank.Load(), "transport", w.t.name, "error", err)
		if refused(err) != dynamic.Accepted {
			return nil, "", fmt.Errorf("%s: %w", w.t.name, err)
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", w.t.name, err))
		if ctx.Err() != nil || !wanted() {
			break
		}
	}
	if reasons == nil {
		return nil, "", errNoWayAbroad
	}
	return nil, "", errors.New(strings.Join(reasons, "; "))
}

var errNoWayAbroad = errors.New(`no transport is common to both worlds, works between them and is allowed by the route "*"`)

// dialPatiently dials again while nobody listens where the card says.
func (m *meetings) dialPatiently(ctx context.Context, to *abroad, w way, wanted func() bool) (link.Link, error) {
	t := w.t.through(dataPlanes(m.d.n.routeAbroad(&to.card)))
	for _, pause := range retries {
		hello := to.hello
		l, err := m.d.dialWith(ctx, to.token, t, &hello, w)
		var te *transports.Error
		if !errors.As(err, &te) || te.Code != transports.CodeRefused || !wanted() {
			return l, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
	hello := to.hello
	return m.d.dialWith(ctx, to.token, t, &hello, w)
}
