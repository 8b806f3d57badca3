package resume_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/link/linktest"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// fragile is a transport of resumed links over in-memory ones that are cut again
// and again: the conformance suite must not notice.
type fragile struct {
	mu        sync.Mutex
	listeners map[string]*listener
	config    resume.Config
	capacity  int
	life      func() int // bytes after which an underlying link is cut; 0: never
	dialled   int
}

func (f *fragile) Info() transports.Info { return transports.Info{Name: "fragile"} }

func (f *fragile) Capabilities() transports.Capabilities {
	return transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneStream}, Reach: transports.ReachMachine}
}

func (f *fragile) Schema() []transports.Setting { return nil }

func (f *fragile) Configure(map[string]any) error { return nil }

func (f *fragile) Listen(_ context.Context, at transports.ListenSpec) (transports.Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &listener{f: f, name: at.Name, arrived: make(chan link.Link, 128), closed: make(chan struct{})}
	f.listeners[at.Name] = l
	return l, nil
}

func (f *fragile) Dial(ctx context.Context, to transports.DialSpec) (link.Link, error) {
	err := ctx.Err()
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.listeners[to.Address]
	code := transports.CodeTimeout
	if err == nil && l == nil {
		code, err = transports.CodeRefused, fmt.Errorf("no listener %q", to.Address)
	}
	if err != nil {
		return nil, &transports.Error{Transport: "fragile", Op: "dial", Address: to.Address, Code: code, Reason: err.Error(), Cause: err}
	}
	f.dialled++
	config := f.config
	config.Session = resume.Session{byte(f.dialled >> 8), byte(f.dialled)}
	config.Guard = new(sync.Mutex)
	c := &connection{f: f, acceptor: resume.New(config)}
	config.Dialler, config.Guard = true, new(sync.Mutex)
	c.dialler = resume.New(config)
	c.mend()
	l.arrived <- &end{c.acceptor, c}
	return &end{c.dialler, c}, nil
}

type listener struct {
	f       *fragile
	name    string
	arrived chan link.Link
	closed  chan struct{}
	close   sync.Once
}

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

func (l *listener) Address() string { return l.name }

func (l *listener) Close() error {
	l.close.Do(func() {
		l.f.mu.Lock()
		defer l.f.mu.Unlock()
		delete(l.f.listeners, l.name)
		close(l.closed)
	})
	return nil
}

// connection is both ends of a resumed link and their driver.
type connection struct {
	f                 *fragile
	mu                sync.Mutex
	dialler, acceptor *resume.Link
}

// mend replaces the underlying link if it is lost, unless an end is gone for good.
func (c *connection) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, a := c.dialler.Status(), c.acceptor.Status()
	over := func(s resume.State) bool { return s == resume.Closed || s == resume.Failed }
	switch {
	case over(a.State) && d.State == resume.Apart:
		c.dialler.Fail(errors.New("refused"))
	case over(d.State) && a.State == resume.Apart:
		c.acceptor.Fail(errors.New("nobody dials"))
	case !over(a.State) && !over(d.State) && (d.State == resume.Apart || a.State == resume.Apart):
		c.connect()
	}
	c.dialler.Pump()
	c.acceptor.Pump()
}

func (c *connection) connect() {
	x, y := linktest.Pair(c.f.capacity)
	if err := c.dialler.Dial(&mortal{Link: x, left: c.f.life()}); err != nil {
		return // closed meanwhile
	}
	var a resume.Arrival
	if h, ok, err := a.Read(y); ok && err == nil && c.acceptor.Accept(y, h) == nil {
		return
	}
	y.Close()
}

// mortal breaks its cable after a number of bytes.
type mortal struct {
	link.Link
	mu   sync.Mutex
	left int
}

func (m *mortal) count(n int, err error) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left > 0 {
		if m.left -= n; m.left <= 0 {
			m.Link.(*linktest.End).Break(errors.New("old age"))
		}
	}
	return n, err
}

func (m *mortal) Send(b [][]byte) (int, error) { return m.count(m.Link.Send(b)) }
func (m *mortal) Recv(b [][]byte) (int, error) { return m.count(m.Link.Recv(b)) }

// end is an end whose driver looks after it at each call.
type end struct {
	*resume.Link
	c *connection
}

func (e *end) Send(b [][]byte) (int, error) {
	e.c.mend()
	return e.Link.Send(b)
}

func (e *end) Recv(b [][]byte) (int, error) {
	e.c.mend()
	return e.Link.Recv(b)
}

func (e *end) Arm(want link.Interest) bool {
	e.c.mend()
	return e.Link.Arm(want)
}

func TestConformance(t *testing.T) {
	never := func() int { return 0 }
	for _, c := range []struct {
		name     string
		config   resume.Config
		capacity int
		life     func() int
	}{
		{"plain", resume.Config{}, 1 << 20, never},
		{"cut", resume.Config{Window: 100_000}, 1 << 20, lives(1000, 200_000)},
		{"checksums", resume.Config{Window: 50_000, Frame: 10_000, Checksum: true}, 60_000, lives(30_000, 200_000)},
		{"narrow", resume.Config{Window: 10_000, Ack: 1, Frame: 500}, 777, lives(5000, 50_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			transporttest.Run(t, func(*testing.T) transporttest.Harness {
				f := &fragile{listeners: map[string]*listener{}, config: c.config, capacity: c.capacity, life: c.life}
				return transporttest.Harness{Transport: f, Listen: transports.ListenSpec{Name: "here"}, Large: 1 << 20}
			})
		})
	}
}

// lives draws the age that underlying links reach, in bytes.
func lives(least, most int) func() int {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(1, 2))
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return least + rng.IntN(most-least)
	}
}
