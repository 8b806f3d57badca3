package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/openimpi/impi/core/startup"
)

// opening is how a client begins on its connections, one after the other, until one
// succeeds.
type opening struct {
	set        *Settings
	auth       startup.Auth // auth methods that the server may see
	plain      bool         // begin with IMPI's AUTH, without TLS
	unanswered int          // connections in a row that the server has closed without an answer
}

func newOpening(set *Settings, auth startup.Auth) *opening {
	return &opening{set: set, auth: auth, plain: set.Own == nil}
}

// begin returns the connection for startup: nc, or one that uses it.
func (o *opening) begin(ctx context.Context, nc net.Conn) (net.Conn, error) {
	if o.plain {
		return nc, nil
	}
	c := newOwnClient(o.set.Own, o.auth, o.set.Logger)
	t, err := c.greet(ctx, nc)
	switch {
	case err != nil:
		return nil, o.fallBack(ctx, err)
	case c.secret != nil:
		above, err := c.resumable(t, o.set)
		o.auth = c.credentials()
		return above, err
	}
	o.auth = c.credentials()
	return t, nil
}

func (o *opening) fallBack(ctx context.Context, err error) error {
	var r *refusal
	foreign := errors.Is(err, errForeign) || errors.As(err, &r) && r.foreign()
	if errors.Is(err, errNoAnswer) && ctx.Err() == nil {
		o.unanswered++
	} else {
		o.unanswered = 0
	}
	switch {
	case !foreign && o.unanswered < maxUnanswered:
		return err
	case !foreign && (o.set.Own.NeedTLS || o.auth.HasKey):
		return o.silent(err)
	case foreign && o.set.Own.NeedTLS:
		return &withoutTLS{err}
	}
	o.plain = true
	o.set.Logger.Warn("the server does not speak TLS: everything sent to it can be read on the way, even the key; "+
		"write server_foreign = true beside server if that is intended, or require_tls = true to forbid it",
		"server", o.set.Server, "reason", err)
	return fmt.Errorf("%w: %s", errNoAnswer, err.Error()) // so that passes returns true for the error
}

// silent returns the error for a server that closes several connections in a row without an
// answer. It may be another MPI's, or one of ours that has too many unproved connections.
// Plain IMPI is not tried then, since anybody who can cause this could read the key. The
// operator is told once.
func (o *opening) silent(err error) error {
	if o.unanswered == maxUnanswered {
		o.set.Logger.Warn("the server closes our connections without an answer: trying again; "+
			"if it is another MPI's, write server_foreign = true beside server: then the key goes there in clear", "server", o.set.Server)
	}
	return fmt.Errorf("%w; if it is another MPI's, write server_foreign = true beside server", err)
}

type withoutTLS struct{ why error }

func (w *withoutTLS) Error() string {
	return "the server does not speak TLS, which this site needs: use impi-server or a site that embeds one; " +
		"for a server of another MPI write server_foreign = true beside server, or require_tls = false to go on without TLS: " + w.why.Error()
}

// give returns err as the error of a client that does not try again.
func (o *opening) give(err error) error {
	var r *refusal
	var w *withoutTLS
	switch {
	case errors.As(err, &w):
		return fmt.Errorf("%w: %s: %w", startup.ErrAuth, o.set.Server, w)
	case errors.As(err, &r):
		return fmt.Errorf("the server %w: %s", startup.ErrFailed, r.text)
	case errors.Is(err, startup.ErrAuth):
		return fmt.Errorf("%s: %w", o.set.Server, err)
	}
	return fmt.Errorf("%w at %s: %w", ErrNoServer, o.set.Server, err)
}
