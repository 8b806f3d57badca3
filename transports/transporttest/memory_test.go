package transporttest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/link/linktest"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// memory is a transport over in-memory pairs: the suite against the reference.
type memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
	wrap      func(link.Link) link.Link
}

func (m *memory) Info() transports.Info { return transports.Info{Name: "memory"} }

func (m *memory) Capabilities() transports.Capabilities {
	return transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneStream}, Reach: transports.ReachMachine}
}

func (m *memory) Schema() []transports.Setting { return nil }

func (m *memory) Configure(map[string]any) error { return nil }

func (m *memory) Listen(_ context.Context, at transports.ListenSpec) (transports.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &memoryListener{m: m, name: at.Name, arrived: make(chan link.Link, 128), closed: make(chan struct{})}
	m.listeners[at.Name] = l
	return l, nil
}

func (m *memory) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
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
	a, b := linktest.Pair(100_000)
	l.arrived <- m.wrap(b)
	return m.wrap(a), nil
}

type memoryListener struct {
	m       *memory
	name    string
	arrived chan link.Link
	closed  chan struct{}
	close   sync.Once
}

func (l *memoryListener) Accept(ctx context.Context) (link.Link, error) {
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

func (l *memoryListener) Address() string { return l.name }

func (l *memoryListener) Close() error {
	l.close.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.listeners, l.name)
		close(l.closed)
	})
	return nil
}

func newMemory(wrap func(link.Link) link.Link) transporttest.Harness {
	return transporttest.Harness{
		Transport: &memory{listeners: map[string]*memoryListener{}, wrap: wrap},
		Listen:    transports.ListenSpec{Name: "here"},
		Large:     16 << 20,
	}
}

func TestMemory(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		return newMemory(func(l link.Link) link.Link { return l })
	})
}

// A link that moves few bytes at a time, or none, fulfils the contract too.
func TestChoppedMemory(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Harness {
		sizes := []int{1, 0, 977, 100, 0, 0, 60000}
		return newMemory(func(l link.Link) link.Link {
			i := 0
			return linktest.Chop(l, func() int { i++; return sizes[i%len(sizes)] })
		})
	})
}
