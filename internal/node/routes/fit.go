package routes

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

// Unfit tells which of a route's demands the links of a transport do not meet;
// an empty rule means that they meet all.
func Unfit(r config.Route, t *Transport, sameMachine bool) (rule links.Rule, reason string) {
	c := t.Capabilities()
	switch {
	case c.Reach == transports.ReachMachine && !sameMachine:
		return links.RuleOtherMachine, "it does not leave a machine, and the peer is not under this kernel, user and network namespace"
	case !SecrecyOf(r).keeps(t):
		return links.RuleNotEncrypted, "the route, or that of the peer's site, " + SecrecyOf(r).why(nil) + ", and its links are not encrypted"
	case len(r.DataPlane) > 0 && !slices.ContainsFunc(r.DataPlane, func(p string) bool {
		return slices.Contains(c.DataPlanes, transports.DataPlane(p))
	}):
		return links.RulePlane, fmt.Sprintf("the route pins data_plane %s, and it has %s", Quoted(r.DataPlane), Quoted(Planes(c)))
	}
	return "", ""
}

// Planes names the data planes that a transport can have.
func Planes(c transports.Capabilities) (names []string) {
	for _, p := range c.DataPlanes {
		names = append(names, string(p))
	}
	return names
}

// Quoted is a list as it is written in a job file.
func Quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return "[" + strings.Join(q, ", ") + "]"
}

// Named lists the transports that a route, this node or a card has.
func (rt *Table) Named(route config.Route, cards ...*dynamic.Card) []string {
	names := slices.Clone(route.Prefer)
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, t := range rt.Site.Transports {
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

// Excluded tells why ways has no way by a transport.
func (rt *Table) Excluded(local, peer wire.WorldRank, name string, t *Transport, route config.Route) (links.Rule, string) {
	ours, theirs := rt.Cards[local], rt.Cards[peer]
	site := rt.ClientName(rt.World.Procs.At(peer).Client)
	switch {
	case ours == nil || theirs == nil:
		return links.RuleForeign, rt.WhyNoCards(peer)
	case !route.Direct:
		return links.RuleDirectOff, "the route has direct = false"
	case !slices.Contains(route.Prefer, name):
		return links.RuleNotPreferred, fmt.Sprintf("it is not in the route's prefer, which is %s", Quoted(route.Prefer))
	case t == nil:
		return links.RuleNotRunning, "no plugin of it runs at this site"
	}
	if _, ok := theirs.Offer(name); !ok {
		return links.RuleNotOffered, site + " does not listen by it: none of that site's routes has it in prefer"
	}
	if rule, reason := Unfit(route, t, ours.SameNode(theirs)); rule != "" {
		return rule, reason
	}
	if _, ok := ours.Offer(name); !ok {
		return links.RuleNotRunning, "this site does not listen by it"
	}
	return "", ""
}

// WhyNoCards tells why the job has no business cards.
func (rt *Table) WhyNoCards(peer wire.WorldRank) string {
	for _, c := range rt.World.Clients {
		if !c.Own {
			return rt.ClientName(c.Rank) + " is run by another MPI, so that all of the job's procs use IMPI's channels"
		}
	}
	return fmt.Sprintf("rank %d has no business card", peer)
}
