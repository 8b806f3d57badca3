package proc

import (
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/wireup"
)

// describe sends the node the statistics of links and of waiting. It takes the lock once, and
// nothing is counted for it.
func (nc *nodeControl) describe() {
	nc.p.Lock()
	s := nc.stats()
	nc.p.Unlock()
	nc.asked.Store(false) // a later question is answered by this answer or another one
	for _, part := range InParts(s, wireup.MaxStats) {
		if nc.Control.Send(wireup.Message{Kind: wireup.KindStats, Stats: part}) != nil {
			return // the node is gone
		}
	}
}

// stats returns the statistics of links and of waiting. The process is locked.
func (nc *nodeControl) stats() *wireup.Stats {
	w := nc.p.spin.Waiting()
	s := &wireup.Stats{Budget: int64(w.Budget), Crowded: w.Oversubscribed, Score: w.Score, State: "computing"}
	switch {
	case nc.p.Asleep:
		s.State = "asleep"
	case nc.p.Driving:
		s.State = "polling"
	}
	direct := make(map[message.Peer]*Endpoint)
	for _, q := range nc.p.Endpoints.List {
		switch {
		case q == nil:
		case q.Peer == message.NoPeer:
			measure(q.Link, &s.Agent)
		default:
			direct[q.Peer] = q
		}
	}
	for r := range nc.p.Job.Size() {
		peer := message.Peer(r)
		x := wireup.LinkStats{Peer: rank(peer), Messages: nc.p.Eng.SentTo(peer)}
		_, x.Routed = nc.p.Eng.Route(peer)
		if q := direct[peer]; q != nil {
			x.Direct = true
			measure(q.Link, &x)
		}
		if x.Direct || x.Routed || x.Messages > 0 {
			s.Links = append(s.Links, x)
		}
	}
	return s
}

// measure takes a link's own statistics.
func measure(l link.Link, x *wireup.LinkStats) {
	if c, ok := l.(interface {
		Counts() (sent, received uint64)
	}); ok {
		x.Counted = true
		x.Sent, x.Received = c.Counts()
	}
	if c, ok := l.(interface{ RTT() (time.Duration, bool) }); ok {
		d, _ := c.RTT()
		x.RTT = int64(d)
	}
}

// InParts splits an answer into records of at most n links.
func InParts(s *wireup.Stats, n int) (parts []*wireup.Stats) {
	links := s.Links
	for {
		part := *s
		part.Links, links = links[:min(n, len(links))], links[min(n, len(links)):]
		part.More = len(links) > 0
		parts = append(parts, &part)
		if !part.More {
			return parts
		}
	}
}
