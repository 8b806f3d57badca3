package routes

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

// Secrecy is what links between two sites must be, the weaker demand first.
type Secrecy uint8

// The demands.
const (
	AnyLink   Secrecy = iota
	Closed            // encrypted, or of a transport that does not leave the machine
	Encrypted         // also within one machine
)

// What business cards say to whom the site's links are encrypted or closed.
const (
	TLSFeature    = "tls"
	ClosedFeature = "closed"
)

// SecrecyOf is what a route demands.
func SecrecyOf(r config.Route) Secrecy {
	switch {
	case r.RequireTLS:
		return Encrypted
	case r.Closed:
		return Closed
	}
	return AnyLink
}

// SecrecyFeatures are a site's demands, as clientFeatures has them.
func SecrecyFeatures(job *config.Job, site config.Site) []string {
	features := clientFeatures(TLSFeature, job, site, func(r config.Route) bool { return r.RequireTLS })
	return append(features, clientFeatures(ClosedFeature, job, site, func(r config.Route) bool { return r.Closed })...)
}

// CloseRoutes closes routes by what is known once the transports run: those that
// encrypt have certificates, whatever a plugin calls them in the file.
func (rt *Table) CloseRoutes() {
	s := rt.Site
	open := func(r config.Route) bool {
		return SecrecyOf(r) == AnyLink && !r.AllowPlain && len(rt.encrypting(r)) > 0
	}
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
func (rt *Table) encrypting(r config.Route) (names []string) {
	for _, name := range r.Prefer {
		running := rt.Transport(name)
		c, _ := rt.Site.Transport(name)
		if c.HasCertificates() || running != nil && running.Capabilities().Has(transports.FeatureEncrypted) {
			names = append(names, name)
		}
	}
	return names
}

// ErrPlain is why a host is sent away that comes by plain TCP.
var ErrPlain = errors.New("it comes by plain TCP, as IMPI has it")

// JudgePlain judges a connection that came as IMPI has it and says that it is from a host: anybody
// can say so.
func (rt *Table) JudgePlain(host uint32) error {
	if uint64(host) >= uint64(len(rt.World.Hosts)) {
		return nil // the dance knows better words
	}
	if must, says := rt.ForbidsPlain(rt.World.Hosts[host].Client); must {
		return fmt.Errorf("it says it is host %d, and %s: %w", host, says, ErrPlain)
	}
	return nil
}

// SecrecyTo tells what links to a client must be, and who says so.
func (rt *Table) SecrecyTo(to wire.ClientRank) (s Secrecy, says string) {
	r := rt.strictestRoute(to)
	if s = SecrecyOf(r); s != AnyLink {
		says = rt.sayOwn(r, s)
	}
	us := rt.World.Clients[rt.World.Self].Rank
	for rank, p := range rt.World.Procs.All() {
		if p.Client != to {
			continue
		}
		c := rt.Cards[rank]
		if theirs := demandOf(c, us); theirs > s {
			s, says = theirs, fmt.Sprintf("the route to %s of %s %s", rt.ClientName(us), rt.ClientName(to), theirs.why(nil))
		}
		break // the cards of a site agree
	}
	return s, says
}

// demandOf is what the owner of a card demands of links to a client.
func demandOf(c *dynamic.Card, to wire.ClientRank) Secrecy {
	switch {
	case c == nil:
		return AnyLink
	case Wants(c, TLSFeature, to):
		return Encrypted
	case Wants(c, ClosedFeature, to):
		return Closed
	}
	return AnyLink
}

// sayOwn tells why the site's own route demands what it does.
func (rt *Table) sayOwn(r config.Route, s Secrecy) string {
	if r.Pos.IsZero() && s == Closed {
		return fmt.Sprintf("site %s has certificates for %s, and no route \"*\" with require_tls = false", rt.Site.Name, strings.Join(rt.encrypting(r), ", "))
	}
	return fmt.Sprintf("route %q of site %s (%v) %s", r.Site, rt.Site.Name, r.Pos, s.why(rt.encrypting(r)))
}

// why tells what there is about a route that demands s.
func (s Secrecy) why(transports []string) string {
	switch {
	case s == Encrypted:
		return "has require_tls"
	case len(transports) == 0:
		return "has certificates and does not say require_tls = false"
	}
	return fmt.Sprintf("has certificates for %s and does not say require_tls = false", strings.Join(transports, ", "))
}

// strictestRoute gives the site's own route to a client. A client whose name the job
// file does not tell may be any that has no block of its own: the strictest counts.
func (rt *Table) strictestRoute(to wire.ClientRank) config.Route {
	name := rt.SiteName(int(to))
	strictest := rt.Site.RouteTo(name)
	if name != "" {
		return strictest
	}
	for _, r := range rt.Site.Routes {
		known := slices.ContainsFunc(rt.Job.Sites, func(s config.Site) bool { return s.Name == r.Site })
		if !known && SecrecyOf(r) > SecrecyOf(strictest) {
			strictest = r
		}
	}
	return strictest
}

// Under gives a route that demands s, whatever it demanded before.
func Under(r config.Route, s Secrecy) config.Route {
	r.RequireTLS, r.Closed = s == Encrypted, s == Closed
	return r
}

// SharedRoute is the route to a rank with what the other site demands.
func (rt *Table) SharedRoute(to wire.WorldRank) config.Route {
	s, _ := rt.SecrecyTo(rt.World.Procs.At(to).Client)
	return Under(rt.RouteTo(to), s)
}

// keeps tells whether the links of a transport are what s demands.
func (s Secrecy) keeps(t *Transport) bool {
	c := t.Capabilities()
	return s == AnyLink || c.Has(transports.FeatureEncrypted) || s == Closed && c.Reach == transports.ReachMachine
}

// ChannelWays lists how the channel to a host may be made besides IMPI's way, best
// first: for who may not be reached by plain TCP, and for who is not to be reached
// directly, whose packets all go by it. must tells that IMPI's own way is no choice.
func (rt *Table) ChannelWays(self wire.HostRank, from string, peer wire.HostRank) (ways []Way, must bool) {
	must, _ = rt.ForbidsPlain(rt.World.Hosts[peer].Client)
	a, b := rt.FirstOf(self), rt.FirstOf(peer)
	if a < 0 || b < 0 {
		return nil, must
	}
	r := rt.SharedRoute(b)
	if r.Direct && !must {
		return nil, false
	}
	r.Direct = true
	for _, w := range rt.waysTo(r, rt.Cards[a], rt.Cards[b], from) {
		if plain := len(r.DataPlane) == 0 || slices.Contains(r.DataPlane, string(transports.PlaneFD)); w.T == rt.Channels && plain && !must {
			break // IMPI's own way is as good
		}
		ways = append(ways, w)
	}
	return ways, must
}

// ForbidsPlain tells whether the channel to a client may not be made in IMPI's own
// way, and who says so.
func (rt *Table) ForbidsPlain(to wire.ClientRank) (must bool, says string) {
	if s, says := rt.SecrecyTo(to); s != AnyLink {
		return true, says
	}
	return rt.PinsChannel(to)
}

// CheckChannels wants a way to every host whose channel may not be made in IMPI's.
func (rt *Table) CheckChannels(self wire.HostRank, from string) error {
	var errs []error
	for i, x := range rt.World.Hosts {
		peer := wire.HostRank(i)
		if ways, must := rt.ChannelWays(self, from, peer); peer == self || !must || len(ways) > 0 {
			continue
		}
		_, says := rt.ForbidsPlain(x.Client)
		why := rt.whyUnpinned()
		if s, _ := rt.SecrecyTo(x.Client); s != AnyLink {
			why = rt.whyPlain(s)
		}
		errs = append(errs, fmt.Errorf("no channel to %s may be made, for %s, and %s", rt.HostName(peer), says, why))
	}
	return errors.Join(errs...)
}

// whyPlain tells why no way to a host is as s demands, and the remedy.
func (rt *Table) whyPlain(s Secrecy) string {
	for _, c := range rt.World.Clients {
		if !c.Own {
			return fmt.Sprintf("%s is run by another MPI, so that the job's channels are plain TCP (IMPI ch.2): "+
				"%s and lead the channels through a tunnel", rt.ClientName(c.Rank), s.without())
		}
	}
	why := `no transport that encrypts is in prefer of the routes of both sites and works between them: ` +
		rt.Job.EncryptRemedy("")
	if s == Closed {
		why += "; or, if anybody on the way may read it, " + s.without()
	}
	return why
}

// without is how to have less than s demands.
func (s Secrecy) without() string {
	if s == Closed {
		return "write require_tls = false in that route"
	}
	return "take require_tls out"
}

// Remedy is what to do about links that cannot be made as the routes demand.
func (rt *Table) Remedy(to wire.ClientRank, err error) string {
	what := ""
	var t *transports.Error
	if errors.As(err, &t) && t.Code == transports.CodeAuth {
		what = "; give both sites certificates of one CA, as impi-node cert init makes them"
	}
	if s, _ := rt.SecrecyTo(to); s == Closed {
		what += "; or, if anybody on the way may read it, " + s.without()
	}
	return what
}

// AllowsChannel tells whether the channel to a host may be a link that came to a listener of t,
// which is plain if channels are made there as IMPI has it. Who greets may have named any host.
func (rt *Table) AllowsChannel(peer wire.HostRank, l link.Link, t *Transport, plain bool) bool {
	if peer < 0 || int(peer) >= len(rt.World.Hosts) {
		return false
	}
	if plain {
		must, _ := rt.ForbidsPlain(rt.World.Hosts[peer].Client) // a pin for direct links is none
		return !must
	}
	s, _ := rt.SecrecyTo(rt.World.Hosts[peer].Client)
	r := rt.FirstOf(peer)
	return r >= 0 && rt.AllowsPlane(r, l) && s.keeps(t)
}
