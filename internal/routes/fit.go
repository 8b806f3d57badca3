package routes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Planes returns the names of the data planes that a transport can have.
func Planes(c transports.Capabilities) (names []string) {
	for _, p := range c.DataPlanes {
		names = append(names, string(p))
	}
	return names
}

// Quoted returns a list as it is written in a job file.
func Quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return "[" + strings.Join(q, ", ") + "]"
}

// NamedTransports lists the transports that a route, this node or a card names.
func (rt *Table) NamedTransports(r route.Route, cards ...*dynamic.BusinessCard) []string {
	names := slices.Clone(r.Prefer)
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
		for _, o := range c.Addresses {
			add(o.Transport)
		}
	}
	return names
}

// Excluded returns the rule by which Candidates excludes a transport, and the reason in words.
func (rt *Table) Excluded(local, peer wire.WorldRank, name string, r route.Route) (rule route.Rule, reason string) {
	t := rt.Transport(name)
	switch rule = r.Excludes(name, running(rt)(name), rt.Cards.At(local), rt.Cards.At(peer)); rule {
	case "":
		if rt.Drained.Has(name) {
			rule, reason = route.Drained, "impi-node drain has new links do without it here"
		}
	case route.NoCards:
		reason = rt.WhyNoCards(peer)
	case route.DirectOff:
		reason = "the route has direct = false"
	case route.NotPreferred:
		reason = fmt.Sprintf("it is not in the route's prefer, which is %s", Quoted(r.Prefer))
	case route.NotOffered:
		reason = rt.ClientName(rt.World.Procs.At(peer).Client) + " does not listen by it: none of that site's routes has it in prefer"
	case route.OtherMachine:
		reason = "it does not leave a machine, and the peer is not under this kernel, user and network namespace"
	case route.NotEncrypted:
		reason = "the route, or that of the peer's site, " + why(r.Secrecy, nil) + ", and its links are not encrypted"
	case route.WrongPlane:
		reason = fmt.Sprintf("the route pins data_plane %s, and it has %s", Quoted(r.Planes), Quoted(Planes(t.Capabilities())))
	case route.PeerRoutes: // known only when the peer has been dialled
	case route.NotRunning:
		reason = "no plugin of it runs at this site"
		if t != nil {
			reason = "this site does not listen by it"
		}
	}
	return rule, reason
}

// WhyNoCards returns why the job has no business cards.
func (rt *Table) WhyNoCards(peer wire.WorldRank) string {
	for _, c := range rt.World.Clients {
		if !c.Own {
			return rt.ClientName(c.Rank) + " is run by another MPI, so that procs of different sites use IMPI's channels"
		}
	}
	return fmt.Sprintf("rank %d has no business card", peer)
}
