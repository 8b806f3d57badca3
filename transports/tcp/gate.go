package tcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/transports/socket"
)

const (
	// handshakes bounds the connections that are being made links at one time; the
	// others wait in the kernel's queue.
	handshakes = 64
	// strangersEvery is the least time between two reports of peers that were turned
	// away.
	strangersEvery = time.Second
)

// gate takes connections from several ports, and does with each, beside the
// others, what it needs to become a link: a peer that is slow holds nobody up.
type gate struct {
	ports   []*socket.Acceptor
	admit   func(context.Context, *net.TCPConn) (link.Link, error)
	made    chan link.Link
	refused chan error
	slots   chan struct{}
	life    context.Context
	end     context.CancelFunc
	work    sync.WaitGroup

	mu   sync.Mutex
	told time.Time // when a stranger was reported last
}

// newGate begins to accept.
func newGate(ports []*socket.Acceptor, admit func(context.Context, *net.TCPConn) (link.Link, error)) *gate {
	g := &gate{
		ports: ports, admit: admit,
		made: make(chan link.Link), refused: make(chan error), slots: make(chan struct{}, handshakes),
	}
	g.life, g.end = context.WithCancel(context.Background())
	for _, p := range ports {
		g.work.Go(func() { g.serve(p) })
	}
	return g
}

// serve takes the connections of one port.
func (g *gate) serve(port *socket.Acceptor) {
	for {
		select {
		case g.slots <- struct{}{}:
		case <-g.life.Done():
			return
		}
		c, err := port.Accept(g.life)
		if err != nil {
			<-g.slots
			if g.life.Err() != nil || errors.Is(err, link.ErrClosed) {
				return
			}
			g.report(err)
			continue
		}
		g.work.Go(func() {
			defer func() { <-g.slots }()
			g.pass(c.(*net.TCPConn))
		})
	}
}

// report waits until somebody takes an error.
func (g *gate) report(err error) {
	select {
	case g.refused <- err:
	case <-g.life.Done():
	}
}

// pass makes a link and hands it to Accept.
func (g *gate) pass(c *net.TCPConn) {
	l, err := g.admit(g.life, c)
	if err != nil {
		g.mu.Lock()
		tell := time.Since(g.told) >= strangersEvery
		if tell {
			g.told = time.Now()
		}
		g.mu.Unlock()
		if tell { // they come as fast as somebody likes
			g.report(err)
		}
		return
	}
	select {
	case g.made <- l:
	case <-g.life.Done():
		l.Close()
	}
}

// accept waits for a link.
func (g *gate) accept(ctx context.Context) (link.Link, error) {
	if g.life.Err() != nil {
		return nil, link.ErrClosed
	}
	select {
	case l := <-g.made:
		return l, nil
	case err := <-g.refused:
		return nil, err
	case <-g.life.Done():
		return nil, link.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close closes the ports, and links that nobody has accepted.
func (g *gate) close() (err error) {
	g.end()
	for _, p := range g.ports {
		err = errors.Join(err, p.Close())
	}
	g.work.Wait()
	return err
}
