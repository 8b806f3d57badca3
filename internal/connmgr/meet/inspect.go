package meet

import (
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/links"
)

type linked struct {
	transport, plane string
	dialled          bool
	since            time.Time
}

// Describe adds the links to other worlds to d, and never the keys of ports.
func (m *Meetings) Describe(d *links.Node) {
	if !m.Able {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d.World, d.Ports = m.node.World.String(), m.node.Ports.Len()
	for x, phase := range m.node.Links.Pairs.All() {
		if len(d.WorldLinks) == links.MaxViews {
			return
		}
		l := m.node.Links.Given(x)
		a := links.WorldLink{
			Local: int(x.Local.Rank), World: x.Peer.World.String(), Peer: int(x.Peer.Rank), State: links.StateOpening,
			Transport: l.transport, Plane: l.plane, Dialled: l.dialled, Since: l.since,
		}
		switch phase {
		case dynamic.Linked:
			a.State = links.StateLinked
		case dynamic.Yielding:
			a.State = links.StateWaiting
		default: // the link is being opened
		}
		d.WorldLinks = append(d.WorldLinks, a)
	}
}

// Counts returns the numbers of ports, of requests of procs, and of pairs with procs of other
// worlds.
func (m *Meetings) Counts() (ports, requests, pairs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node.Ports.Len(), m.node.Requesting(), m.node.Links.Pairs.Len()
}
