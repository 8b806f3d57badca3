package stripe

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// Groups are the accepted connections whose stripes are not complete yet. The zero value is ready.
type Groups struct {
	mu     sync.Mutex
	groups map[[16]byte]*group
}

// group is a stripe that is not complete yet.
type group struct {
	conns   []transports.Conn
	missing int
	over    chan struct{} // closed once it is complete, or has failed
	failed  error         // set before that
}

// Accept takes a connection that was accepted, and waits until the other ones of its stripe have come, of
// which there may be most in all. One of the callers gets the stripe, or c itself if it is the only one,
// and the others nil without an error. After an error c is closed. Bound the time by ctx, and the number
// of callers.
func (g *Groups) Accept(ctx context.Context, most int, c transports.Conn) (transports.Conn, error) {
	var h hello
	err := conn.Within(ctx, c, func() (err error) {
		h, err = hear(c)
		return err
	})
	if err == nil && h.count > most {
		err = fmt.Errorf("%w: it says that a link has %d connections, and here it has at most %d", ErrProtocol, h.count, most)
	}
	if err != nil {
		_ = c.Close() // the error is reported already
		return nil, err
	}
	conns, err := g.join(ctx, h, c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	if conns == nil {
		return nil, nil //nolint:nilnil // another caller has it
	}
	if err := conn.Within(ctx, conns[0], func() error { return welcome(conns[0]) }); err != nil {
		for _, c := range conns {
			_ = c.Close()
		}
		return nil, err
	}
	return whole(conns), nil
}

// join adds a connection whose hello was heard, and waits until its stripe is complete. It returns all
// connections to one caller, in their order, and nil to the others, whose connection then belongs to
// that caller. If it fails, it fails for all of the stripe, and each caller still owns its connection.
func (g *Groups) join(ctx context.Context, h hello, c transports.Conn) ([]transports.Conn, error) {
	x, last, err := g.enter(h, c)
	if err != nil {
		return nil, err
	}
	if last {
		return x.conns, nil
	}
	select {
	case <-x.over:
		return nil, x.failed
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.groups[h.id] == x {
		delete(g.groups, h.id)
		x.failed = fmt.Errorf("%w: %d of %d did not come", ErrIncomplete, x.missing, h.count)
		close(x.over)
	}
	return nil, x.failed
}

// enter adds a connection, and reports whether it was the last of its stripe.
func (g *Groups) enter(h hello, c transports.Conn) (x *group, last bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x = g.groups[h.id]
	if x == nil {
		x = &group{conns: make([]transports.Conn, h.count), missing: h.count, over: make(chan struct{})}
		if g.groups == nil {
			g.groups = make(map[[16]byte]*group)
		}
		g.groups[h.id] = x
	}
	if len(x.conns) != h.count || x.conns[h.index] != nil {
		return nil, false, fmt.Errorf("%w: connection %d of %d is there already, or there are %d", ErrProtocol, h.index, h.count, len(x.conns))
	}
	x.conns[h.index] = c
	if x.missing--; x.missing > 0 {
		return x, false, nil
	}
	delete(g.groups, h.id)
	close(x.over)
	return x, true, nil
}
