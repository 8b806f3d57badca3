package node

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/transports"
)

// A route's data_plane binds the channel between the agents, too, where all packets
// go by it: it fails rather than degrades. IMPI's own channels are kernel sockets,
// whose data plane is fd, so they are a choice for who allows that alone.

// pinFeature says on business cards to whom the site's channels are no sockets.
const pinFeature = "channel"

// pinFeatures are a site's pins, as clientFeatures has them.
func pinFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(pinFeature, job, site, func(r config.Route) bool { return !r.Direct && !allowsSockets(r) })
}

// allowsSockets tells whether a route's links may be kernel sockets.
func allowsSockets(r config.Route) bool {
	return len(r.DataPlane) == 0 || slices.Contains(r.DataPlane, string(transports.PlaneFD))
}

// pinsChannel tells whether the channel to a client may be no kernel socket, and who
// says so. A client without cards is reached by its channel, whatever the route says.
func (n *node) pinsChannel(to wire.ClientRank) (must bool, says string) {
	r := n.opt.Site.RouteTo(n.opt.siteName(int(to)))
	us := n.job.Clients[n.job.Self].Rank
	for rank, p := range n.job.Procs {
		if p.Client != to {
			continue
		}
		c := n.cards[rank]
		if c != nil && wants(c, pinFeature, us) {
			says = fmt.Sprintf("the route to %s of %s pins a data_plane other than fd", n.clientName(us), n.clientName(to))
		}
		if (c == nil || !r.Direct) && !allowsSockets(r) {
			says = fmt.Sprintf("route %q of site %s (%v) pins data_plane = %s", r.Site, n.opt.Site.Name, r.Pos, quoted(r.DataPlane))
		}
		break // the cards of a site agree
	}
	return says != "", says
}

// whyUnpinned tells why there is no way to a host by the data planes that are pinned,
// and the remedy.
func (n *node) whyUnpinned() string {
	for _, c := range n.job.Clients {
		if !c.Own {
			return fmt.Sprintf("%s is run by another MPI, so that the job's channels are sockets (IMPI ch.2): "+
				`take data_plane out of the route or add "fd" to it`, n.clientName(c.Rank))
		}
	}
	return `no transport that has such links is in prefer of the routes of both sites and works between them: ` +
		`name one there, change data_plane, or add "fd" to it`
}
