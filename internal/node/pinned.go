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
		if r.Direct && len(r.DataPlane) > 0 {
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
		have = append(have, fmt.Sprintf("%s has %q", name, c))
	}
	return fmt.Errorf("%v: route %q pins data_plane = %q, and none of its transports has such links: %s; change data_plane or prefer",
		r.Pos, r.Site, r.DataPlane, strings.Join(have, ", "))
}

// pinned gives a transport as the route to a rank wants its links: by the data
// planes that it pins, or not at all.
func (n *node) pinned(t *transport, rank wire.WorldRank) transports.Transport {
	return t.through(dataPlanes(n.routeTo(rank)))
}

// accepting gives a transport as it should listen.
func (n *node) accepting(t *transport) transports.Transport {
	return t.through(n.acceptingPlanes(t))
}

// acceptingPlanes are the data planes of links that come. Such a link has one before
// it tells whom it is from, so it gets one that some route allows; allowsPlane is
// asked when the peer is known.
func (n *node) acceptingPlanes(t *transport) (planes []transports.DataPlane) {
	routes := slices.Clone(n.opt.Site.Routes)
	if !slices.ContainsFunc(routes, func(r config.Route) bool { return r.Site == "*" }) {
		routes = append(routes, n.opt.Site.RouteTo("*"))
	}
	for _, r := range routes {
		if !slices.Contains(r.Prefer, t.name) { // who is not reached directly has channels by it
			continue
		}
		if len(r.DataPlane) == 0 {
			return nil
		}
		for _, p := range dataPlanes(r) {
			if !slices.Contains(planes, p) {
				planes = append(planes, p)
			}
		}
	}
	return planes
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
