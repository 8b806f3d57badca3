package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/transports"
)

// A route's require_tls is about a pair of sites, whichever way their packets take:
// no link between them is weaker than what either site's route demands, be it
// between two procs or the channel between two agents. A pair whose direct link
// fails goes by its agents therefore only as safely, and where their channel cannot
// be, the job does not begin. Within one host nothing leaves the node and its procs.

// tlsFeature says on business cards whom the site reaches only by links that are
// encrypted.
const tlsFeature = "tls"

// secrecyFeatures are a site's demands, as clientFeatures has them.
func secrecyFeatures(job *config.Job, site config.Site) []string {
	return clientFeatures(tlsFeature, job, site, func(r config.Route) bool { return r.RequireTLS })
}

// errPlain is why a host is sent away that comes by plain TCP.
var errPlain = errors.New("it comes by plain TCP, as IMPI has it")

// requireTLS tells whether any link to a client must be encrypted, and who says so.
func (n *node) requireTLS(to wire.ClientRank) (must bool, says string) {
	if r, strict := n.strictRoute(to); strict {
		return true, fmt.Sprintf("route %q of site %s (%v) has require_tls", r.Site, n.opt.Site.Name, r.Pos)
	}
	us := n.job.Clients[n.job.Self].Rank
	for r, p := range n.job.Procs {
		if p.Client != to {
			continue
		}
		if c := n.cards[r]; c != nil && wants(c, tlsFeature, us) {
			return true, fmt.Sprintf("the route to %s of %s has require_tls", n.clientName(us), n.clientName(to))
		}
		break // the cards of a site agree
	}
	return false, ""
}

// strictRoute gives the site's own route to a client that has require_tls. A client
// whose name the job file does not tell may be any that has no block of its own.
func (n *node) strictRoute(to wire.ClientRank) (config.Route, bool) {
	name := n.opt.siteName(int(to))
	if r := n.opt.Site.RouteTo(name); r.RequireTLS || name != "" {
		return r, r.RequireTLS
	}
	for _, r := range n.opt.Site.Routes {
		known := slices.ContainsFunc(n.opt.Job.Sites, func(s config.Site) bool { return s.Name == r.Site })
		if r.RequireTLS && !known {
			return r, true
		}
	}
	return config.Route{}, false
}

// sharedRoute is the route to a rank with what the other site demands.
func (n *node) sharedRoute(to wire.WorldRank) config.Route {
	r := n.routeTo(to)
	r.RequireTLS, _ = n.requireTLS(n.job.Procs[to].Client)
	return r
}

// channelWays lists how the channel to a host may be made besides IMPI's way, best
// first: for who may not be reached by plain TCP, and for who is not to be reached
// directly, whose packets all go by it. must tells that IMPI's own way is no choice.
func (n *node) channelWays(h *ownHost, peer wire.HostRank) (ways []way, must bool) {
	must, _ = n.forbidsPlain(n.job.Hosts[peer].Client)
	a, b := n.firstOf(h.rank), n.firstOf(peer)
	if a < 0 || b < 0 {
		return nil, must
	}
	r := n.sharedRoute(b)
	if r.Direct && !must {
		return nil, false
	}
	r.Direct = true
	for _, w := range n.waysBy(r, pair{a, b}, h.config.Address.String()) {
		if plain := len(r.DataPlane) == 0 || slices.Contains(r.DataPlane, string(transports.PlaneFD)); w.t == n.channels && plain && !must {
			break // IMPI's own way is as good
		}
		ways = append(ways, w)
	}
	return ways, must
}

// forbidsPlain tells whether the channel to a client may not be made in IMPI's own
// way, and who says so.
func (n *node) forbidsPlain(to wire.ClientRank) (must bool, says string) {
	if must, says = n.requireTLS(to); must {
		return must, says
	}
	return n.pinsChannel(to)
}

// checkChannels wants a way to every host whose channel may not be made in IMPI's.
func (n *node) checkChannels(h *ownHost) error {
	var errs []error
	for i, x := range n.job.Hosts {
		peer := wire.HostRank(i)
		if ways, must := n.channelWays(h, peer); peer == h.rank || !must || len(ways) > 0 {
			continue
		}
		_, says := n.forbidsPlain(x.Client)
		why := n.whyPlain(peer)
		if secret, _ := n.requireTLS(x.Client); !secret {
			why = n.whyUnpinned()
		}
		errs = append(errs, fmt.Errorf("no channel to %s may be made, for %s, and %s", n.hostName(peer), says, why))
	}
	return errors.Join(errs...)
}

// whyPlain tells why no way to a host is encrypted, and the remedy.
func (n *node) whyPlain(peer wire.HostRank) string {
	for _, c := range n.job.Clients {
		if !c.Own {
			return fmt.Sprintf("%s is run by another MPI, so that the job's channels are plain TCP (IMPI ch.2): "+
				"take require_tls out and lead the channels through a tunnel", n.clientName(c.Rank))
		}
	}
	return `no transport that encrypts is in prefer of the routes of both sites and works between them: ` +
		`give both sites transport "quic", or "tcp" with tls = true, and name it in prefer`
}

// allowsChannel tells whether the channel to a host may be a link that was made by t.
func (n *node) allowsChannel(peer wire.HostRank, l link.Link, t *transport) bool {
	must, _ := n.requireTLS(n.job.Hosts[peer].Client)
	r := n.firstOf(peer)
	return r >= 0 && n.allowsPlane(r, l) && (!must || t.Capabilities().Has(transports.FeatureEncrypted))
}
