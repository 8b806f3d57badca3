package mpi

import (
	"github.com/openimpi/impi/core/comm"

	"fmt"
)

// Remains counts what a rank has to do with other worlds, and what it waits for. All
// is 0 once it has left them in order.
type Remains struct {
	Worlds    int // that were met and are remembered
	Guests    int // at the other ends of calls
	Links     int // to procs of other worlds
	Early     int // links from worlds that are not known yet
	Ports     int // that are open
	Questions int // that the node has not answered
	Requests  int // and messages that nobody has received
}

// String names what there is.
func (r Remains) String() string {
	return fmt.Sprintf("%d worlds, %d guests, %d links, %d early links, %d ports, %d questions, %d requests",
		r.Worlds, r.Guests, r.Links, r.Early, r.Ports, r.Questions, r.Requests)
}

// remains is Proc.Remains.
func (p *process) remains() Remains {
	p.lock()
	defer p.unlock()
	r := Remains{
		Worlds: len(p.worlds.Load().met), Guests: len(p.guests) + len(p.introduced), Early: len(p.early),
		Ports: len(p.doors), Questions: len(p.asking),
	}
	for _, q := range p.ports {
		if q != nil && p.stranger(q.peer) {
			r.Links++
		}
	}
	for x := range p.eng.Pending() {
		if x.What != "message" || x.Env.Context >= comm.SelfContext { // those of World may be early
			r.Requests++
		}
	}
	return r
}
