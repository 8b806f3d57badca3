package meet

import (
	"context"
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// AcceptConnect accepts or refuses a connection to a port, whose greeting has proved the port's
// key.
func (m *Meetings) AcceptConnect(ctx context.Context, l link.Link, g *dynamic.Acceptor, hello dynamic.Hello, t *routes.Transport) error {
	var verdict dynamic.Verdict
	allowed := m.Routes.AllowsWorlds(l, t)
	m.with(func(n *deciding) { verdict = n.Reserve(hello.Port, allowed) })
	if verdict != dynamic.Accepted {
		m.Log.Debug("refused a caller of a port", "port", hello.Port.String()[:8], "transport", t.Name, "reason", verdict)
	}
	err := dial.Answer(ctx, l, g, verdict)
	if verdict != dynamic.Accepted {
		return err
	}
	if err != nil {
		m.with(func(n *deciding) { n.Release(hello.Port) })
		return err
	}
	var taken bool
	m.with(func(n *deciding) { taken = n.Admit(hello.Port, waiting{l, t.Name, time.Now()}) })
	m.Log.Debug("accepted a caller of a port", "port", hello.Port.String()[:8], "transport", t.Name, "awaited", taken)
	return nil
}

// PortIsOpen reports whether a port is open, by its name.
func (m *Meetings) PortIsOpen(name dynamic.WorldID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, open := m.node.Ports.Key(name)
	return open
}

// BreakPort makes accepts at a port of a proc fail, both those that wait and later ones: for this
// reason no process will connect.
func (m *Meetings) BreakPort(p *procs.Proc, name dynamic.WorldID, reason string) {
	m.with(func(n *deciding) { n.Break(p, name, errors.New(reason)) })
}
