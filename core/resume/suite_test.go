package resume_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/link/linktest"
	"github.com/openimpi/impi/plugins/sdk/support/memory"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// fragile makes resumed links over in-memory ones that are cut again and again: the conformance
// suite must not notice.
type fragile struct {
	config   resume.Config
	capacity int
	life     func() int // bytes after which an underlying link is cut; 0: never
	dialled  int
}

// pair makes the two ends of a resumed link.
func (f *fragile) pair() (dialled, accepted link.Link) {
	f.dialled++
	config := f.config
	config.Session = resume.ResumableID{byte(f.dialled >> 8), byte(f.dialled)}
	config.Guard = new(sync.Mutex)
	c := &connection{f: f, acceptor: resume.New(config)}
	config.Dialler, config.Guard = true, new(sync.Mutex)
	c.dialler = resume.New(config)
	c.mend()
	return &end{c.dialler, c}, &end{c.acceptor, c}
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
	case over(a.State) && d.State == resume.Detached:
		c.dialler.Fail(errors.New("refused"))
	case over(d.State) && a.State == resume.Detached:
		c.acceptor.Fail(errors.New("nobody dials"))
	case !over(a.State) && !over(d.State) && (d.State == resume.Detached || a.State == resume.Detached):
		c.connect()
	}
	c.dialler.Pump()
	c.acceptor.Pump()
}

func (c *connection) connect() {
	x, y := linktest.Pair(c.f.capacity)
	if err := c.dialler.Dial(&shortLived{Link: x, left: c.f.life()}); err != nil {
		return // closed meanwhile
	}
	var a resume.Arrival
	if h, ok, err := a.Read(y); ok && err == nil && c.acceptor.Accept(y, h) == nil {
		return
	}
	y.Close()
}

// shortLived breaks its cable after a number of bytes.
type shortLived struct {
	link.Link
	mu   sync.Mutex
	left int
}

func (s *shortLived) count(n int, err error) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 {
		if s.left -= n; s.left <= 0 {
			s.Link.(*linktest.End).Break(errors.New("old age"))
		}
	}
	return n, err
}

func (s *shortLived) Send(b [][]byte) (int, error) { return s.count(s.Link.Send(b)) }
func (s *shortLived) Recv(b [][]byte) (int, error) { return s.count(s.Link.Recv(b)) }

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
				f := &fragile{config: c.config, capacity: c.capacity, life: c.life}
				return transporttest.Harness{Transport: memory.New(f.pair), Listen: transports.ListenSpec{Name: "here"}, Large: 1 << 20, InProcess: true}
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
