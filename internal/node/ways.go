package node

import (
	"crypto/rand"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/host"
)

// way is one possibility to reach a proc.
type way struct {
	t       *transport
	address string
	from    string
	plain   bool // to the port of IMPI's channels, where nothing is pinned
}

// routeTo is the site's route to the site of a rank.
func (n *node) routeTo(rank wire.WorldRank) config.Route {
	return n.opt.Site.RouteTo(n.opt.siteName(int(n.job.Procs[rank].Client)))
}

// ways lists how a pair could be linked, best first: the transports that the
// route prefers and that both cards offer.
func (n *node) ways(x pair) []way {
	if n.cards[x.local] == nil || n.cards[x.peer] == nil {
		return nil
	}
	return n.waysBy(n.sharedRoute(x.peer), x, n.procOf(x.local).host.config.Address.String())
}

// waysBy is ways by a route and from an address.
func (n *node) waysBy(route config.Route, x pair, from string) []way {
	return n.waysTo(route, n.cards[x.local], n.cards[x.peer], from)
}

// waysAbroad lists how a proc of ours can reach one of another world: as the route
// to any site says.
func (n *node) waysAbroad(p *proc, theirs *dynamic.Card) []way {
	return n.waysTo(n.routeAbroad(theirs), n.cards[p.rank.Load()], theirs, p.host.config.Address.String())
}

func (n *node) waysTo(route config.Route, ours, theirs *dynamic.Card, from string) (ways []way) {
	if ours == nil || theirs == nil || !route.Direct {
		return nil
	}
	for _, name := range route.Prefer {
		t := n.transport(name)
		if _, offered := ours.Offer(name); t == nil || !offered || !fits(route, t, ours.SameNode(theirs)) {
			continue
		}
		for _, o := range theirs.Offers {
			if o.Transport == name {
				ways = append(ways, way{t: t, address: o.Address, from: from})
			}
		}
	}
	return ways
}

// allows tells whether a proc of ours may have a link that rank made by t.
func (n *node) allows(rank wire.WorldRank, t *transport) bool {
	route := n.sharedRoute(rank)
	return route.Direct && slices.Contains(route.Prefer, t.name) && fits(route, t, true)
}

// allowsAbroad tells whether procs of ours may have a link that another world made
// by t.
func (n *node) allowsAbroad(l link.Link, t *transport) bool {
	route := n.routeAbroad(nil)
	if !route.Direct || !slices.Contains(route.Prefer, t.name) || !fits(route, t, true) {
		return false
	}
	pinned := dataPlanes(route)
	from, known := host.OriginOf(l)
	return !known || len(pinned) == 0 || slices.Contains(pinned, from.Plane)
}

// fits tells whether a transport's links meet what a route demands.
func fits(r config.Route, t *transport, sameMachine bool) bool {
	rule, _ := unfit(r, t, sameMachine)
	return rule == ""
}

// nonce makes a number that nobody can foresee.
func nonce() (n dynamic.Nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}
