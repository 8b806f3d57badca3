package node

import (
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/transports"
)

// dataPlanes are a route's, as the transports have them.
func dataPlanes(r config.Route) (planes []transports.DataPlane) {
	for _, name := range r.DataPlane {
		planes = append(planes, transports.DataPlane(name))
	}
	return planes
}

// pinned gives a transport as the route to a rank wants its links: by the data
// planes that it pins, or not at all.
func (n *node) pinned(t *transport, rank wire.WorldRank) transports.Transport {
	return t.through(dataPlanes(n.routeTo(rank)))
}

// accepting gives a transport as it should listen. A link that comes has a data
// plane before it tells whom it is from, so it gets one that some route allows;
// allowsPlane is asked when the peer is known.
func (n *node) accepting(t *transport) transports.Transport {
	var planes []transports.DataPlane
	routes := slices.Clone(n.opt.Site.Routes)
	if !slices.ContainsFunc(routes, func(r config.Route) bool { return r.Site == "*" }) {
		routes = append(routes, n.opt.Site.RouteTo("*"))
	}
	for _, r := range routes {
		if !r.Direct || !slices.Contains(r.Prefer, t.name) {
			continue
		}
		if len(r.DataPlane) == 0 {
			return t
		}
		for _, p := range dataPlanes(r) {
			if !slices.Contains(planes, p) {
				planes = append(planes, p)
			}
		}
	}
	return t.through(planes)
}

// through gives a transport pinned to data planes; none means any.
func (t *transport) through(planes []transports.DataPlane) transports.Transport {
	if len(planes) == 0 || t.plugin == nil {
		return t
	}
	return t.plugin.Pinned(planes)
}

// allowsPlane tells whether the route to a rank allows the data plane of a link
// that it has made.
func (n *node) allowsPlane(rank wire.WorldRank, l link.Link) bool {
	from, known := host.OriginOf(l)
	if !known || int(rank) >= len(n.job.Procs) {
		return true
	}
	pinned := dataPlanes(n.routeTo(rank))
	return len(pinned) == 0 || slices.Contains(pinned, from.Plane)
}
