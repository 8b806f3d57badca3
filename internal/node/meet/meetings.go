package meet

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// maxRequests is how many requests of a proc may be under way at once.
const maxRequests = 1024

// Settings are what meetings need of their node.
type Settings struct {
	Ctx    context.Context     // ends with the node's job
	Begin  func(f func()) bool // runs f beside everything else. False: the job is ending
	Routes *routes.Table       // of a job that runs
	Procs  *procs.Set
	Token  dynamic.Token // of the job
	Able   bool          // the job can meet others at all
	Names  NameSettings
	Log    hclog.Logger

	// PortClosed is told when a proc has closed a port. nil: nobody wants to know.
	PortClosed func(dynamic.World)
}

// Meetings are what the procs of a node have to do with other worlds.
type Meetings struct {
	Settings
	world  dynamic.World // our own
	secret dynamic.Token // what worlds that met us greet us with
	names  nameService

	mu       sync.Mutex
	ports    dynamic.Ports[*procs.Proc, waiting]
	requests map[*procs.Proc]int // under way
	links    dynamic.WorldLinks[*wireup.Meeting, linked]

	lifetime *time.Timer // of the port that expires next; nil: none does
}

// New makes the meetings of a job that begins to run.
func New(s Settings) *Meetings {
	return &Meetings{
		Settings: s, world: s.Token.World(), secret: s.Token.Meeting(), names: nameService{NameSettings: s.Names},
		ports: dynamic.Ports[*procs.Proc, waiting]{Gone: waiting.hungUp}, requests: make(map[*procs.Proc]int),
	}
}

// Keys are what diallers may greet this node with.
func (m *Meetings) Keys() dynamic.Keys {
	own := dynamic.KeysOfJob(m.Token)
	met := m.secret.World()
	return func(name dynamic.World, of dynamic.Purpose) (dynamic.Token, bool) {
		switch of {
		case dynamic.OfPort:
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.ports.Key(name)
		case dynamic.OfWorld:
			return m.secret, m.Able && name == met
		default: // a job with another MPI has no token, and zeros are nobody's proof
			token, ok := own(name, of)
			return token, ok && token != dynamic.Token{}
		}
	}
}

// Heard is a proc's message about other worlds. False: it is none.
func (m *Meetings) Heard(p *procs.Proc, x wireup.Message) bool {
	if x.Meeting == nil {
		return false
	}
	about := x.Meeting
	switch x.Kind {
	case wireup.KindPort:
		m.openPort(p, about)
	case wireup.KindUnport:
		m.closePort(p, about)
	case wireup.KindAccept:
		m.accept(p, about)
	case wireup.KindConnect:
		m.connect(p, about)
	case wireup.KindOpen:
		m.openLink(p, x.Peer, about)
	case wireup.KindForget:
		m.forgetLink(p, x.Peer, about)
	case wireup.KindPublish, wireup.KindUnpublish, wireup.KindLookup:
		m.askNames(p, x.Kind, about)
	default:
		return false
	}
	return true
}

// BeginFor runs a request of a proc beside everything else. False: it must not.
func (m *Meetings) BeginFor(p *procs.Proc, f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests[p] >= maxRequests {
		return false
	}
	started := m.Begin(func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.requests[p]--; m.requests[p] == 0 {
				delete(m.requests, p)
			}
		}()
		f()
	})
	if started {
		m.requests[p]++
	}
	return started
}

// Refuse answers a request that failed.
func (m *Meetings) Refuse(p *procs.Proc, kind wireup.Kind, request uint64, class mpierr.Class, reason string) {
	m.Answer(p, wireup.Message{Kind: kind, Reason: reason, Meeting: &wireup.Meeting{Request: request, Class: int(class)}})
}

// Answer tells a proc something, if it is there.
func (m *Meetings) Answer(p *procs.Proc, x wireup.Message) {
	if err := p.Tell(x); err != nil {
		m.Log.Debug("cannot tell", "proc", p.Who(), "kind", x.Kind, "error", err)
	}
}

// hand gives a proc a link, which is gone in any case, with the message that is
// about it, which has kind and meeting.
func (m *Meetings) hand(p *procs.Proc, x wireup.Message, l link.Link, transport string) error {
	x.Transport, x.Reason = transport, dial.OriginOf(l).Reason
	fds, err := dial.Pack(l, &x)
	if err != nil {
		_ = l.Close()
	} else {
		err = p.Tell(x, fds...)
		wireup.CloseAll(fds)
	}
	if err != nil {
		m.Log.Debug("link of another world is lost", "proc", p.Who(), "kind", x.Kind, "error", err)
		return err
	}
	m.Log.Debug("link of another world", "proc", p.Who(), "kind", x.Kind, "transport", transport, "data_plane", x.DataPlane)
	return nil
}

// Gone ends what a proc had to do with other worlds.
func (m *Meetings) Gone(p *procs.Proc) {
	m.withPorts(func() {
		m.ports.Leave(p)
		m.links.Leave(dynamic.Member{World: m.world, Rank: p.Rank()})
	})
}

// Close ends all ports. Nothing arrives any more.
func (m *Meetings) Close() {
	for _, p := range m.Procs.All() {
		m.Gone(p)
	}
	m.names.close()
}
