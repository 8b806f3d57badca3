package node

import (
	"context"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/wireup"
)

// openPort begins to let callers in. Who has asked with a request hears of it.
func (m *meetings) openPort(p *proc, x *wireup.Meeting) {
	why := m.addPort(p, x)
	switch {
	case why != "" && x.Request != 0:
		m.refuse(p, wireup.KindPort, x.Request, mpierr.Port, why)
	case why != "":
		m.d.n.log.Warn("a proc opens a port that it cannot have", "proc", p.who(), "reason", why)
	case x.Request != 0:
		m.answer(p, wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.Meeting{Request: x.Request}})
	}
}

func (m *meetings) addPort(p *proc, x *wireup.Meeting) (problem string) {
	key, ok := keyIn(x.Key)
	if !ok {
		return "its key has a wrong size"
	}
	if !m.able() {
		return "the job cannot meet others"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mine := 0
	for _, c := range m.ports {
		if c.owner == p {
			mine++
		}
	}
	backlog := x.Backlog
	if backlog <= 0 {
		backlog = defaultBacklog
	}
	switch {
	case m.ports[key.World()] != nil:
		return "the port is open already"
	case mine >= maxPorts:
		return "the proc has too many ports"
	}
	c := &callPort{owner: p, key: key, backlog: min(backlog, maxBacklog)}
	m.ports[key.World()] = c
	m.expires(c, x.Timeout)
	return ""
}

func keyIn(b []byte) (key dynamic.Token, ok bool) {
	return key, copy(key[:], b) == len(key) && len(b) == len(key)
}

// portOf gives a proc's own port. The caller has mu.
func (m *meetings) portOf(p *proc, x *wireup.Meeting) *callPort {
	key, ok := keyIn(x.Key)
	if !ok {
		return nil
	}
	c := m.ports[key.World()]
	if c == nil || c.owner != p {
		return nil
	}
	return c
}

// closePort refuses those who wait at a port and ends it.
func (m *meetings) closePort(p *proc, x *wireup.Meeting) {
	m.mu.Lock()
	c := m.portOf(p, x)
	if c != nil {
		delete(m.ports, c.key.World())
	}
	m.mu.Unlock()
	if c == nil {
		return
	}
	if c.spawned != nil {
		c.spawned.become(bound, called)
	}
	for _, request := range c.hangUp() {
		m.refuse(p, wireup.KindCaller, request, mpierr.Port, "the port was closed")
	}
}

// take answers with the next caller of a port, now or later.
func (m *meetings) take(p *proc, x *wireup.Meeting) {
	m.mu.Lock()
	c := m.portOf(p, x)
	var (
		got     caller
		ok      bool
		problem string
	)
	class := mpierr.Port
	switch {
	case c == nil:
		problem = "the port is not open"
	case c.broken != "" && !x.Cancel:
		problem, class = c.broken, mpierr.Spawn
	case x.Cancel:
		if c.cancel(x.Request) {
			problem = "given up"
		}
	default:
		var full bool
		if got, ok, full = c.take(x.Request); full {
			problem = "too many wait for callers of the port"
		}
	}
	m.mu.Unlock()
	switch {
	case problem != "" && (c != nil || !x.Cancel):
		m.refuse(p, wireup.KindCaller, x.Request, class, problem)
	case ok:
		m.give(p, x.Request, got)
	}
}

// give hands a caller to who waits for it.
func (m *meetings) give(p *proc, request uint64, x caller) {
	to := wireup.Message{Kind: wireup.KindCaller, Meeting: &wireup.Meeting{Request: request, Waited: time.Since(x.since)}}
	_ = m.hand(p, to, x.link, x.transport)
}

// acceptCall lets a caller in whose greeting proved that it has the port's key.
func (m *meetings) acceptCall(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *transport) error {
	verdict := m.holdPlace(hello.Port, l, t)
	if verdict == dynamic.Accepted {
		g.Accept()
	} else {
		m.d.n.log.Debug("a caller of a port is refused", "port", hello.Port.String()[:8], "transport", t.name, "reason", verdict)
		g.Refuse(verdict)
	}
	err := converse(ctx, l, g, g.Done)
	if verdict != dynamic.Accepted {
		return err
	}
	m.mu.Lock()
	c := m.ports[hello.Port]
	switch {
	case c == nil: // closed meanwhile
		m.mu.Unlock()
		return l.Close()
	case err != nil:
		c.held--
		m.mu.Unlock()
		return err
	}
	x := caller{l, t.name, time.Now()}
	request, taken := c.enter(x)
	m.mu.Unlock()
	m.d.n.log.Debug("a caller of a port is let in", "port", hello.Port.String()[:8], "transport", t.name, "awaited", taken)
	if taken {
		m.give(c.owner, request, x)
	}
	return nil
}

// holdPlace judges a caller and keeps it a place.
func (m *meetings) holdPlace(port dynamic.World, l link.Link, t *transport) dynamic.Verdict {
	if !m.d.n.allowsAbroad(l, t) {
		return dynamic.NotAllowed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch c := m.ports[port]; {
	case c == nil:
		return dynamic.ClosedPort
	case !c.hold():
		return dynamic.Crowded
	}
	return dynamic.Accepted
}
