package node

import (
	"crypto/rand"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
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
func (n *node) waysBy(route config.Route, x pair, from string) (ways []way) {
	ours, theirs := n.cards[x.local], n.cards[x.peer]
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
