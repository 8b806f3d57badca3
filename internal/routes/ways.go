package routes

import (
	"net/netip"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// RouteTo returns the site's route to the site of a rank.
func (rt *Table) RouteTo(rank wire.WorldRank) config.Route {
	return CurrentSite(rt).RouteTo(rt.SiteName(int(rt.World.Procs.At(rank).Client)))
}

// Ways lists how a pair could be linked from an address, best first: the transports that the route
// prefers and that both cards offer.
func (rt *Table) Ways(local, peer wire.WorldRank, from string) []Way {
	if rt.Cards.At(local) == nil || rt.Cards.At(peer) == nil {
		return nil
	}
	return rt.waysTo(rt.SharedRoute(peer), rt.Cards.At(local), rt.Cards.At(peer), from)
}

// UsesNative reports whether the site's own MPI carries the messages of a pair.
func UsesNative(rt *Table, local, peer wire.WorldRank) bool {
	if rt.Native == "" || rt.World.Procs.At(peer).Client != rt.World.Self {
		return false
	}
	r, s := rt.RouteTo(peer), rt.SharedRoute(peer)
	return r.Native && s.Native(rt.World.Clients[rt.World.Self].Rank, r.NativeAt, running(rt), rt.Cards.At(local), rt.Cards.At(peer))
}

// MayUseNative reports whether the site's own MPI may carry messages between its procs, where
// nothing better is possible. All nodes of the site get the same result.
func MayUseNative(rt *Table) bool {
	s := rt.SharedRoute(FirstProc(rt))
	return rt.Native != "" && rt.RouteTo(FirstProc(rt)).Native && s.Native(rt.World.Clients[rt.World.Self].Rank, 0, nil, nil, nil)
}

// WaysToWorlds lists how a proc of ours can reach one of another world, by the route to any site.
func (rt *Table) WaysToWorlds(local wire.WorldRank, theirs *dynamic.Card, from string) []Way {
	return rt.waysTo(rt.RouteToWorlds(theirs), rt.Cards.At(local), theirs, from)
}

// WaysOfSpare lists how a spare site, whose card is ours, can reach a host of the job, by its route
// to any site.
func WaysOfSpare(rt *Table, ours, theirs *dynamic.Card, from string) []Way {
	return rt.waysTo(rt.RouteToWorlds(theirs), ours, theirs, from)
}

// waysTo lists the ways for new links: drained transports are left out.
func (rt *Table) waysTo(r route.Route, ours, theirs *dynamic.Card, from string) []Way {
	return slices.DeleteFunc(allWays(rt, r, ours, theirs, from), func(w Way) bool { return rt.Drained.Has(w.T.Name) })
}

// WaysAgain lists how a link that a pair has may be resumed: by the ways for new links, or else by
// the drained ones.
func WaysAgain(rt *Table, local, peer wire.WorldRank, from string) []Way {
	ours, theirs := rt.Cards.At(local), rt.Cards.At(peer)
	if ours == nil || theirs == nil {
		return nil
	}
	all := allWays(rt, rt.SharedRoute(peer), ours, theirs, from)
	slices.SortStableFunc(all, func(a, b Way) int { return later(rt, a) - later(rt, b) })
	return all
}

// DrainedWays returns the names of the transports by which a pair could be linked if they were not
// drained.
func DrainedWays(rt *Table, local, peer wire.WorldRank) (names []string) {
	for _, w := range WaysAgain(rt, local, peer, "") {
		if rt.Drained.Has(w.T.Name) && !slices.Contains(names, w.T.Name) {
			names = append(names, w.T.Name)
		}
	}
	return names
}

func later(rt *Table, w Way) int {
	if rt.Drained.Has(w.T.Name) {
		return 1
	}
	return 0
}

func allWays(rt *Table, r route.Route, ours, theirs *dynamic.Card, from string) (ways []Way) {
	for _, o := range r.Ways(running(rt), ours, theirs) {
		ways = append(ways, Way{T: rt.Transport(o.Transport), Address: o.Address, From: from})
	}
	return ways
}

// Allows reports whether a proc of ours may have a link that rank made by t.
func (rt *Table) Allows(rank wire.WorldRank, t *Transport) bool {
	return AllowsAgain(rt, rank, t) && !rt.Drained.Has(t.Name)
}

// AllowsAgain is Allows for a further connection of a link.
func AllowsAgain(rt *Table, rank wire.WorldRank, t *Transport) bool {
	r := rt.SharedRoute(rank)
	return r.Allows(t.Name, t)
}

// AllowsWorlds reports whether procs of ours may have a link that another world made by t.
func (rt *Table) AllowsWorlds(l link.Link, t *Transport) bool {
	r := rt.RouteToWorlds(nil)
	return r.Allows(t.Name, t) && !rt.Drained.Has(t.Name) && hasPlane(l, r.Planes)
}

// PlainWay returns IMPI's way to make channels: a connection to the port that the peer has
// announced.
func (rt *Table) PlainWay(from string, peer wire.HostRank) Way {
	x := rt.World.Hosts[peer]
	return Way{
		T:       rt.Channels,
		Address: netip.AddrPortFrom(x.Address.Addr(), uint16(x.Port)).String(),
		From:    from,
		Plain:   true,
	}
}

// RouteToWorlds returns the site's route to procs of other worlds, with the demands in their card,
// theirs, which is nil if it is not known.
func (rt *Table) RouteToWorlds(theirs *dynamic.Card) route.Route {
	return shared(CurrentSite(rt).RouteTo("*"), route.DemandOf(theirs, route.AnyClient))
}

// shared returns a route of the site's file with the stricter of its own secrecy and theirs.
func shared(r config.Route, theirs route.Secrecy) route.Route {
	return route.Route{Direct: r.Direct, Prefer: r.Prefer, Planes: r.DataPlane, Secrecy: max(SecrecyOf(r), theirs)}
}
