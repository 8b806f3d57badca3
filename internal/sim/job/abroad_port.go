package job

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// callPort is an open port: those who called it, or the owner's requests that wait
// for callers.
type callPort struct {
	owner   *proc
	callers []*kernel.End
	takes   []uint64
}

func portOf(x *wireup.Meeting) dynamic.World {
	var key dynamic.Token
	copy(key[:], x.Key)
	return key.World()
}

// portNames are those of all open ports, in order.
func (a *Abroad) portNames() []dynamic.World {
	return slices.SortedFunc(maps.Keys(a.ports), func(v, w dynamic.World) int { return bytes.Compare(v[:], w[:]) })
}

func (a *Abroad) openPort(p *proc, x *wireup.Meeting) {
	a.ports[portOf(x)] = &callPort{owner: p}
	a.step(p, 0)
	if x.Request != 0 {
		a.tell(p, wireup.Message{Kind: wireup.KindPort, Meeting: &wireup.Meeting{Request: x.Request}}, nil)
	}
}

// ownPort gives a proc's port; nil if it has none of that name.
func (a *Abroad) ownPort(p *proc, x *wireup.Meeting) *callPort {
	if c := a.ports[portOf(x)]; c != nil && c.owner == p {
		return c
	}
	return nil
}

func (a *Abroad) refuse(p *proc, kind wireup.Kind, request uint64, reason string) {
	a.tell(p, wireup.Message{Kind: kind, Reason: reason, Meeting: &wireup.Meeting{Request: request, Class: int(mpierr.Port)}}, nil)
}

func (a *Abroad) closePort(p *proc, x *wireup.Meeting) {
	c := a.ownPort(p, x)
	if c == nil {
		return
	}
	delete(a.ports, portOf(x))
	for _, request := range c.hangUp() {
		a.refuse(p, wireup.KindCaller, request, "the port was closed")
	}
}

// hangUp ends a port that nobody finds any more, and gives the requests that waited.
func (c *callPort) hangUp() (requests []uint64) {
	for _, e := range c.callers {
		_ = e.Close()
	}
	requests, c.callers, c.takes = c.takes, nil, nil
	return requests
}

// take answers with the next caller of a port, now or later.
func (a *Abroad) take(p *proc, x *wireup.Meeting) {
	if x.Cancel {
		a.cancel(p, x.Request)
		return
	}
	c := a.ownPort(p, x)
	if c == nil {
		a.refuse(p, wireup.KindCaller, x.Request, "the port is not open")
		return
	}
	c.sweep()
	if len(c.callers) == 0 {
		c.takes = append(c.takes, x.Request)
		return
	}
	e := c.callers[0]
	c.callers = c.callers[1:]
	a.step(p, 4)
	a.tell(p, wireup.Message{Kind: wireup.KindCaller, Meeting: &wireup.Meeting{Request: x.Request}}, e)
}

// cancel ends the wait of a request, which is answered.
func (a *Abroad) cancel(p *proc, request uint64) {
	for _, name := range a.portNames() {
		c := a.ports[name]
		if i := slices.Index(c.takes, request); c.owner == p && i >= 0 {
			c.takes = slices.Delete(c.takes, i, i+1)
			a.refuse(p, wireup.KindCaller, request, "given up")
		}
	}
}

// sweep closes the links of callers that have gone away.
func (c *callPort) sweep() {
	c.callers = slices.DeleteFunc(c.callers, func(e *kernel.End) bool {
		over := e.HasEnd() || !e.Open()
		if over {
			_ = e.Close()
		}
		return over
	})
}

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
	c := a.ports[portOf(x)]
	no := ""
	switch {
	case c == nil || !c.owner.there():
		no = "the port is closed"
	case len(c.callers) >= a.cfg.Backlog:
		if c.sweep(); len(c.callers) >= a.cfg.Backlog {
			no = "too many wait at the port"
		}
	}
	if no != "" {
		a.Counts.Refused++
		a.refuse(p, wireup.KindCalled, x.Request, no)
		return
	}
	var watch kernel.Watcher
	if a.cfg.Calls != nil {
		watch = a.cfg.Calls.Link(p.member(), c.owner.member())
	}
	a.step(p, 2)
	l := a.link(fmt.Sprintf("call of %s by %s", c.owner.title(), p.title()), watch)
	a.tell(p, wireup.Message{Kind: wireup.KindCalled, Meeting: &wireup.Meeting{Request: x.Request}}, l.Ends[0])
	if len(c.takes) == 0 {
		a.Counts.Waited++
		c.callers = append(c.callers, l.Ends[1])
		a.step(c.owner, 3)
		a.step(p, 3)
		return
	}
	request := c.takes[0]
	c.takes = c.takes[1:]
	a.step(c.owner, 4)
	a.tell(c.owner, wireup.Message{Kind: wireup.KindCaller, Meeting: &wireup.Meeting{Request: request}}, l.Ends[1])
}

// title names a proc among those of all worlds: b2 is rank 2 of the second.
func (p *proc) title() string { return fmt.Sprintf("%c%d", 'a'+p.s.w.number, p.rank) }
