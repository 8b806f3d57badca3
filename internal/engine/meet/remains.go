package meet

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Remains counts a rank's state about other worlds, and the requests that it waits for. All counts
// are 0 once it has disconnected from all worlds.
type Remains struct {
	Worlds    int // known worlds
	Guests    int // procs at the other ends of temporary links
	Links     int // to procs of other worlds
	Early     int // links from worlds that are not known yet
	Ports     int // open ports
	Questions int // requests that the node has not answered
	Requests  int // requests under way, and unexpected messages
}

func (r Remains) String() string {
	return fmt.Sprintf("%d worlds, %d temporary links, %d links, %d early links, %d ports, %d questions, %d requests",
		r.Worlds, r.Guests, r.Links, r.Early, r.Ports, r.Questions, r.Requests)
}

// RemainsOf takes the lock of p and counts what p has left now.
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
		if x.What != "message" || x.Env.Context >= comm.SelfContext { // messages of World may be early
			r.Requests++
		}
	}
	return r
}
