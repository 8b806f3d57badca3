package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/openimpi/impi/core/startup"
)

// opening is how a client begins on the connections that it makes until one is of use.
type opening struct {
	set   *Settings
	auth  startup.Auth // that the server may see
	plain bool         // IMPI's AUTH comes first
	deaf  int          // connections in a row on which nothing was answered
}

func newOpening(set *Settings, auth startup.Auth) *opening {
	return &opening{set: set, auth: auth, plain: set.Own == nil}
}

// begin returns what startup goes over: nc, or what is above it.
func (o *opening) begin(ctx context.Context, nc net.Conn) (net.Conn, error) {
	if o.plain {
		return nc, nil
	}
	c := newCaller(o.set.Own, o.auth, o.set.Logger)
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

// fallBack decides whether plain IMPI comes next.
func (o *opening) fallBack(ctx context.Context, err error) error {
	var r *refusal
	foreign := errors.Is(err, errForeign) || errors.As(err, &r) && r.foreign()
	if errors.Is(err, errDeaf) && ctx.Err() == nil {
		o.deaf++
	} else {
		o.deaf = 0
	}
	switch {
	case !foreign && o.deaf < deafs:
		return err
	case !foreign && (o.set.Own.NeedTLS || o.auth.HasKey):
		return o.silent(err)
	case foreign && o.set.Own.NeedTLS:
		return &withoutTLS{err}
	}
	o.plain = true
	o.set.Logger.Warn("the server does not speak TLS: all that is said to it can be read on the way, the key too; "+
		"server_foreign = true beside server says that this is meant, require_tls = true forbids it",
		"server", o.set.Server, "reason", err)
	return fmt.Errorf("%w: %s", errDeaf, err.Error()) // which passes
}

// silent is the error of a connection to a server that ends one after the other without
// a word. It may be another MPI's, or ours, where a crowd keeps us out: the key is not to
// be read by whoever can make one. The operator is told once.
func (o *opening) silent(err error) error {
	if o.deaf == deafs {
		o.set.Logger.Warn("the server ends our connections without a word: trying again; "+
			"if it is another MPI's, write server_foreign = true beside server: then the key goes there in clear", "server", o.set.Server)
	}
	return fmt.Errorf("%w; if it is another MPI's, write server_foreign = true beside server", err)
}

// withoutTLS is what ends a client that must have TLS.
type withoutTLS struct{ why error }

func (w *withoutTLS) Error() string {
	return "the server does not speak TLS, which this site needs: use impi-server or a site that embeds one; " +
		"for a server of another MPI write server_foreign = true beside server, or require_tls = false to take what there is: " + w.why.Error()
}

// give is the error of a client that does not try again.
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
