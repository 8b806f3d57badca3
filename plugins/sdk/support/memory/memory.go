// Package memory is a transport for tests whose links do not leave the process: the test says what
// they are.
package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Transport connects listeners and diallers that use the same Transport.
type Transport struct {
	pair      func() (dialled, accepted link.Link)
	mu        sync.Mutex
	listeners map[string]*listener
}

// New makes a transport whose links are those that pair returns. One call of pair at a time is
// made.
func New(pair func() (dialled, accepted link.Link)) *Transport {
	return &Transport{pair: pair, listeners: map[string]*listener{}}
}

// Info implements transports.Transport.
func (m *Transport) Info() transports.Info { return transports.Info{Name: "memory"} }

// Capabilities implements transports.Transport.
func (m *Transport) Capabilities() transports.Capabilities {
	return transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneStream}, Reach: transports.ReachMachine}
}

// Schema implements transports.Transport.
func (m *Transport) Schema() []transports.Setting { return nil }

// Configure implements transports.Transport.
func (m *Transport) Configure(map[string]any) error { return nil }

// Listen implements transports.Transport. The address is the name in at.
func (m *Transport) Listen(_ context.Context, at transports.ListenSpec) (transports.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &listener{m: m, name: at.Name, arrived: make(chan link.Link, 128), closed: make(chan struct{})}
	m.listeners[at.Name] = l
	return l, nil
}

// Dial implements transports.Transport. It fails if nothing listens at the address.
func (m *Transport) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	fail := func(code transports.Code, err error) (link.Link, error) {
		return nil, &transports.Error{Transport: "memory", Op: "dial", Address: to.Address, Code: code, Reason: err.Error(), Cause: err}
	}
	if err := ctx.Err(); err != nil {
		return fail(transports.CodeTimeout, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.listeners[to.Address]
	if l == nil {
		return fail(transports.CodeRefused, fmt.Errorf("no listener %q", to.Address))
	}
	dialled, accepted := m.pair()
	l.arrived <- accepted
	return dialled, nil
}

type listener struct {
	m       *Transport
	name    string
	arrived chan link.Link
	closed  chan struct{}
	close   sync.Once
}

// Accept implements transports.Listener.
func (l *listener) Accept(ctx context.Context) (link.Link, error) {
	select {
	case <-l.closed:
		return nil, link.ErrClosed
	default:
	}
	select {
	case made := <-l.arrived:
		return made, nil
	case <-l.closed:
		return nil, link.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Address implements transports.Listener.
func (l *listener) Address() string { return l.name }

func (l *listener) Close() error {
	l.close.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.listeners, l.name)
		close(l.closed)
	})
	return nil
}
