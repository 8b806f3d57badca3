package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

func keyOf(x *wireup.Meeting) (key dynamic.Token) {
	copy(key[:], x.Key)
	return key
}

func (a *Abroad) openPort(p *proc, x *wireup.Meeting) {
	if err := a.ports.Open(p.s.w.time(), p, keyOf(x), a.cfg.Backlog, x.Timeout); err != nil {
		a.refuse(p, wireup.KindPort, x.Request, err.Error())
		return
	}
	if x.Timeout > 0 {
		a.k.After(x.Timeout, func() {
			a.ports.Tick(p.s.w.time())
			a.portSteps()
		})
	}
	a.step(p, 0)
	if x.Request != 0 {
		a.tell(p, wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.Meeting{Request: x.Request}}, nil)
	}
}

// portSteps does what the ports say.
func (a *Abroad) portSteps() {
	for {
		s, ok := a.ports.Next()
		switch {
		case !ok:
			return
		case s.Drop:
			_ = s.Conn.Close()
		case s.Err != nil:
			class := mpierr.Port
			if s.Broken {
				class = mpierr.Spawn
			}
			a.tell(s.Owner, wireup.Message{Kind: wireup.KindAccepted, Reason: s.Err.Error(), Meeting: &wireup.Meeting{Request: s.Request, Class: int(class)}}, nil)
		default:
			a.step(s.Owner, 4)
			a.tell(s.Owner, wireup.Message{Kind: wireup.KindAccepted, Meeting: &wireup.Meeting{Request: s.Request}}, s.Conn)
		}
	}
}

func (a *Abroad) refuse(p *proc, kind wireup.Kind, request uint64, reason string) {
	a.tell(p, wireup.Message{Kind: kind, Reason: reason, Meeting: &wireup.Meeting{Request: request, Class: int(mpierr.Port)}}, nil)
}

func (a *Abroad) closePort(p *proc, x *wireup.Meeting) {
	key := keyOf(x)
	closed := a.ports.Close(p, key)
	a.portSteps()
	if closed {
		p.s.parents.worlds.PortClosed(key.World())
	}
}

// take answers an accept with the next connection to a port, now or later.
func (a *Abroad) take(p *proc, x *wireup.Meeting) {
	if x.Cancel {
		a.ports.Cancel(p, keyOf(x), x.Request)
	} else {
		a.ports.Accept(p, keyOf(x), x.Request)
	}
	a.portSteps()
}

// hungUp tells whether the other end of a link that waits at a port has closed it.
func hungUp(e *kernel.End) bool { return e.HasEnd() || !e.Open() }

// call greets a port for a proc, which gets the link or the reason why there is none.
func (a *Abroad) call(p *proc, x *wireup.Meeting) {
	a.Counts.Calls++
	a.step(p, 1)
	a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() { a.called(p, x) })
}

func (a *Abroad) called(p *proc, x *wireup.Meeting) {
	if !p.there() {
		return
	}
	key := keyOf(x)
	port := key.World()
	if no := a.ports.Hold(port); no != dynamic.Accepted {
		a.portSteps()
		a.Counts.Refused++
		a.refuse(p, wireup.KindConnected, x.Request, no.String())
		return
	}
	owner, _ := a.ports.Owner(port)
	var watch kernel.Watcher
	if a.cfg.Calls != nil {
		watch = a.cfg.Calls.Link(p.member(), owner.member())
	}
	a.step(p, 2)
	l := a.link(fmt.Sprintf("call of %s by %s", owner.title(), p.title()), watch)
	a.tell(p, wireup.Message{Kind: wireup.KindConnected, Meeting: &wireup.Meeting{Request: x.Request}}, l.Ends[0])
	if !a.ports.Enter(port, l.Ends[1]) {
		a.Counts.Waited++
		a.step(owner, 3)
		a.step(p, 3)
	}
	a.portSteps()
}

// title names a proc among those of all worlds: b2 is rank 2 of the second.
func (p *proc) title() string { return fmt.Sprintf("%c%d", 'a'+p.s.w.number, p.rank) }
