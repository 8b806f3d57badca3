package stripe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// Dial makes a stripe of count connections: the first, and once the peer has taken that
// (Groups.Accept) the others at the same time. It returns when the peer has them all. If count is 1
// it returns the connection itself. After an error all connections are closed; if a dial has
// failed, the error is that dial's.
func Dial(ctx context.Context, count int, dial func(ctx context.Context, i int) (transports.Conn, error)) (transports.Conn, error) {
	x, err := Begin(ctx, Plan{Most: count, Dial: dial})
	c, several := x.(*Conn)
	if err != nil || !several {
		return x, err
	}
	if err := c.growNow(ctx); err != nil {
		c.Break()
		return nil, err
	}
	return c, nil
}

// Plan describes how a stripe is made.
type Plan struct {
	Most int // maximum number of connections, from the peer's address

	// Dial makes connection i, from 0. It is called with 0 first, and with the others at the same
	// time once many bytes have gone over connection 0, at most once for each.
	Dial func(ctx context.Context, i int) (transports.Conn, error)
}

// Begin makes the first connection of a stripe, and waits until the peer has taken it
// (Groups.Accept). If the plan has only one connection, Begin returns that connection itself. After
// an error the connection is closed.
func Begin(ctx context.Context, p Plan) (transports.Conn, error) {
	x, err := p.Dial(ctx, 0)
	if err != nil {
		return nil, err
	}
	h := hello{count: p.Most}
	_, _ = rand.Read(h.id[:]) // never fails
	if err := introduce(ctx, x, h); err != nil {
		_ = x.Close() // the error is reported already
		return nil, err
	}
	if p.Most == 1 {
		return x, nil
	}
	c := New([]transports.Conn{x})
	c.grows = &growth{plan: p, id: h.id}
	return c, nil
}

// introduce sends the hello of a connection, and waits until the peer has taken it.
func introduce(ctx context.Context, x transports.Conn, h hello) error {
	err := conn.Within(ctx, x, func() error {
		if err := h.say(x); err != nil {
			return err
		}
		return await(x)
	})
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrProtocol) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrGivenUp, err)
}
