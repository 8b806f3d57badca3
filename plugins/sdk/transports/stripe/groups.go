package stripe

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/conn"
)

// Groups are the stripes of accepted connections to which others may be added. The zero value is
// ready.
type Groups struct {
	mu   sync.Mutex
	live map[[16]byte]*Conn
}

// Accept handles a connection that was accepted. It returns a stripe if c is the stripe's first
// connection, c itself if it is to stay the only one, and nil without an error if c was added to an
// existing stripe. A stripe may have most connections. After an error c is closed. Bound the time
// by ctx, and the number of callers.
func (g *Groups) Accept(ctx context.Context, most int, c transports.Conn) (transports.Conn, error) {
	made, err := g.take(ctx, most, c)
	if err != nil {
		_ = c.Close() // the error is reported already
		return nil, err
	}
	return made, nil
}

// take is Accept, but leaves c open after an error.
func (g *Groups) take(ctx context.Context, most int, c transports.Conn) (transports.Conn, error) {
	var h hello
	err := conn.Within(ctx, c, func() (err error) {
		h, err = hear(c)
		return err
	})
	if err == nil && h.count > most {
		err = fmt.Errorf("%w: it says that a link has %d connections, and here it has at most %d", ErrProtocol, h.count, most)
	}
	switch {
	case err != nil:
		return nil, err
	case h.index > 0:
		return nil, g.join(ctx, h, c)
	case h.count == 1:
		return c, conn.Within(ctx, c, func() error { return welcome(c) })
	}
	s, err := g.begin(h, c)
	if err != nil {
		return nil, err
	}
	if err := conn.Within(ctx, c, func() error { return welcome(c) }); err != nil {
		s.Break()
		return nil, err
	}
	return s, nil
}

func (g *Groups) begin(h hello, c transports.Conn) (*Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live[h.id] != nil {
		return nil, fmt.Errorf("%w: connection 0 is there already", ErrProtocol)
	}
	if g.live == nil {
		g.live = make(map[[16]byte]*Conn)
	}
	s := New([]transports.Conn{c})
	s.most, s.claimed = h.count, 1
	s.forget = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.live[h.id] == s {
			delete(g.live, h.id)
		}
	}
	g.live[h.id] = s
	return s, nil
}

func (g *Groups) join(ctx context.Context, h hello, c transports.Conn) error {
	g.mu.Lock()
	s := g.live[h.id]
	g.mu.Unlock()
	if s == nil {
		return ErrEnded
	}
	return s.join(ctx, h, c)
}
