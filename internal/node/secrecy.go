package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/transports"
)

// What routes say of encryption is about a pair of sites, whichever way their packets
// take: no link between them is weaker than what either site's route demands, be it
// between two procs or the channel between two agents. A pair whose direct link
// fails goes by its agents therefore only as safely, and where their channel cannot
// be, the job does not begin. Within one host nothing leaves the node and its procs.

// secrecy is what links between two sites must be, the weaker demand first.
type secrecy uint8

const (
	anyLink   secrecy = iota
	closed            // encrypted, or of a transport that does not leave the machine
	encrypted         // also within one machine
)

// What business cards say to whom the site's links are encrypted or closed.
const (
	tlsFeature    = "tls"
	closedFeature = "closed"
)

func secrecyOf(r config.Route) secrecy {
	switch {
	case r.RequireTLS:
		return encrypted
	case r.Closed:
		return closed
	}
	return anyLink
}

// secrecyFeatures are a site's demands, as clientFeatures has them.
func secrecyFeatures(job *config.Job, site config.Site) []string {
	features := clientFeatures(tlsFeature, job, site, func(r config.Route) bool { return r.RequireTLS })
	return append(features, clientFeatures(closedFeature, job, site, func(r config.Route) bool { return r.Closed })...)
}

// closeRoutes closes routes by what is known once the transports run: those that
// encrypt have certificates, whatever a plugin calls them in the file.
func (n *node) closeRoutes() {
	s := &n.opt.Site
	open := func(r config.Route) bool { return secrecyOf(r) == anyLink && !r.AllowPlain && len(n.encrypting(r)) > 0 }
	general := s.RouteTo("*")
	made := !slices.ContainsFunc(s.Routes, func(r config.Route) bool { return r.Site == "*" })
	s.Routes = slices.Clone(s.Routes) // others read the file's
	for i, r := range s.Routes {
		s.Routes[i].Closed = r.Closed || open(r)
	}
	if made && open(general) {
		general.Closed = true
		s.Routes = append(s.Routes, general)
	}
}

// encrypting lists the transports of a route that have certificates.
func (n *node) encrypting(r config.Route) (names []string) {
	for _, name := range r.Prefer {
		running := n.transport(name)
		c, _ := n.opt.Site.Transport(name)
		if c.HasCertificates() || running != nil && running.Capabilities().Has(transports.FeatureEncrypted) {
			names = append(names, name)
		}
	}
	return names
}

// errPlain is why a host is sent away that comes by plain TCP.
var errPlain = errors.New("it comes by plain TCP, as IMPI has it")

// secrecyTo tells what links to a client must be, and who says so.
func (n *node) secrecyTo(to wire.ClientRank) (s secrecy, says string) {
	r := n.strictestRoute(to)
	if s = secrecyOf(r); s != anyLink {
		says = n.sayOwn(r, s)
	}
	us := n.job.Clients[n.job.Self].Rank
	for rank, p := range n.job.Procs {
		if p.Client != to {
			continue
		}
		c := n.cards[rank]
		if theirs := demandOf(c, us); theirs > s {
			s, says = theirs, fmt.Sprintf("the route to %s of %s %s", n.clientName(us), n.clientName(to), theirs.why(nil))
		}
		break // the cards of a site agree
	}
	return s, says
}

// demandOf is what the owner of a card demands of links to a client.
func demandOf(c *dynamic.Card, to wire.ClientRank) secrecy {
	switch {
	case c == nil:
		return anyLink
	case wants(c, tlsFeature, to):
		return encrypted
	case wants(c, closedFeature, to):
		return closed
	}
	return anyLink
}

// sayOwn tells why the site's own route demands what it does.
func (n *node) sayOwn(r config.Route, s secrecy) string {
	if r.Pos.IsZero() && s == closed {
		return fmt.Sprintf("site %s has certificates for %s, and no route \"*\" with require_tls = false", n.opt.Site.Name, strings.Join(n.encrypting(r), ", "))
	}
	return fmt.Sprintf("route %q of site %s (%v) %s", r.Site, n.opt.Site.Name, r.Pos, s.why(n.encrypting(r)))
}

// why tells what there is about a route that demands s.
func (s secrecy) why(transports []string) string {
	switch {
	case s == encrypted:
		return "has require_tls"
	case len(transports) == 0:
		return "has certificates and does not say require_tls = false"
	}
	return fmt.Sprintf("has certificates for %s and does not say require_tls = false", strings.Join(transports, ", "))
}

// strictestRoute gives the site's own route to a client. A client whose name the job
// file does not tell may be any that has no block of its own: the strictest counts.
func (n *node) strictestRoute(to wire.ClientRank) config.Route {
	name := n.opt.siteName(int(to))
	strictest := n.opt.Site.RouteTo(name)
	if name != "" {
		return strictest
	}
	for _, r := range n.opt.Site.Routes {
		known := slices.ContainsFunc(n.opt.Job.Sites, func(s config.Site) bool { return s.Name == r.Site })
		if !known && secrecyOf(r) > secrecyOf(strictest) {
			strictest = r
		}
	}
	return strictest
}

// under gives a route that demands s, whatever it demanded before.
func under(r config.Route, s secrecy) config.Route {
	r.RequireTLS, r.Closed = s == encrypted, s == closed
	return r
}

// sharedRoute is the route to a rank with what the other site demands.
func (n *node) sharedRoute(to wire.WorldRank) config.Route {
	s, _ := n.secrecyTo(n.job.Procs[to].Client)
	return under(n.routeTo(to), s)
}

// keeps tells whether the links of a transport are what s demands.
func (s secrecy) keeps(t *transport) bool {
	c := t.Capabilities()
	return s == anyLink || c.Has(transports.FeatureEncrypted) || s == closed && c.Reach == transports.ReachMachine
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
	if s, says := n.secrecyTo(to); s != anyLink {
		return true, says
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
		why := n.whyUnpinned()
		if s, _ := n.secrecyTo(x.Client); s != anyLink {
			why = n.whyPlain(s)
		}
		errs = append(errs, fmt.Errorf("no channel to %s may be made, for %s, and %s", n.hostName(peer), says, why))
	}
	return errors.Join(errs...)
}

// whyPlain tells why no way to a host is as s demands, and the remedy.
func (n *node) whyPlain(s secrecy) string {
	for _, c := range n.job.Clients {
		if !c.Own {
			return fmt.Sprintf("%s is run by another MPI, so that the job's channels are plain TCP (IMPI ch.2): "+
				"%s and lead the channels through a tunnel", n.clientName(c.Rank), s.without())
		}
	}
	why := `no transport that encrypts is in prefer of the routes of both sites and works between them: ` +
		n.opt.Job.EncryptRemedy("")
	if s == closed {
		why += "; or, if anybody on the way may read it, " + s.without()
	}
	return why
}

// without is how to have less than s demands.
func (s secrecy) without() string {
	if s == closed {
		return "write require_tls = false in that route"
	}
	return "take require_tls out"
}

// remedy is what to do about links that cannot be made as the routes demand.
func (n *node) remedy(to wire.ClientRank, err error) string {
	what := ""
	var t *transports.Error
	if errors.As(err, &t) && t.Code == transports.CodeAuth {
		what = "; give both sites certificates of one CA, as impi-node cert init makes them"
	}
	if s, _ := n.secrecyTo(to); s == closed {
		what += "; or, if anybody on the way may read it, " + s.without()
	}
	return what
}

// allowsChannel tells whether the channel to a host may be a link that came to a
// listener.
func (n *node) allowsChannel(peer wire.HostRank, l link.Link, at directListener) bool {
	if at.hosts {
		must, _ := n.forbidsPlain(n.job.Hosts[peer].Client) // a pin for direct links is none
		return !must
	}
	s, _ := n.secrecyTo(n.job.Hosts[peer].Client)
	r := n.firstOf(peer)
	return r >= 0 && n.allowsPlane(r, l) && s.keeps(at.t)
}
