package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/transports"
)

// unfit tells which of a route's demands the links of a transport do not meet;
// an empty rule means that they meet all.
func unfit(r config.Route, t *transport, sameMachine bool) (rule links.Rule, reason string) {
	c := t.Capabilities()
	switch {
	case c.Reach == transports.ReachMachine && !sameMachine:
		return links.RuleOtherMachine, "it does not leave a machine, and the peer is not under this kernel, user and network namespace"
	case !secrecyOf(r).keeps(t):
		return links.RuleNotEncrypted, "the route, or that of the peer's site, " + secrecyOf(r).why(nil) + ", and its links are not encrypted"
	case len(r.DataPlane) > 0 && !slices.ContainsFunc(r.DataPlane, func(p string) bool {
		return slices.Contains(c.DataPlanes, transports.DataPlane(p))
	}):
		return links.RulePlane, fmt.Sprintf("the route pins data_plane %s, and it has %s", quoted(r.DataPlane), quoted(planes(c)))
	}
	return "", ""
}

func planes(c transports.Capabilities) (names []string) {
	for _, p := range c.DataPlanes {
		names = append(names, string(p))
	}
	return names
}

// quoted is a list as it is written in a job file.
func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return "[" + strings.Join(q, ", ") + "]"
}

// candidates lists every transport that either end could mean, in the order in
// which ways tries them and then those that it does not, with what is thought of
// each.
func (n *node) candidates(x pair, r *record) (list []links.Candidate) {
	ours, theirs := n.cards[x.local], n.cards[x.peer]
	route := n.sharedRoute(x.peer)
	for _, name := range n.named(route, ours, theirs) {
		c := links.Candidate{Transport: name}
		t := n.transport(name)
		if t != nil {
			c.Reach, c.Planes = string(t.Capabilities().Reach), planes(t.Capabilities())
		} else if known := n.opt.Job.Known(name); known.Machine { // it is not started here, and could be
			c.Reach = string(transports.ReachMachine)
			if known.Memory {
				c.Planes = []string{string(transports.PlanePeerSHM)}
			}
		}
		if c.Rule, c.Reason = n.excluded(x, name, t, route); c.Rule != "" {
			c.Verdict = links.Excluded
			list = append(list, withTries(c, r)...)
			continue
		}
		for _, o := range theirs.Offers {
			if o.Transport == name {
				c.Address = o.Address
				list = append(list, judged(c, r))
			}
		}
	}
	return list
}

// named lists the transports that a route, this node or a card has.
func (n *node) named(route config.Route, cards ...*dynamic.Card) []string {
	names := slices.Clone(route.Prefer)
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, t := range n.opt.Site.Transports {
		add(t.Name)
	}
	for _, c := range cards {
		if c == nil {
			continue
		}
		for _, o := range c.Offers {
			add(o.Transport)
		}
	}
	return names
}

// excluded tells why ways has no way by a transport.
func (n *node) excluded(x pair, name string, t *transport, route config.Route) (links.Rule, string) {
	ours, theirs := n.cards[x.local], n.cards[x.peer]
	peer := n.clientName(n.job.Procs[x.peer].Client)
	switch {
	case ours == nil || theirs == nil:
		return links.RuleForeign, n.whyNoCards(x.peer)
	case !route.Direct:
		return links.RuleDirectOff, "the route has direct = false"
	case !slices.Contains(route.Prefer, name):
		return links.RuleNotPreferred, fmt.Sprintf("it is not in the route's prefer, which is %s", quoted(route.Prefer))
	case t == nil:
		return links.RuleNotRunning, "no plugin of it runs at this site"
	}
	if _, ok := theirs.Offer(name); !ok {
		return links.RuleNotOffered, peer + " does not listen by it: none of that site's routes has it in prefer"
	}
	if rule, reason := unfit(route, t, ours.SameNode(theirs)); rule != "" {
		return rule, reason
	}
	if _, ok := ours.Offer(name); !ok {
		return links.RuleNotRunning, "this site does not listen by it"
	}
	return "", ""
}

// whyNoCards tells why the job has no business cards.
func (n *node) whyNoCards(peer wire.WorldRank) string {
	for _, c := range n.job.Clients {
		if !c.Own {
			return n.clientName(c.Rank) + " is run by another MPI, so that all of the job's procs use IMPI's channels"
		}
	}
	return fmt.Sprintf("rank %d has no business card", peer)
}

// judged is a candidate that ways has, with what came of it.
func judged(c links.Candidate, r *record) links.Candidate {
	t, tried := r.way(c.Transport, c.Address)
	switch {
	case tried:
		c.Verdict, c.Rule, c.Reason, c.At, c.Tries = t.verdict, t.rule, t.reason, t.at, t.count
	case r.transport == c.Transport:
		c.Verdict, c.Reason, c.At = links.Chosen, "the peer's node dialled us by it", r.since
	case r.transport != "":
		c.Verdict, c.Reason = links.Possible, "not needed: "+r.transport+" works"
	default:
		c.Verdict, c.Reason = links.Possible, "not tried yet"
	}
	return c
}

// withTries adds what was chosen by the peer although our own route would not
// have it.
func withTries(c links.Candidate, r *record) []links.Candidate {
	if r.transport == c.Transport {
		c.Verdict, c.Rule, c.At = links.Chosen, "", r.since
		c.Reason = "the peer's node dialled us by it"
	}
	return []links.Candidate{c}
}
