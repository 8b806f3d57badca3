package script

import (
	"errors"
	"slices"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/sim/script/nameservice"
)

// Publish, Unpublish and Lookup are requests about a service name. Each is made when those of
// earlier steps have been answered, so that the results do not depend on timing.
type (
	// Publish publishes a text in place of a port name.
	Publish struct {
		NameRequest
		Text string
	}
	// Unpublish removes a name.
	Unpublish struct{ NameRequest }
	// Lookup looks up what is published.
	Lookup struct{ NameRequest }
)

// NameRequest has the common fields of requests about names.
type NameRequest struct {
	Rank    int    `line:"@"`
	Service string `line:"@"`
	Scope   string // the info key; empty: not given
	Lost    bool   // the connection breaks before the answer comes, and the node asks again
}

// Sever breaks the connections of a proc's node to name servers, which cannot be reached until the
// node's Rejoin.
type Sever struct {
	Rank int  `line:"@"`
	Late bool // the servers notice only after the node has connected again
}

// Rejoin makes the node of a proc connect to name servers again.
type Rejoin struct {
	Rank int `line:"@"`
}

// service returns the proc of a step about names.
func service(s Step) (rank int, ok bool) {
	switch s := s.(type) {
	case Publish:
		return s.Rank, true
	case Unpublish:
		return s.Rank, true
	case Lookup:
		return s.Rank, true
	case Sever:
		return s.Rank, true
	case Rejoin:
		return s.Rank, true
	}
	return never, false
}

func (c *checker) service(s Step) error {
	var a NameRequest
	switch s := s.(type) {
	case Publish:
		switch a = s.NameRequest; {
		case s.Text == "":
			return errors.New("nothing is published")
		case c.rank(s.Rank) == nil && c.a.p.spawnsAgain(s.Rank):
			return errors.New("when its world ends, and the name with it, depends on the timing")
		}
	case Unpublish:
		a = s.NameRequest
	case Lookup:
		a = s.NameRequest
	case Sever, Rejoin:
		a.Service = "any"
	}
	if a.Service == "" || len(a.Service)+len(a.Scope) > 60 {
		return errors.New("a name that is empty or long")
	}
	rank, _ := service(s)
	return errors.Join(c.comms.wants("a name"), c.rank(rank))
}

// jobOf returns the world whose job a proc's names belong to: the first of a chain of worlds each
// of which has spawned the next.
func (p *Program) jobOf(proc int) int {
	for {
		s, spawned := p.Spawned(p.WorldOf(proc))
		if !spawned {
			return p.WorldOf(proc)
		}
		proc = s.Root
	}
}

func (m *meeter) service(s Step) error {
	m.awaitNames(m.step)
	m.log(s)
	model := &nameservice.Model{Room: m.among.Shared().Room}
	for _, before := range m.a.p.Steps[:m.step] {
		m.modelled(model, before)
	}
	text, class := m.modelled(model, s)
	got, err := m.ask(s)
	switch {
	case mpi.ErrorClass(err) != class:
		return mismatch("it ends with %v, want %v: %v", mpi.ErrorClass(err), class, err)
	case got != text:
		return mismatch("the service is %q, want %q", got, text)
	}
	return nil
}

func (m *meeter) awaitNames(before int) {
	for i, s := range m.a.p.Steps[:before] {
		if rank, ok := service(s); ok && rank != m.me {
			for n := 0; !m.has(rank, i+1); n++ {
				m.idle(n)
			}
		}
	}
}

// modelled applies a step to the model. Only steps about names change it.
func (m *meeter) modelled(model *nameservice.Model, s Step) (text string, class mpi.Class) {
	rank, ok := service(s)
	if !ok {
		return "", mpierr.Success
	}
	by := nameservice.Requester{Job: m.a.p.jobOf(rank), Node: m.among.Shared().NodeOf(rank)}
	name := func(a NameRequest) nameservice.Name {
		if a.Scope == "job" {
			return nameservice.Name{Job: by.Job, Service: a.Service}
		}
		return nameservice.Name{Job: -1, Scope: a.Scope, Service: a.Service}
	}
	switch s := s.(type) {
	case Publish:
		class = model.Publish(by, name(s.NameRequest), s.Text, s.Lost)
	case Unpublish:
		class = model.Unpublish(by, name(s.NameRequest), s.Lost)
	case Lookup:
		text, class = model.Lookup(by, name(s.NameRequest), s.Lost)
	case Sever:
		model.Sever(by, s.Late)
	case Rejoin:
		model.Rejoin(by)
	}
	return text, class
}

func (m *meeter) ask(s Step) (text string, err error) {
	x := m.among.MPI()
	info := func(a NameRequest) (*mpi.Info, error) {
		if a.Lost {
			m.among.LoseAnswer()
		}
		if a.Scope == "" {
			return nil, nil
		}
		i := mpi.NewInfo()
		return i, i.Set("scope", a.Scope)
	}
	var i *mpi.Info
	switch s := s.(type) {
	case Publish:
		if i, err = info(s.NameRequest); err == nil {
			err = x.PublishName(s.Service, i, s.Text)
		}
	case Unpublish:
		if i, err = info(s.NameRequest); err == nil {
			err = x.UnpublishName(s.Service, i, "")
		}
	case Lookup:
		if i, err = info(s.NameRequest); err == nil {
			text, err = x.LookupName(s.Service, i)
		}
	case Sever:
		m.among.Sever(s.Late)
	case Rejoin:
		m.among.Rejoin()
	}
	return text, err
}

func (g *meeting) service() {
	if g.OneIn(8) {
		g.retake()
	}
	for range g.Between(2, 8) {
		if rank := g.comms.started(g.IntN(g.procs)); g.IntN(6) > 0 {
			g.ask(rank)
		} else {
			g.sever(rank)
		}
	}
}

// retake makes a node lose a name to another one while it is not connected. When it connects again
// after the other has removed the name, it must not publish the name again.
func (g *meeting) retake() {
	a, b := g.comms.started(g.IntN(g.procs)), g.comms.started(g.IntN(g.procs))
	if slices.Contains(g.severed, a) || slices.Contains(g.severed, b) || !g.lasts(a) || !g.lasts(b) {
		return
	}
	heat := func(rank int) NameRequest { return NameRequest{Rank: rank, Service: "heat"} }
	g.emit(Publish{heat(a), g.name()})
	g.emit(Sever{Rank: a})
	g.emit(Publish{heat(b), g.name()})
	g.emit(Rejoin{a})
	g.emit(Unpublish{heat(b)})
	g.emit(Sever{Rank: a})
	g.emit(Rejoin{a})
	g.emit(Lookup{heat(a)})
}

func (g *meeting) ask(rank int) {
	a := NameRequest{
		Rank: rank, Service: Pick(g.Draws, "heat", "cold", "mild"), Scope: Pick(g.Draws, "", "", "", "x", "job"), Lost: g.OneIn(6),
	}
	switch n := g.IntN(10); {
	case n < 5 && g.lasts(rank):
		g.emit(Publish{a, g.name()})
	case n < 7:
		g.emit(Unpublish{a})
	default:
		g.emit(Lookup{a})
	}
}

// lasts reports whether the world of a proc stays until the end of the program, as no other waits
// for its slots.
func (g *meeting) lasts(proc int) bool {
	p := &Program{Worlds: g.o.Worlds, Steps: g.steps}
	_, spawned := p.Spawned(p.WorldOf(proc))
	return !spawned || len(g.o.Spawns) == 0 && !p.spawnsAgain(proc)
}

// sever breaks the connections of a proc's node, or lets it connect again, perhaps after requests
// of others.
func (g *meeting) sever(rank int) {
	if i := slices.Index(g.severed, rank); i >= 0 {
		g.severed = slices.Delete(g.severed, i, i+1)
		g.emit(Rejoin{rank})
		return
	}
	g.emit(Sever{rank, g.OneIn(3)})
	g.severed = append(g.severed, rank)
	for range g.IntN(4) {
		g.ask(g.comms.started(g.IntN(g.procs)))
	}
	if g.IntN(3) > 0 {
		g.sever(rank)
	}
}
