package direct

import (
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// candidates lists all transports that the route, this node or one of both cards names, and says of
// each what came of it or why it is not used. Those of Candidates come first, in that order.
func (d *Links) candidates(x Pair, past *record) (list []links.Candidate) {
	ours, theirs := d.Routes.Cards.At(x.Local), d.Routes.Cards.At(x.Peer)
	r := d.Routes.SharedRoute(x.Peer)
	for _, name := range d.Routes.NamedTransports(r, ours, theirs) {
		c := links.Candidate{Transport: name}
		t := d.Routes.Transport(name)
		if t != nil {
			c.Reach, c.Planes = string(t.Capabilities().Reach), routes.Planes(t.Capabilities())
		} else if known := d.Routes.Job.Known(name); known.Machine { // it is not started here, and could be
			c.Reach = string(transports.ReachMachine)
			if known.Memory {
				c.Planes = []string{string(transports.PlanePeerSHM)}
			}
		}
		if c.Rule, c.Reason = d.Routes.Excluded(x.Local, x.Peer, name, r); c.Rule != "" {
			c.Verdict = links.Excluded
			if past.transport == name { // our route does not have it, but allows it
				c.Verdict, c.Rule, c.Reason, c.At = links.Chosen, "", dialledByPeer, past.since
			}
			list = append(list, c)
			continue
		}
		for _, o := range theirs.Addresses {
			if o.Transport == name {
				c.Address = o.Address
				list = append(list, judged(c, past))
			}
		}
	}
	return list
}

const dialledByPeer = "the peer's node dialled us by it"

func judged(c links.Candidate, r *record) links.Candidate {
	t, tried := r.lastTry(c.Transport, c.Address)
	switch {
	case tried:
		c.Verdict, c.Rule, c.Reason, c.At, c.Tries = t.verdict, t.rule, t.reason, t.at, t.count
	case r.transport == c.Transport:
		c.Verdict, c.Reason, c.At = links.Chosen, dialledByPeer, r.since
	case r.transport != "":
		c.Verdict, c.Reason = links.Possible, "not needed: "+r.transport+" works"
	default:
		c.Verdict, c.Reason = links.Possible, "not tried yet"
	}
	return c
}
