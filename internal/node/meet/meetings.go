package meet

import (
	"context"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/tasks"
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

// Meetings has the ports, requests and links of a node's procs that are about other worlds.
type Meetings struct {
	Settings
	world  dynamic.World // our own
	secret dynamic.Token // keys the greetings of worlds that have met this one
	names  nameService

	mu       sync.Mutex
	ports    dynamic.Ports[*procs.Proc, waiting]
	requests map[*procs.Proc]int // under way
	links    dynamic.WorldLinks[*wireup.Meeting, linked]

	expiry tasks.Alarm // of the port whose lifetime is over next
}

// New makes the meetings of a job that begins to run.
func New(s Settings) *Meetings {
	return &Meetings{
		Settings: s, world: s.Token.World(), secret: s.Token.Meeting(), names: nameService{NameSettings: s.Names},
		ports: dynamic.Ports[*procs.Proc, waiting]{Gone: waiting.hungUp}, requests: make(map[*procs.Proc]int),
	}
}

// Keys gives the key by which a greeting must be proved, by the name and the purpose in it.
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
		default: // the token of a job with another MPI is zero, with which nothing can be proved
			token, ok := own(name, of)
			return token, ok && token != dynamic.Token{}
		}
	}
}

// Heard does what a proc's message about other worlds asks for. False: the message is about
// something else.
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

// BeginFor runs a request of a proc beside everything else, or refuses it with an answer of a kind and
// an error class if too many are under way.
func (m *Meetings) BeginFor(p *procs.Proc, answer wireup.Kind, request uint64, class mpierr.Class, f func()) {
	if !m.begin(p, f) {
		m.Refuse(p, answer, request, class, "too many calls of the proc are under way, or the job is ending")
	}
}

func (m *Meetings) begin(p *procs.Proc, f func()) bool {
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

// Answer sends a proc a message. A proc that has ended does not get it.
func (m *Meetings) Answer(p *procs.Proc, x wireup.Message) {
	if err := p.Tell(x); err != nil {
		m.Log.Debug("cannot tell", "proc", p.Who(), "kind", x.Kind, "error", err)
	}
}

// hand gives a proc a link with the message about it. The node does not have the link any more then,
// even if there is an error.
func (m *Meetings) hand(p *procs.Proc, x wireup.Message, l link.Link, transport string) error {
	x.Transport = transport
	if err := p.Hand(l, &x); err != nil {
		m.Log.Debug("link of another world is lost", "proc", p.Who(), "kind", x.Kind, "error", err)
		return err
	}
	m.Log.Debug("link of another world", "proc", p.Who(), "kind", x.Kind, "transport", transport, "data_plane", x.DataPlane)
	return nil
}

// Gone closes the ports of a proc that has ended, and forgets its links to other worlds.
func (m *Meetings) Gone(p *procs.Proc) {
	m.withPorts(func() {
		m.ports.Leave(p)
		m.links.Leave(dynamic.Member{World: m.world, Rank: p.Rank()})
	})
}

// Close closes all ports, and unpublishes the names of the node's procs. Connections must not
// arrive any more.
func (m *Meetings) Close() {
	for _, p := range m.Procs.All() {
		m.Gone(p)
	}
	m.names.close()
}
