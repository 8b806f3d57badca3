package stripe

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/transports"
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

// Join adds a connection whose hello was heard, and waits until its stripe is complete. It returns all
// connections to one caller, in their order, and nil to the others, whose connection then belongs to
// that caller. If it fails, it fails for all of the stripe, and each caller still owns its connection.
func (g *Groups) Join(ctx context.Context, h Hello, c transports.Conn) ([]transports.Conn, error) {
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
	if g.groups[h.ID] == x {
		delete(g.groups, h.ID)
		x.failed = fmt.Errorf("%d of %d connections of a link did not come: %w", x.missing, h.Count, ctx.Err())
		close(x.over)
	}
	return nil, x.failed
}

// enter adds a connection, and reports whether it was the last of its stripe.
func (g *Groups) enter(h Hello, c transports.Conn) (x *group, last bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x = g.groups[h.ID]
	if x == nil {
		x = &group{conns: make([]transports.Conn, h.Count), missing: h.Count, over: make(chan struct{})}
		if g.groups == nil {
			g.groups = make(map[[16]byte]*group)
		}
		g.groups[h.ID] = x
	}
	if len(x.conns) != h.Count || x.conns[h.Index] != nil {
		return nil, false, fmt.Errorf("%w: connection %d of %d is there already, or there are %d", ErrProtocol, h.Index, h.Count, len(x.conns))
	}
	x.conns[h.Index] = c
	if x.missing--; x.missing > 0 {
		return x, false, nil
	}
	delete(g.groups, h.ID)
	close(x.over)
	return x, true, nil
}
