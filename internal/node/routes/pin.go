package routes

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

// A route's data_plane binds the channel between the agents, too, where all packets
// go by it: it fails rather than degrades. IMPI's own channels are kernel sockets,
// whose data plane is fd, so they are a choice for who allows that alone.

// pinFeature says on business cards to whom the site's channels are no sockets.
const pinFeature = "channel"

// PinFeatures are a site's pins, as clientFeatures has them.
func PinFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(pinFeature, job, site, func(r config.Route) bool { return !r.Direct && !allowsSockets(r) })
}

// allowsSockets tells whether a route's links may be kernel sockets.
func allowsSockets(r config.Route) bool {
	return len(r.DataPlane) == 0 || slices.Contains(r.DataPlane, string(transports.PlaneFD))
}

// PinsChannel tells whether the channel to a client may be no kernel socket, and who
// says so. A client without cards is reached by its channel, whatever the route says.
func (rt *Table) PinsChannel(to wire.ClientRank) (must bool, says string) {
	r := rt.Site.RouteTo(rt.SiteName(int(to)))
	us := rt.World.Clients[rt.World.Self].Rank
	for rank, p := range rt.World.Procs.All() {
		if p.Client != to {
			continue
		}
		c := rt.Cards[rank]
		if c != nil && Wants(c, pinFeature, us) {
			says = fmt.Sprintf("the route to %s of %s pins a data_plane other than fd", rt.ClientName(us), rt.ClientName(to))
		}
		if (c == nil || !r.Direct) && !allowsSockets(r) {
			says = fmt.Sprintf("route %q of site %s (%v) pins data_plane = %s", r.Site, rt.Site.Name, r.Pos, Quoted(r.DataPlane))
		}
		break // the cards of a site agree
	}
	return says != "", says
}

// whyUnpinned tells why there is no way to a host by the data planes that are pinned,
// and the remedy.
func (rt *Table) whyUnpinned() string {
	for _, c := range rt.World.Clients {
		if !c.Own {
			return fmt.Sprintf("%s is run by another MPI, so that the job's channels are sockets (IMPI ch.2): "+
				`take data_plane out of the route or add "fd" to it`, rt.ClientName(c.Rank))
		}
	}
	return `no transport that has such links is in prefer of the routes of both sites and works between them: ` +
		`name one there, change data_plane, or add "fd" to it`
}

// DataPlanes are a route's, as the transports have them.
func DataPlanes(r config.Route) (planes []transports.DataPlane) {
	for _, name := range r.DataPlane {
		planes = append(planes, transports.DataPlane(name))
	}
	return planes
}

// CheckPins wants each route that pins data planes to prefer a transport that has one
// of them: else its links would never be made.
func (rt *Table) CheckPins() error {
	var errs []error
	for _, r := range rt.Site.Routes {
		if len(r.DataPlane) > 0 {
			errs = append(errs, rt.checkPin(r))
		}
	}
	return errors.Join(errs...)
}

func (rt *Table) checkPin(r config.Route) error {
	var have []string
	for _, name := range r.Prefer {
		t := rt.Transport(name)
		if t == nil {
			return nil // it did not start, which is worse
		}
		c := t.Capabilities().DataPlanes
		if slices.ContainsFunc(DataPlanes(r), func(p transports.DataPlane) bool { return slices.Contains(c, p) }) {
			return nil
		}
		have = append(have, fmt.Sprintf("%s has %s", name, Quoted(Planes(t.Capabilities()))))
	}
	return fmt.Errorf("%v: route %q pins data_plane = %s, and none of its transports has such links: %s; change data_plane or prefer",
		r.Pos, r.Site, Quoted(r.DataPlane), strings.Join(have, ", "))
}

// Pinned gives a transport as the route to a rank wants its links: by the data
// Planes that it pins, or not at all.
func (rt *Table) Pinned(t *Transport, rank wire.WorldRank) transports.Transport {
	return t.Through(DataPlanes(rt.RouteTo(rank)))
}

// maxListeners is how many listeners a transport has at most on a host: a card has
// little room.
const maxListeners = 3

// ListenerPlanes are what the listeners of a transport for direct links, one for each
// list, are pinned to on each host of a site; nil is any. has are the data planes that the
// Transport can have. A link has its data plane before it tells whom it is from, so there
// is a listener for each list of planes that a route has, and allowsPlane is asked when the
// peer is known.
func ListenerPlanes(site config.Site, transport string, has []transports.DataPlane) (lists [][]transports.DataPlane) {
	routes := slices.Clone(site.Routes)
	if !slices.ContainsFunc(routes, func(r config.Route) bool { return r.Site == "*" }) {
		routes = append(routes, site.RouteTo("*"))
	}
	for _, r := range routes {
		planes := slices.DeleteFunc(DataPlanes(r), func(p transports.DataPlane) bool { return !slices.Contains(has, p) })
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

// AllowsPlane tells whether the route to a rank allows the data plane of a link
// that it has made.
func (rt *Table) AllowsPlane(rank wire.WorldRank, l link.Link) bool {
	from, known := host.OriginOf(l)
	if !known || int(rank) >= rt.World.Procs.Len() {
		return true
	}
	pinned := DataPlanes(rt.RouteTo(rank))
	return len(pinned) == 0 || slices.Contains(pinned, from.Plane)
}
