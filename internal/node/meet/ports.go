package meet

import (
	"context"
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// openPort opens a port. The proc gets an answer if its message has a request number.
func (m *Meetings) openPort(p *procs.Proc, x *wireup.Meeting) {
	why := m.addPort(p, x)
	switch {
	case why != nil && x.Request != 0:
		m.Refuse(p, wireup.KindPort, x.Request, mpierr.Port, why.Error())
	case why != nil:
		m.Log.Warn("a proc opens a port that it cannot have", "proc", p.Who(), "reason", why)
	case x.Request != 0:
		m.Answer(p, wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.Meeting{Request: x.Request}})
	}
}

func (m *Meetings) addPort(p *procs.Proc, x *wireup.Meeting) (err error) {
	key, ok := keyIn(x.Key)
	switch {
	case !ok:
		return errors.New("its key has a wrong size")
	case !m.Able:
		return errors.New("the job cannot meet others")
	}
	m.withPorts(func() { err = m.ports.Open(time.Now(), p, key, x.Backlog, x.Timeout) })
	return err
}

// withPorts calls f, which tells the ports of an event, and carries out their steps.
func (m *Meetings) withPorts(f func()) {
	m.mu.Lock()
	f()
	var steps []dynamic.PortStep[*procs.Proc, waiting]
	for {
		s, ok := m.ports.Next()
		if !ok {
			break
		}
		steps = append(steps, s)
	}
	at, ok := m.ports.Deadline()
	m.expiry.Set(at, ok, func() { m.withPorts(func() { m.ports.Tick(time.Now()) }) })
	m.mu.Unlock()
	for _, s := range steps {
		m.carryOutStep(s)
	}
}

func (m *Meetings) carryOutStep(s dynamic.PortStep[*procs.Proc, waiting]) {
	switch {
	case s.Drop:
		_ = s.Conn.link.Close()
	case s.Err == nil:
		to := wireup.Message{Kind: wireup.KindAccepted, Meeting: &wireup.Meeting{Request: s.Request, Waited: time.Since(s.Conn.since)}}
		_ = m.hand(s.Owner, to, s.Conn.link, s.Conn.transport)
	case s.Broken: // by the end of the spawned world that was to connect
		m.Refuse(s.Owner, wireup.KindAccepted, s.Request, mpierr.Spawn, s.Err.Error())
	default:
		m.Refuse(s.Owner, wireup.KindAccepted, s.Request, mpierr.Port, s.Err.Error())
	}
}

func keyIn(b []byte) (key dynamic.Token, ok bool) {
	return key, copy(key[:], b) == len(key) && len(b) == len(key)
}

// closePort closes a port, with the connections that wait there.
func (m *Meetings) closePort(p *procs.Proc, x *wireup.Meeting) {
	key, ok := keyIn(x.Key)
	if !ok {
		return
	}
	closed := false
	m.withPorts(func() { closed = m.ports.Close(p, key) })
	if closed && m.PortClosed != nil {
		m.PortClosed(key.World())
	}
}

// accept answers with the next connection to a port, now or later.
func (m *Meetings) accept(p *procs.Proc, x *wireup.Meeting) {
	key, ok := keyIn(x.Key)
	m.withPorts(func() {
		switch {
		case x.Cancel && ok:
			m.ports.Cancel(p, key, x.Request)
		case !x.Cancel: // no port has a key of zeros
			m.ports.Accept(p, key, x.Request)
		}
	})
}

// AcceptConnect accepts or refuses a connection to a port, whose greeting has proved that the caller
// has the port's key.
func (m *Meetings) AcceptConnect(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *routes.Transport) error {
	verdict := m.holdPlace(hello.Port, l, t)
	if verdict != dynamic.Accepted {
		m.Log.Debug("a caller of a port is refused", "port", hello.Port.String()[:8], "transport", t.Name, "reason", verdict)
	}
	err := dial.Answer(ctx, l, g, verdict)
	if verdict != dynamic.Accepted {
		return err
	}
	if err != nil {
		m.withPorts(func() { m.ports.Release(hello.Port) })
		return err
	}
	var taken bool
	m.withPorts(func() { taken = m.ports.Enter(hello.Port, waiting{l, t.Name, time.Now()}) })
	m.Log.Debug("a caller of a port is let in", "port", hello.Port.String()[:8], "transport", t.Name, "awaited", taken)
	return nil
}

// holdPlace decides about a connection to a port, and keeps it a place if it is accepted.
func (m *Meetings) holdPlace(port dynamic.World, l link.Link, t *routes.Transport) (verdict dynamic.Verdict) {
	if !m.Routes.AllowsAbroad(l, t) {
		return dynamic.NotAllowed
	}
	m.withPorts(func() { verdict = m.ports.Hold(port) })
	return verdict
}

// PortIsOpen reports whether a port is open, by its name.
func (m *Meetings) PortIsOpen(name dynamic.World) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, open := m.ports.Key(name)
	return open
}

// BreakPort has accepts at a port of a proc fail, those that wait and later ones: nobody will connect,
// for this reason.
func (m *Meetings) BreakPort(p *procs.Proc, name dynamic.World, reason string) {
	m.withPorts(func() { m.ports.Break(p, name, errors.New(reason)) })
}
