package node

import (
	"maps"
	"sync"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/node/dial"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/wireup"
)

// meetings are what the node does about other worlds: ports of its procs, calls of
// others' ports, and links between procs of different worlds.
//
// The node greets who calls a port and lets it wait there, so that callers are
// answered while the port's owner computes. What they say next is the owner's.
type meetings struct {
	d      *directLinks
	world  dynamic.World // our own
	secret dynamic.Token // what worlds that met us greet us with
	names  registrar

	mu    sync.Mutex
	ports dynamic.Ports[*procs.Proc, caller]
	calls map[*procs.Proc]int // under way
	ties  dynamic.Ties[meetPair]
	links map[meetPair]metLink         // of those whose procs have the link
	wants map[meetPair]*wireup.Meeting // what procs asked for that do not have it yet

	lifetime *time.Timer // of the port that expires next; nil: none does

	spawned map[spawnID]*spawnedWorld       // that live
	awaited map[dynamic.World]*spawnedWorld // that are to call a port, by its name
}

func newMeetings(d *directLinks) *meetings {
	return &meetings{
		d: d, world: d.token.World(), secret: d.token.Meeting(), names: registrar{n: d.n},
		ports: dynamic.Ports[*procs.Proc, caller]{Gone: caller.hungUp}, calls: make(map[*procs.Proc]int), links: make(map[meetPair]metLink),
		wants:   make(map[meetPair]*wireup.Meeting),
		spawned: make(map[spawnID]*spawnedWorld), awaited: make(map[dynamic.World]*spawnedWorld),
	}
}

// able tells whether this job can meet others at all.
func (m *meetings) able() bool { return m.d.n.world != nil }

// keys are what diallers may greet this node with.
func (m *meetings) keys() dynamic.Keys {
	own := dynamic.KeysOfJob(m.d.token)
	met := m.secret.World()
	return func(name dynamic.World, of dynamic.Purpose) (dynamic.Token, bool) {
		switch of {
		case dynamic.OfPort:
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.ports.Key(name)
		case dynamic.OfWorld:
			return m.secret, m.able() && name == met
		default: // a job with another MPI has no token, and zeros are nobody's proof
			token, ok := own(name, of)
			return token, ok && token != dynamic.Token{}
		}
	}
}

// heard is a proc's message about other worlds. False: it is none.
func (m *meetings) heard(p *procs.Proc, x wireup.Message) bool {
	if x.Meeting == nil {
		return false
	}
	about := x.Meeting
	switch x.Kind {
	case wireup.KindPort:
		m.openPort(p, about)
	case wireup.KindUnport:
		m.closePort(p, about)
	case wireup.KindTake:
		m.take(p, about)
	case wireup.KindCall:
		m.call(p, about)
	case wireup.KindOpen:
		m.open(p, x.Peer, about)
	case wireup.KindForget:
		m.forget(p, x.Peer, about)
	case wireup.KindPublish, wireup.KindUnpublish, wireup.KindLookup:
		m.heardName(p, x.Kind, about)
	case wireup.KindSpawn:
		m.spawn(p, about)
	case wireup.KindPart:
		m.part(p, about)
	default:
		return false
	}
	return true
}

// refuse answers a request that failed.
func (m *meetings) refuse(p *procs.Proc, kind wireup.Kind, request uint64, class mpierr.Class, reason string) {
	m.answer(p, wireup.Message{Kind: kind, Reason: reason, Meeting: &wireup.Meeting{Request: request, Class: int(class)}})
}

func (m *meetings) answer(p *procs.Proc, x wireup.Message) {
	if err := p.Tell(x); err != nil {
		m.d.n.log.Debug("cannot tell", "proc", p.Who(), "kind", x.Kind, "error", err)
	}
}

// hand gives a proc a link, which is gone in any case, with the message that is
// about it, which has kind and meeting.
func (m *meetings) hand(p *procs.Proc, x wireup.Message, l link.Link, transport string) error {
	x.Transport, x.Reason = transport, dial.OriginOf(l).Reason
	fds, err := pack(l, &x)
	if err != nil {
		_ = l.Close()
	} else {
		err = p.Tell(x, fds...)
		wireup.CloseAll(fds)
	}
	if err != nil {
		m.d.n.log.Debug("link of another world is lost", "proc", p.Who(), "kind", x.Kind, "error", err)
		return err
	}
	m.d.n.log.Debug("link of another world", "proc", p.Who(), "kind", x.Kind, "transport", transport, "data_plane", x.DataPlane)
	return nil
}

// gone ends what a proc had to do with other worlds.
func (m *meetings) gone(p *procs.Proc) {
	rank := p.Rank()
	m.withPorts(func() {
		m.ports.Leave(p)
		maps.DeleteFunc(m.awaited, func(_ dynamic.World, o *spawnedWorld) bool { return o.by == p })
		for x := range m.ties.All() {
			if x.local == rank {
				m.ties.Forget(x)
				delete(m.links, x)
				delete(m.wants, x)
			}
		}
	})
}

// close ends all ports. Nothing arrives any more.
func (m *meetings) close() {
	for _, p := range m.d.n.procs.All() {
		m.gone(p)
	}
	m.names.close()
}
