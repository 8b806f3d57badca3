package meet

import (
	"maps"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/wireup"
)

type linked struct {
	transport, plane string
	dialled          bool
	since            time.Time
}

// recently is how long a link that has ended is still told of: where procs outlive the loss of
// others, they ask for another one in its place, which does not happen at the same moment at both
// ends.
const recently = 10 * time.Second

// forgotten notes that a proc has closed a link, or lost it. The caller has locked m.mu.
func (m *Meetings) forgotten(local wire.WorldRank, x wireup.Message, now time.Time) {
	pair := dynamic.WorldPair{Local: dynamic.WorldProc{World: m.node.World, Rank: local}, Peer: dynamic.WorldProc{Rank: x.Peer}}
	if len(x.Meeting.World) != len(pair.Peer.World) {
		return
	}
	copy(pair.Peer.World[:], x.Meeting.World)
	maps.DeleteFunc(m.ended, func(_ dynamic.WorldPair, at time.Time) bool { return now.Sub(at) > recently })
	if m.ended == nil {
		m.ended = make(map[dynamic.WorldPair]time.Time)
	}
	if len(m.ended) < links.MaxViews {
		m.ended[pair] = now
	}
}

// Describe adds the links to other worlds to d, and never the keys of ports.
func (m *Meetings) Describe(d *links.Node) {
	if !m.Able {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d.World, d.Ports = m.node.World.String(), m.node.Ports.Len()
	for x, at := range m.ended {
		if m.node.Links.Pairs.State(x) == dynamic.Unlinked && time.Since(at) <= recently && len(d.WorldLinks) < links.MaxViews {
			d.WorldLinks = append(d.WorldLinks, links.WorldLink{Local: int(x.Local.Rank), World: x.Peer.World.String(), Peer: int(x.Peer.Rank), State: links.StateEnded, Since: at})
		}
	}
	for x, state := range m.node.Links.Pairs.All() {
		if len(d.WorldLinks) == links.MaxViews {
			return
		}
		l := m.node.Links.LinkOf(x)
		a := links.WorldLink{
			Local: int(x.Local.Rank), World: x.Peer.World.String(), Peer: int(x.Peer.Rank), State: links.StateOpening,
			Transport: l.transport, Plane: l.plane, Dialled: l.dialled, Since: l.since,
		}
		switch state {
		case dynamic.Linked:
			a.State = links.StateLinked
		case dynamic.Yielding:
			a.State = links.StateWaiting
		default: // the link is being opened
		}
		d.WorldLinks = append(d.WorldLinks, a)
	}
}

// CountLinks counts the links that procs have to other worlds by a transport and data planes that
// chosen accepts: those that resume, and others.
func (m *Meetings) CountLinks(transport string, chosen func(plane string) bool) (resumable, others int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for x, state := range m.node.Links.Pairs.All() {
		l := m.node.Links.LinkOf(x)
		switch {
		case state != dynamic.Linked || l.transport != transport || !chosen(l.plane):
		case m.node.Links.Resumable.Get(x) != nil:
			resumable++
		default:
			others++
		}
	}
	return resumable, others
}

// Counts returns the numbers of ports, of requests of procs, and of pairs with procs of other
// worlds.
func (m *Meetings) Counts() (ports, requests, pairs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node.Ports.Len(), m.node.ProcsWithRequests(), m.node.Links.Pairs.Len()
}
