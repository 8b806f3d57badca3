package routes

import (
	"net/netip"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/host"
)

// RouteTo is the site's route to the site of a rank.
func (rt *Table) RouteTo(rank wire.WorldRank) config.Route {
	return rt.Site.RouteTo(rt.SiteName(int(rt.World.Procs.At(rank).Client)))
}

// Ways lists how a pair could be linked from an address, best first: the transports that the route
// prefers and that both cards offer.
func (rt *Table) Ways(local, peer wire.WorldRank, from string) []Way {
	if rt.Cards[local] == nil || rt.Cards[peer] == nil {
		return nil
	}
	return rt.waysTo(rt.SharedRoute(peer), rt.Cards[local], rt.Cards[peer], from)
}

// WaysAbroad lists how a proc of ours can reach one of another world: as the route
// to any site says.
func (rt *Table) WaysAbroad(local wire.WorldRank, theirs *dynamic.Card, from string) []Way {
	return rt.waysTo(rt.RouteAbroad(theirs), rt.Cards[local], theirs, from)
}

func (rt *Table) waysTo(route config.Route, ours, theirs *dynamic.Card, from string) (ways []Way) {
	if ours == nil || theirs == nil || !route.Direct {
		return nil
	}
	for _, name := range route.Prefer {
		t := rt.Transport(name)
		if _, offered := ours.Offer(name); t == nil || !offered || !Fits(route, t, ours.SameNode(theirs)) {
			continue
		}
		for _, o := range theirs.Offers {
			if o.Transport == name {
				ways = append(ways, Way{T: t, Address: o.Address, From: from})
			}
		}
	}
	return ways
}

// Allows tells whether a proc of ours may have a link that rank made by t.
func (rt *Table) Allows(rank wire.WorldRank, t *Transport) bool {
	route := rt.SharedRoute(rank)
	return route.Direct && slices.Contains(route.Prefer, t.Name) && Fits(route, t, true)
}

// AllowsAbroad tells whether procs of ours may have a link that another world made
// by t.
func (rt *Table) AllowsAbroad(l link.Link, t *Transport) bool {
	route := rt.RouteAbroad(nil)
	if !route.Direct || !slices.Contains(route.Prefer, t.Name) || !Fits(route, t, true) {
		return false
	}
	pinned := DataPlanes(route)
	from, known := host.OriginOf(l)
	return !known || len(pinned) == 0 || slices.Contains(pinned, from.Plane)
}

// Fits tells whether a transport's links meet what a route demands.
func Fits(r config.Route, t *Transport, sameMachine bool) bool {
	rule, _ := Unfit(r, t, sameMachine)
	return rule == ""
}

// PlainWay is how IMPI has a channel made, but for what is said first.
func (rt *Table) PlainWay(from string, peer wire.HostRank) Way {
	x := rt.World.Hosts[peer]
	return Way{
		T:       rt.Channels,
		Address: netip.AddrPortFrom(x.Address.Addr(), uint16(x.Port)).String(),
		From:    from,
		Plain:   true,
	}
}

// RouteAbroad is the site's route to procs of other worlds with what the other side
// demands, whose card is nil if it is not known.
func (rt *Table) RouteAbroad(theirs *dynamic.Card) config.Route {
	r := rt.Site.RouteTo("*")
	s := SecrecyOf(r)
	switch {
	case theirs != nil && theirs.Has(TLSFeature):
		s = Encrypted
	case theirs != nil && theirs.Has(ClosedFeature):
		s = max(s, Closed)
	}
	return Under(r, s)
}
