package job

import (
	"errors"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/internal/wireup"
)

// nameServer is a name server: that of a job, or the one that all jobs share.
type nameServer struct {
	table *names.Table
	last  names.Publisher
}

func (a *Worlds) newNameServer() *nameServer {
	s := &nameServer{table: names.NewTable(a.cfg.Names)}
	a.servers = append(a.servers, s)
	return s
}

// namesOf returns the server of a job, which the procs that it has spawned use as well.
func (a *Worlds) namesOf(w *Simulation) *nameServer {
	first := w.first()
	if first.names == nil {
		first.names = a.newNameServer()
	}
	return first.names
}

// first returns the job that existed from the start and has spawned, perhaps through others, this
// one.
func (w *Simulation) first() *Simulation {
	for w.spawned != nil {
		w = w.spawned.parents.w
	}
	return w
}

type nameService struct {
	own, shared *nameClient // nil: not used yet
	down        bool        // no server can be reached
	deaf        bool        // the answer to the next request gets lost
}

type nameClient struct {
	a      *Worlds
	at     *nameServer
	owner  names.Owner
	holder names.Publisher // the connection; 0: none
	old    names.Publisher // a connection that has ended without the server noticing; 0: none
	state  names.Client
}

func (s *site) nameClient(scope string, given bool) (*nameClient, string, error) {
	shared, scope, err := names.DefaultScope{Shared: true}.ScopeOf(scope, given)
	if err != nil {
		return nil, "", err
	}
	c, at, a := &s.names.own, s.w.cfg.Worlds.namesOf(s.w), s.w.cfg.Worlds
	if shared {
		c, at = &s.names.shared, a.shared
	}
	if *c == nil {
		token := dynamic.Token(s.w.first().job.Token)
		*c = &nameClient{a: a, at: at, owner: names.OwnerOf(token[:])}
	}
	return *c, scope, nil
}

func (a *Worlds) name(p *proc, kind wireup.Kind, x *wireup.OtherWorld) {
	a.under(p, 10*time.Microsecond, time.Millisecond, func() {
		a.Counts.Named++
		port, err := p.s.named(kind, x)
		if err != nil {
			a.Counts.Misnamed++
		}
		a.with(p.h, func(n *meetingNode) { n.Named(p, x.Request, port, mpierr.Of(err), err) })
	})
}

var errNoNames = errors.New("the server for names does not answer")

// named makes a request, and makes it again if the answer is lost.
func (s *site) named(kind wireup.Kind, x *wireup.OtherWorld) (port string, err error) {
	deaf := s.names.deaf
	s.names.deaf = false // applies to this request only, also if the request reaches no server
	scope, given := x.Info["scope"]
	c, scope, err := s.nameClient(scope, given)
	n := names.Name{Scope: scope, Service: x.Service}
	if err == nil {
		err = n.Check(x.Port)
	}
	switch {
	case err != nil:
		return "", err
	case s.names.down:
		return "", errNoNames
	}
	if deaf && c.holder == 0 { // a node only asks again on a connection that it has used before
		c.carryOut(c.state.Begin(), func(bool) bool { return true })
	}
	c.carryOut(c.state.Begin(), func(again bool) bool {
		lost := deaf
		deaf = false
		if port, err = c.ask(kind, n, x.Port, again, !lost); lost {
			c.hangUp(true)
		}
		return !lost
	})
	return port, err
}

// carryOut carries out the steps of an exchange. ask makes the request and reports whether an
// answer came.
func (c *nameClient) carryOut(e *names.PendingRequest, ask func(again bool) bool) {
	for {
		switch step := e.Next(); step.Action {
		case names.Finished:
			return
		case names.Connect:
			c.connect()
			e.Connected()
		case names.Renew:
			c.a.Counts.Renamed++
			if c.state.Published.TakeAnswer(step.Request, c.publish(step.Request)) {
				c.a.Counts.Lost++
			}
			e.TakeAnswer()
		case names.Ask:
			if ask(step.Resent) {
				e.TakeAnswer()
			} else {
				e.Unanswered(false)
			}
		}
	}
}

// ask makes a request at the server. again: it was made before; heard: the answer arrives.
func (c *nameClient) ask(kind wireup.Kind, n names.Name, port string, again, heard bool) (string, error) {
	switch kind {
	case wireup.KindPublish:
		r := c.state.Request(n, port, again)
		err := c.publish(r)
		if heard {
			c.state.Published.TakeAnswer(r, err)
		}
		return "", err
	case wireup.KindUnpublish:
		err := c.at.table.Unpublish(&c.owner, n)
		if heard && err == nil {
			c.state.Unpublished(n)
		}
		return "", err
	default: // wireup.KindLookup
		return c.at.table.Lookup(n)
	}
}

func (c *nameClient) publish(r names.Request) error {
	return c.at.table.Publish(c.holder, &c.owner, r.Name, r.Port, r.Renew)
}

// connect makes a connection. Some time later the server notices the end of the old one.
func (c *nameClient) connect() {
	c.at.last++
	c.holder = c.at.last
	c.at.table.AddPublisher(c.holder)
	if old := c.old; old != 0 {
		c.old = 0
		c.a.after(10*time.Millisecond, func() { c.at.table.RemovePublisher(old) })
	}
}

// hangUp ends the connection, which the server may notice late.
func (c *nameClient) hangUp(late bool) {
	switch {
	case c == nil || c.holder == 0:
		return
	case late:
		c.old = c.holder
	default:
		c.at.table.RemovePublisher(c.holder)
	}
	c.holder = 0
}

// Sever makes the proc's node lose its connections to name servers.
func (p *proc) Sever(late bool) {
	if s := &p.s.names; !s.down {
		s.down = true
		s.own.hangUp(late)
		s.shared.hangUp(late)
	}
}

// Rejoin lets the proc's node connect to name servers again. It does so at once if it has published
// anything.
func (p *proc) Rejoin() {
	s := &p.s.names
	if !s.down {
		return
	}
	s.down = false
	for _, c := range []*nameClient{s.own, s.shared} {
		if c == nil {
			continue
		}
		c.state.ConnectionLost()
		if _, e := c.state.Tick(); e != nil {
			c.carryOut(e, nil)
		}
	}
}

// LoseAnswer breaks the connection of the proc's node after its next request about a name is
// carried out and before the answer arrives.
func (p *proc) LoseAnswer() { p.s.names.deaf = true }

func (s *nameService) close() {
	for _, c := range []*nameClient{s.own, s.shared} {
		if c == nil {
			continue
		}
		c.hangUp(true)
		if old := c.old; old != 0 {
			c.a.after(time.Millisecond, func() { c.at.table.RemovePublisher(old) })
		}
	}
}
