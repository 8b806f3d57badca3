package routes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Where all packets go by the channel, a route's data_plane applies to the channel, too: if it
// cannot have the data plane, the job fails. IMPI's own channels are kernel sockets, whose data
// plane is fd.

// pinFeature says on business cards to which clients channels must not be kernel sockets.
const pinFeature = "channel"

// PinFeatures returns the features for business cards with the sites to which channels must not be
// kernel sockets.
func PinFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(pinFeature, job, site, PinsChannels)
}

// PinsChannels reports whether a route sends all packets by channels that must not be kernel
// sockets.
func PinsChannels(r config.Route) bool { return !r.Direct && !allowsSockets(r.DataPlane) }

// NativeFeatures returns the features for business cards with the transports that the site prefers
// to its own MPI but that cannot be used on this machine: plugins of hosts may differ, and so may
// their data planes. They come first on cards: if one is cut off, pairs disagree, while a demand of
// encryption is kept by the site that makes it.
func NativeFeatures(rt *Table) []string {
	r := rt.Site.RouteTo(rt.Site.Name)
	if !r.Native {
		return nil
	}
	s := shared(r, route.AnyLink)
	return s.NativeFeatures(r.NativeAt, running(rt))
}

// allowsSockets reports whether the data planes of a route include kernel sockets; nil stands for
// any.
func allowsSockets(planes []string) bool {
	return len(planes) == 0 || slices.Contains(planes, string(transports.PlaneFD))
}

// PinsChannel reports whether the channel to a client must not be a kernel socket, and returns the
// site whose route demands that. Procs without cards use their channel even if the route has direct
// links.
func (rt *Table) PinsChannel(to wire.ClientRank) (must bool, says string) {
	r := CurrentSite(rt).RouteTo(rt.SiteName(int(to)))
	us := rt.World.Clients[rt.World.Self].Rank
	if c, ok := cardOf(rt, to); ok {
		if c != nil && route.HasFeature(c, pinFeature, us) {
			says = fmt.Sprintf("the route to %s of %s pins a data_plane other than fd", rt.ClientName(us), rt.ClientName(to))
		}
		if (c == nil || !r.Direct) && !allowsSockets(r.DataPlane) {
			says = fmt.Sprintf("route %q of site %s (%v) pins data_plane = %s", r.Site, rt.Site.Name, r.Pos, Quoted(r.DataPlane))
		}
	}
	return says != "", says
}

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

// DataPlanes returns the data planes that a route's data_plane names.
func DataPlanes(names []string) (planes []transports.DataPlane) {
	for _, name := range names {
		planes = append(planes, transports.DataPlane(name))
	}
	return planes
}

// CheckPins returns an error if a route pins data planes that no transport in its prefer has, so
// that its links would never be made.
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
			return nil // the transport did not start, which is an error of its own
		}
		if slices.ContainsFunc(r.DataPlane, t.HasPlane) {
			return nil
		}
		have = append(have, fmt.Sprintf("%s has %s", name, Quoted(Planes(t.Capabilities()))))
	}
	return fmt.Errorf("%v: route %q pins data_plane = %s, and none of its transports has such links: %s; change data_plane or prefer",
		r.Pos, r.Site, Quoted(r.DataPlane), strings.Join(have, ", "))
}

// Pinned returns a transport that makes links only with the data planes that the route to a rank
// pins.
func (rt *Table) Pinned(t *Transport, rank wire.WorldRank) transports.Transport {
	return t.WithPlanes(DataPlanes(rt.RouteTo(rank).DataPlane))
}

// maxListeners is how many listeners a transport has at most on a host: a card has
// little room.
const maxListeners = 3

// ListenerPlanes returns the data planes to which the listeners of a transport are pinned on each
// host of a site, a list for each listener; nil means any. has are the data planes that the
// transport can have. A link has its data plane before the greeting identifies the peer. So there
// is a listener for each list of planes that a route has, and once the peer is known AllowsPlane
// checks the link.
func ListenerPlanes(site config.Site, transport string, has []transports.DataPlane) (lists [][]transports.DataPlane) {
	routes := slices.Clone(site.Routes)
	if !slices.ContainsFunc(routes, func(r config.Route) bool { return r.Site == "*" }) {
		routes = append(routes, site.RouteTo("*"))
	}
	for _, r := range routes {
		planes := slices.DeleteFunc(DataPlanes(r.DataPlane), func(p transports.DataPlane) bool { return !slices.Contains(has, p) })
		known := slices.ContainsFunc(lists, func(x []transports.DataPlane) bool { return slices.Equal(x, planes) })
		switch {
		case !slices.Contains(r.Prefer, transport), known, len(planes) == 0 && len(r.DataPlane) > 0:
		case len(planes) == 0: // most peers connect there, so it is dialled first
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

// AllowsPlane reports whether the route to a rank allows the data plane of a link that it has made.
func (rt *Table) AllowsPlane(rank wire.WorldRank, l link.Link) bool {
	return int(rank) >= rt.World.Procs.Len() || hasPlane(l, rt.RouteTo(rank).DataPlane)
}

// hasPlane reports whether a link has one of the data planes, as far as is known; nil stands for
// any.
func hasPlane(l link.Link, planes []string) bool {
	from, known := host.OriginOf(l)
	return !known || len(planes) == 0 || slices.Contains(planes, string(from.Plane))
}
