package tcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/unproved"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

// refusalsEvery is the minimum interval between two reports of refused peers.
const refusalsEvery = time.Second

// gate accepts connections from several ports and makes links of them, of several at the
// same time, so that a slow peer delays no other. The number of these is bounded.
type gate struct {
	ports   []*socket.Acceptor
	admit   func(context.Context, *net.TCPConn) (link.Link, error) // may return nil, nil
	made    chan link.Link
	refused chan error
	waiting *socket.Waiting // connections that become links, here and at other gates
	life    context.Context
	end     context.CancelFunc
	work    sync.WaitGroup

	mu   sync.Mutex
	told time.Time // when a refused peer was last reported
}

func newGate(ports []*socket.Acceptor, waiting *socket.Waiting, admit func(context.Context, *net.TCPConn) (link.Link, error)) *gate {
	g := &gate{
		ports: ports, admit: admit,
		made: make(chan link.Link), refused: make(chan error), waiting: waiting,
	}
	g.life, g.end = context.WithCancel(context.Background())
	for _, p := range ports {
		g.work.Go(func() { g.serve(p) })
	}
	return g
}

func (g *gate) serve(port *socket.Acceptor) {
	for {
		c, err := port.Accept(g.life)
		if err != nil {
			if g.life.Err() != nil || errors.Is(err, link.ErrClosed) {
				return
			}
			g.report(err)
			continue
		}
		ctx, evict := context.WithCancel(g.life)
		raw := c.(*net.TCPConn)
		leave := g.waiting.Enter(unproved.FromAddr(raw.RemoteAddr()), evict)
		g.work.Go(func() {
			defer evict()
			g.pass(ctx, raw, leave)
		})
	}
}

// report waits until Accept takes the error.
func (g *gate) report(err error) {
	select {
	case g.refused <- err:
	case <-g.life.Done():
	}
}

func (g *gate) pass(ctx context.Context, c *net.TCPConn, leave func()) {
	l, err := g.admit(ctx, c)
	leave()
	if err != nil {
		g.mu.Lock()
		tell := time.Since(g.told) >= refusalsEvery
		if tell {
			g.told = time.Now()
		}
		g.mu.Unlock()
		if tell { // any process can cause such reports at any rate
			g.report(err)
		}
		return
	}
	if l == nil {
		return
	}
	select {
	case g.made <- l:
	case <-g.life.Done():
		l.Close()
	}
}

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
