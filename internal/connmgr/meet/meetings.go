package meet

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/connmgr/dial"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Settings are what meetings need of their node.
type Settings struct {
	Ctx    context.Context     // ends with the node's job
	Begin  func(f func()) bool // runs f in a goroutine; false: the job is ending, and f does not run
	Routes *routes.Table       // of a job that runs
	Procs  *procs.Set
	Token  dynamic.Token // of the job
	Able   bool          // the job can meet other jobs
	Names  NameSettings
	Log    hclog.Logger

	// PortClosed, if not nil, is called when a proc has closed a port.
	PortClosed func(dynamic.WorldID)
}

type (
	deciding = meetings.Node[*procs.Proc, waiting, linked]
	step     = meetings.Step[*procs.Proc, waiting]
)

// Meetings holds the ports, requests and links of a node's procs that are about other worlds.
type Meetings struct {
	Settings
	secret dynamic.Token // keys the greetings of worlds that have met this one
	names  nameService

	mu       sync.Mutex
	node     deciding
	dialling map[*dynamic.ResumableLink]context.CancelFunc // dial plans of links that are lost
	ended    map[dynamic.WorldPair]time.Time               // when links were closed
	expiry   lifetime.Alarm                                // of the port whose lifetime is over next
}

// New makes the meetings of a job that begins to run.
func New(s Settings) *Meetings {
	m := &Meetings{Settings: s, secret: s.Token.Meeting(), names: nameService{NameSettings: s.Names}, dialling: make(map[*dynamic.ResumableLink]context.CancelFunc)}
	m.node = deciding{World: s.Token.World(), Able: s.Able, Resume: m.resumeLimit, Ports: dynamic.Ports[*procs.Proc, waiting]{ConnClosed: waiting.hungUp}}
	return m
}

// Keys returns the keys that must prove greetings, by the name and the purpose in a greeting.
func (m *Meetings) Keys() dynamic.Keys {
	own := dynamic.KeysOfJob(m.Token)
	met := m.secret.World()
	return func(name dynamic.WorldID, of dynamic.Purpose) (dynamic.Token, bool) {
		switch of {
		case dynamic.OfPort:
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.node.Ports.Key(name)
		case dynamic.OfWorld:
			return m.secret, m.Able && name == met
		default: // the token of a job with another MPI is zero, which proves nothing
			token, ok := own(name, of)
			return token, ok && token != dynamic.Token{}
		}
	}
}

// HandleMessage handles a proc's message about other worlds. It returns false if the message is
// about something else.
func (m *Meetings) HandleMessage(p *procs.Proc, x wireup.Message) (mine bool) {
	m.with(func(n *deciding) {
		if mine = n.HandleMessage(time.Now(), p, x); mine && x.Kind == wireup.KindForget {
			m.forgotten(p.Rank(), x, time.Now())
		}
	})
	if mine && x.Resumable != nil && x.Resumable.Over {
		m.Log.Warn("a link to another world is not resumed any more", "rank", p.Rank(), "peer", x.Peer, "reason", x.Reason)
	}
	return mine
}

// with has f tell the decisions of an event, and carries out the steps that follow.
func (m *Meetings) with(f func(*deciding)) {
	m.mu.Lock()
	f(&m.node)
	var steps []step
	for {
		s, ok := m.node.Next()
		if !ok {
			break
		}
		steps = append(steps, s)
	}
	at, ok := m.node.Ports.Deadline()
	m.expiry.Set(at, ok, func() { m.with(func(n *deciding) { n.Tick(time.Now()) }) })
	m.mu.Unlock()
	for _, s := range steps {
		m.carryOut(s)
	}
}

func (m *Meetings) carryOut(s step) {
	p := s.Proc
	switch s.Action {
	case meetings.Answer:
		if s.Message.Kind == wireup.KindLink {
			m.Log.Info("no "+map[bool]string{true: "further connection", false: "link"}[s.Message.Resumable != nil]+" to a proc of another world", "from", p.Rank(), "to", s.Pair.Peer, "reason", s.Message.Reason)
		}
		m.Answer(p, s.Message)
	case meetings.PassConn:
		s.Message.Meeting.Waited = time.Since(s.Conn.since)
		_ = m.hand(p, s.Message, s.Conn.link, s.Conn.transport)
	case meetings.Drop:
		_ = s.Conn.link.Close()
	case meetings.ReportToOperator:
		m.Log.Warn("a proc may not open a port", "proc", p.ID(), "reason", s.Message.Reason)
	case meetings.Connect:
		m.run(p, wireup.KindConnected, s.Request, mpierr.Port, func() { m.call(s) })
	case meetings.Dial:
		if !m.Begin(func() { m.dialLink(s) }) {
			m.with(func(n *deciding) { n.Links.Pairs.Fail(s.Pair) })
		}
	case meetings.RepairLink:
		m.Begin(func() { m.repair(s) })
	case meetings.AskNames:
		m.run(p, wireup.KindNamed, s.Message.Meeting.Request, mpierr.Other, func() { m.name(p, s.Message.Kind, s.Message.Meeting) })
	case meetings.PortClosed:
		if m.PortClosed != nil {
			m.PortClosed(s.Port)
		}
	}
}

// BeginFor runs a request of a proc in the background or, if too many are under way, refuses it
// with an answer of a kind and an error class.
func (m *Meetings) BeginFor(p *procs.Proc, answer wireup.Kind, request uint64, class mpierr.Class, f func()) {
	m.mu.Lock()
	begun := m.node.Begin(p)
	m.mu.Unlock()
	if begun {
		m.run(p, answer, request, class, f)
	} else {
		m.with(func(n *deciding) { n.Refuse(p, answer, request, class, meetings.ErrBusy) })
	}
}

// run runs a request that was begun, unless the job is ending.
func (m *Meetings) run(p *procs.Proc, answer wireup.Kind, request uint64, class mpierr.Class, f func()) {
	if m.Begin(func() {
		defer m.with(func(n *deciding) { n.Ended(p) })
		f()
	}) {
		return
	}
	m.with(func(n *deciding) {
		n.Ended(p)
		n.Refuse(p, answer, request, class, meetings.ErrBusy)
	})
}

// Answer sends a message to a proc, unless the proc has ended.
func (m *Meetings) Answer(p *procs.Proc, x wireup.Message) {
	if err := p.Send(x); err != nil {
		m.Log.Debug("cannot send to a proc", "proc", p.ID(), "kind", x.Kind, "error", err)
	}
}

// hand gives a proc a link with the message about it. The node no longer owns the link then, even
// if there is an error.
func (m *Meetings) hand(p *procs.Proc, x wireup.Message, l link.Link, transport string) error {
	x.Transport, x.Reason = transport, dial.OriginOf(l).Reason
	if err := p.PassLink(l, &x); err != nil {
		m.Log.Debug("link of another world is lost", "proc", p.ID(), "kind", x.Kind, "error", err)
		return err
	}
	m.Log.Debug("link of another world", "proc", p.ID(), "kind", x.Kind, "transport", transport, "data_plane", x.DataPlane)
	return nil
}

// ProcEnded closes the ports of a proc that has ended, and forgets its links to other worlds.
func (m *Meetings) ProcEnded(p *procs.Proc) {
	m.with(func(n *deciding) { n.ProcEnded(p) })
}

// Close closes all ports, and unpublishes the names of the node's procs. Connections must not
// arrive any more.
func (m *Meetings) Close() {
	for _, p := range m.Procs.All() {
		m.ProcEnded(p)
	}
	m.names.close()
}
