package node

import (
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/links"
)

// metLink is what is known of a link to a proc of another world.
type metLink struct {
	transport, plane string
	dialled          bool
	since            time.Time
}

// note keeps what is known of a link, until there is none.
func (m *meetings) note(x meetPair, l metLink) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ties.Phase(x) == dynamic.Linked {
		m.links[x] = l
		delete(m.wants, x)
	}
}

// describe tells of the links to other worlds, and never of the keys of ports.
func (m *meetings) describe(d *links.Node) {
	if !m.able() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d.World, d.Ports = m.world.String(), m.ports.Len()
	for x, phase := range m.ties.All() {
		if len(d.Abroad) == links.MaxViews {
			return
		}
		l := m.links[x]
		a := links.Abroad{
			Local: int(x.local), World: x.peer.World.String(), Peer: int(x.peer.Rank), State: links.StateOpening,
			Transport: l.transport, Plane: l.plane, Dialled: l.dialled, Since: l.since,
		}
		switch phase {
		case dynamic.Linked:
			a.State = links.StateLinked
		case dynamic.Yielding:
			a.State = links.StateWaiting
		default: // it is being opened
		}
		d.Abroad = append(d.Abroad, a)
	}
}
