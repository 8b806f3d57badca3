package meet

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
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

func (r Remains) String() string {
	return fmt.Sprintf("%d worlds, %d guests, %d links, %d early links, %d ports, %d questions, %d requests",
		r.Worlds, r.Guests, r.Links, r.Early, r.Ports, r.Questions, r.Requests)
}

// RemainsOf counts what p has.
func RemainsOf(p *proc.Process) Remains {
	p.Lock()
	defer p.Unlock()
	r := Remains{
		Worlds: len(p.Worlds.Table.Load().Met), Guests: len(p.Worlds.Remotes) + len(p.Worlds.Introduced), Early: len(p.Worlds.Early),
		Ports: len(p.Node.PortKeys), Questions: len(p.Node.Asking),
	}
	for _, q := range p.Endpoints.List {
		if q != nil && p.Worlds.Foreign(q.Peer) {
			r.Links++
		}
	}
	for x := range p.Eng.Pending() {
		if x.What != "message" || x.Env.Context >= comm.SelfContext { // those of World may be early
			r.Requests++
		}
	}
	return r
}
