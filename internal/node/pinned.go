package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// checkPins wants each route that pins data planes to prefer a transport that has one
// of them: else its links would never be made.
func (n *node) checkPins() error {
	var errs []error
	for _, r := range n.opt.Site.Routes {
		if len(r.DataPlane) > 0 {
			errs = append(errs, n.checkPin(r))
		}
	}
	return errors.Join(errs...)
}

func (n *node) checkPin(r config.Route) error {
	var have []string
	for _, name := range r.Prefer {
		t := n.transport(name)
		if t == nil {
			return nil // it did not start, which is worse
		}
		c := t.Capabilities().DataPlanes
		if slices.ContainsFunc(dataPlanes(r), func(p transports.DataPlane) bool { return slices.Contains(c, p) }) {
			return nil
		}
		have = append(have, fmt.Sprintf("%s has %s", name, quoted(planes(t.Capabilities()))))
	}
	return fmt.Errorf("%v: route %q pins data_plane = %s, and none of its transports has such links: %s; change data_plane or prefer",
		r.Pos, r.Site, quoted(r.DataPlane), strings.Join(have, ", "))
}

// pinned gives a transport as the route to a rank wants its links: by the data
// planes that it pins, or not at all.
func (n *node) pinned(t *transport, rank wire.WorldRank) transports.Transport {
	return t.through(dataPlanes(n.routeTo(rank)))
}

// maxListeners is how many listeners a transport has at most on a host: a card has
// little room.
const maxListeners = 3

// ListenerPlanes are what the listeners of a transport for direct links, one for each
// list, are pinned to on each host of a site; nil is any. has are the data planes that the
// transport can have. A link has its data plane before it tells whom it is from, so there
// is a listener for each list of planes that a route has, and allowsPlane is asked when the
// peer is known.
func ListenerPlanes(site config.Site, transport string, has []transports.DataPlane) (lists [][]transports.DataPlane) {
	routes := slices.Clone(site.Routes)
	if !slices.ContainsFunc(routes, func(r config.Route) bool { return r.Site == "*" }) {
		routes = append(routes, site.RouteTo("*"))
	}
	for _, r := range routes {
		planes := slices.DeleteFunc(dataPlanes(r), func(p transports.DataPlane) bool { return !slices.Contains(has, p) })
		known := slices.ContainsFunc(lists, func(x []transports.DataPlane) bool { return slices.Equal(x, planes) })
		switch {
		case !slices.Contains(r.Prefer, transport), known, len(planes) == 0 && len(r.DataPlane) > 0:
		case len(planes) == 0: // most peers come there, so it is the first that is dialled
			lists = slices.Insert(lists, 0, nil)
		default:
			lists = append(lists, planes)
		}
	}
	if len(lists) == 0 {
		return [][]transports.DataPlane{nil}
	}
	return lists[:min(len(lists), maxListeners)]
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
