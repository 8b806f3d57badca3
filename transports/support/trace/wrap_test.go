package trace

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Wrap makes a transport whose links are t's, traced on w. Lines name the link: the
// transport, a number, whether it was dialled or accepted, and the address. It serializes
// the calls of w.Write.
func Wrap(t transports.Transport, w io.Writer, opts ...Option) transports.Transport {
	one := &serial{w: w}
	show := func(l link.Link, name string, o options) link.Link { return newText(l, name, one, o) }
	return &transport{Transport: t, show: show, o: collect(opts)}
}

// Wrap makes a transport whose links are t's, captured, with the same names as the function
// Wrap gives.
func (c *Capture) Wrap(t transports.Transport, opts ...Option) transports.Transport {
	return &transport{Transport: t, show: c.link, o: collect(opts)}
}

type transport struct {
	transports.Transport
	show  func(link.Link, string, options) link.Link
	o     options
	links atomic.Int64
}

// Capabilities returns the wrapped transport's, without the data planes on which bytes
// would not pass through the trace.
func (t *transport) Capabilities() transports.Capabilities {
	c := t.Transport.Capabilities()
	c.DataPlanes = []transports.DataPlane{transports.PlaneStream}
	return c
}

// Listen opens a listener whose links are traced.
func (t *transport) Listen(ctx context.Context, at transports.ListenSpec) (transports.Listener, error) {
	ln, err := t.Transport.Listen(ctx, at)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: ln, t: t}, nil
}

// Dial makes a traced link.
func (t *transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	l, err := t.Transport.Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return t.show(l, t.name("to", to.Address), t.o), nil
}

// name returns a new link's name.
func (t *transport) name(way, address string) string {
	return fmt.Sprintf("%s#%d %s %s", t.Info().Name, t.links.Add(1), way, address)
}

type listener struct {
	transports.Listener
	t *transport
}

// Accept waits for a link and traces it.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	made, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	o := l.t.o
	o.sent, o.received, o.local, o.peer = o.received, o.sent, o.peer, o.local
	return l.t.show(made, l.t.name("at", l.Address()), o), nil
}

// serial serializes calls of Write.
type serial struct {
	mu sync.Mutex
	w  io.Writer
}

// Write passes p on.
func (s *serial) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
