package routes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// The encryption that routes demand applies to a pair of sites, for links between procs and for
// channels: none is weaker than the route of either site demands. So a pair whose direct link fails
// sends by its agents no less safely, and if no channel is as safe as that, the job does not start.
// Links within one host never leave the node and its procs, and need no encryption.

// SecrecyOf returns what a route of the file demands.
func SecrecyOf(r config.Route) route.Secrecy {
	switch {
	case r.RequireTLS:
		return route.Encrypted
	case r.Closed:
		return route.Closed
	}
	return route.AnyLink
}

// SecrecyFeatures returns the features for business cards with what a site demands of links.
func SecrecyFeatures(job *config.Job, site config.Site) []string {
	features := clientFeatures(route.TLSFeature, job, site, func(r config.Route) bool { return r.RequireTLS })
	return append(features, clientFeatures(route.ClosedFeature, job, site, func(r config.Route) bool { return r.Closed })...)
}

// CloseRoutes marks routes as closed by what is known once the transports run: a plugin whose links
// are encrypted has certificates, whatever the names of its settings in the file are.
func (rt *Table) CloseRoutes() {
	s := rt.Site
	general := s.RouteTo("*")
	made := !slices.ContainsFunc(s.Routes, func(r config.Route) bool { return r.Site == "*" })
	s.Routes = slices.Clone(s.Routes) // others read the file's
	for i, r := range s.Routes {
		s.Routes[i].Closed = IsClosed(rt, r)
	}
	if made && !general.Closed && IsClosed(rt, general) {
		general.Closed = true
		s.Routes = append(s.Routes, general)
	}
}

// IsClosed reports whether nothing may leave the machine unencrypted by a route: the job file says
// so, or a transport in its prefer encrypts and it does not allow plain links.
func IsClosed(rt *Table, r config.Route) bool {
	return r.Closed || !r.RequireTLS && !r.AllowPlain && len(rt.encrypting(r)) > 0
}

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

// ErrPlain is wrapped by the error for a host that connects by plain TCP and must not.
var ErrPlain = errors.New("it comes by plain TCP, as IMPI has it")

// CheckPlainGreeting decides about a connection that began as IMPI says, with the number of a host, which
// may be false.
func (rt *Table) CheckPlainGreeting(host uint32) error {
	if uint64(host) >= uint64(len(rt.World.Hosts)) {
		return nil // the dance refuses it with a better text
	}
	if must, says := rt.ForbidsPlain(rt.World.Hosts[host].Client); must {
		return fmt.Errorf("it says it is host %d, and %s: %w", host, says, ErrPlain)
	}
	return nil
}

// SecrecyTo returns what links to a client must be, and which site demands that.
func (rt *Table) SecrecyTo(to wire.ClientRank) (s route.Secrecy, says string) {
	r := rt.strictestRoute(to)
	if s = SecrecyOf(r); s != route.AnyLink {
		says = rt.sayOwn(r, s)
	}
	us := rt.World.Clients[rt.World.Self].Rank
	if c, ok := cardOf(rt, to); ok {
		if theirs := route.DemandOf(c, us); theirs > s {
			s, says = theirs, fmt.Sprintf("the route to %s of %s %s", rt.ClientName(us), rt.ClientName(to), why(theirs, nil))
		}
	}
	return s, says
}

func (rt *Table) sayOwn(r config.Route, s route.Secrecy) string {
	if r.Pos.IsZero() && s == route.Closed {
		return fmt.Sprintf("site %s has certificates for %s, and no route \"*\" with require_tls = false", rt.Site.Name, strings.Join(rt.encrypting(r), ", "))
	}
	return fmt.Sprintf("route %q of site %s (%v) %s", r.Site, rt.Site.Name, r.Pos, why(s, rt.encrypting(r)))
}

func why(s route.Secrecy, transports []string) string {
	switch {
	case s == route.Encrypted:
		return "has require_tls"
	case len(transports) == 0:
		return "has certificates and does not say require_tls = false"
	}
	return fmt.Sprintf("has certificates for %s and does not say require_tls = false", strings.Join(transports, ", "))
}

// strictestRoute returns the site's own route to a client. If the job file does not tell the
// client's name, it may be any route to a site that the file does not have: the strictest one
// counts.
func (rt *Table) strictestRoute(to wire.ClientRank) config.Route {
	name := rt.SiteName(int(to))
	s := CurrentSite(rt)
	strictest := s.RouteTo(name)
	if name != "" {
		return strictest
	}
	for _, r := range s.Routes {
		known := slices.ContainsFunc(rt.Job.Sites, func(s config.Site) bool { return s.Name == r.Site })
		if !known && SecrecyOf(r) > SecrecyOf(strictest) {
			strictest = r
		}
	}
	return strictest
}

// SharedRoute returns the route to a rank with the demands of the other site.
func (rt *Table) SharedRoute(to wire.WorldRank) route.Route {
	s, _ := rt.SecrecyTo(rt.World.Procs.At(to).Client)
	return shared(rt.RouteTo(to), s)
}

// ChannelCandidates lists the candidates for the channel to a host other than plain TCP as IMPI
// says, best first. There are such candidates for hosts for which plain TCP is forbidden, and to
// those for which the route has direct = false, so that all packets go by the channel. must reports
// whether the channel may not be made as IMPI says.
func (rt *Table) ChannelCandidates(self wire.HostRank, from string, peer wire.HostRank) (candidates []Candidate, must bool) {
	must, _ = rt.ForbidsPlain(rt.World.Hosts[peer].Client)
	a, b := rt.FirstRankOf(self), rt.FirstRankOf(peer)
	if a < 0 || b < 0 {
		return nil, must
	}
	r := rt.SharedRoute(b)
	if r.Direct && !must {
		return nil, false
	}
	r.Direct = true
	list := rt.candidatesTo(r, rt.Cards.At(a), rt.Cards.At(b), from)
	if len(list) == 0 { // there has to be a channel
		list = allCandidates(rt, r, rt.Cards.At(a), rt.Cards.At(b), from)
	}
	for _, w := range list {
		if w.Transport == rt.Channels && allowsSockets(r.Planes) && !must {
			break // plain TCP as IMPI says is as good
		}
		candidates = append(candidates, w)
	}
	return candidates, must
}

// ForbidsPlain reports whether the channel to a client may not be plain TCP as IMPI says, and
// returns which site forbids it.
func (rt *Table) ForbidsPlain(to wire.ClientRank) (must bool, says string) {
	if s, says := rt.SecrecyTo(to); s != route.AnyLink {
		return true, says
	}
	return rt.PinsChannel(to)
}

// CheckChannels returns an error if there is a host to which no channel is possible that the routes
// allow.
func (rt *Table) CheckChannels(self wire.HostRank, from string) error {
	var errs []error
	for i, x := range rt.World.Hosts {
		peer := wire.HostRank(i)
		if candidates, must := rt.ChannelCandidates(self, from, peer); peer == self || !must || len(candidates) > 0 {
			continue
		}
		_, says := rt.ForbidsPlain(x.Client)
		why := rt.whyUnpinned()
		if s, _ := rt.SecrecyTo(x.Client); s != route.AnyLink {
			why = rt.whyPlain(s)
		}
		errs = append(errs, fmt.Errorf("no channel to %s may be made, for %s, and %s", rt.HostName(peer), says, why))
	}
	return errors.Join(errs...)
}

func (rt *Table) whyPlain(s route.Secrecy) string {
	for _, c := range rt.World.Clients {
		if !c.Own {
			return fmt.Sprintf("%s is run by another MPI, so that the job's channels are plain TCP (IMPI ch.2): "+
				"%s and lead the channels through a tunnel", rt.ClientName(c.Rank), without(s))
		}
	}
	why := `no transport that encrypts is in prefer of the routes of both sites and works between them: ` +
		rt.Job.EncryptRemedy("")
	if s == route.Closed {
		why += "; or, if anybody on the way may read it, " + without(s)
	}
	return why
}

// without says what to change in the job file to demand less than s.
func without(s route.Secrecy) string {
	if s == route.Closed {
		return "write require_tls = false in that route"
	}
	return "take require_tls out"
}

// Remedy returns what to do about links that cannot be made as the routes demand.
func (rt *Table) Remedy(to wire.ClientRank, err error) string {
	what := ""
	if t, ok := errors.AsType[*transports.Error](err); ok && t.Code == transports.CodeAuth {
		what = "; give both sites certificates of one CA, as impi-node cert init makes them"
	}
	if s, _ := rt.SecrecyTo(to); s == route.Closed {
		what += "; or, if anybody on the way may read it, " + without(s)
	}
	return what
}

// AllowsChannel reports whether the channel to a host may be a link that came to a listener of t.
// plain means the listener for channels as IMPI says. The host is the one in the greeting, and may
// be any number.
func (rt *Table) AllowsChannel(peer wire.HostRank, l link.Link, t *Transport, plain bool) bool {
	if peer < 0 || int(peer) >= len(rt.World.Hosts) {
		return false
	}
	if plain {
		must, _ := rt.ForbidsPlain(rt.World.Hosts[peer].Client) // a pin for direct links does not forbid it
		return !must
	}
	s, _ := rt.SecrecyTo(rt.World.Hosts[peer].Client)
	r := rt.FirstRankOf(peer)
	return r >= 0 && rt.AllowsPlane(r, l) && s.MetBy(t)
}
