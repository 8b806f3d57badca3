package job

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// Names of the transports of simulated sites.
const (
	Plain     = "plain"
	Encrypted = "tls"
)

// transport is Plain or Encrypted. All sites are on different machines.
type transport string

func (transport) Machine() bool        { return false }
func (t transport) Encrypts() bool     { return t == Encrypted }
func (transport) HasPlane(string) bool { return true }

// prefer returns the transports of a site, best first.
func (s *Site) prefer() []string {
	if s.Prefer == nil {
		return []string{Plain}
	}
	return s.Prefer
}

// listens returns the transports by which a site can be dialled. Plain is always among them, even
// if this site's route does not allow it, as a site may have other routes.
func (s *Site) listens() []string {
	if slices.Contains(s.prefer(), Plain) {
		return s.prefer()
	}
	return append([]string{Plain}, s.prefer()...)
}

// cardOf returns the parts of a business card that routes need; nil: the site's procs have no
// cards.
func cardOf(s *site) *dynamic.BusinessCard { return cardIn(s.w.job, s) }

// cardIn is cardOf for whoever has the job from the server.
func cardIn(job *startup.Job, s *site) *dynamic.BusinessCard {
	if s.cfg.Foreign != nil || !job.AllOwn {
		return nil
	}
	c := &dynamic.BusinessCard{Node: siteName(int(s.rank)), ByteOrder: dynamic.LittleEndian}
	if datatype.HostOrder() == datatype.NativeBE {
		c.ByteOrder = dynamic.BigEndian
	}
	for _, name := range s.cfg.listens() {
		c.Addresses = append(c.Addresses, dynamic.TransportAddress{Transport: name, Address: c.Node})
	}
	if s.cfg.Secret {
		c.Features = route.Features(route.TLSFeature, true, nil, nil)
	}
	if s.cfg.Data != "" {
		c.Features = append(c.Features, s.cfg.Data+"-to-all")
	}
	c.Features = append(c.Features, route.CollectivesFeatures(collectivesOf(s))...)
	return c
}

// sitePair is a site and a peer, for the site's decisions about links between their procs.
type sitePair struct{ own, peer *site }

func (s *site) with(c wire.ClientRank) sitePair { return sitePair{s, s.w.sites[c]} }

func (x sitePair) route() *route.Route {
	r := &route.Route{Direct: x.own.w.cfg.Direct && !x.own.cfg.NoDirect, Prefer: x.own.cfg.prefer(), Secrecy: route.DemandOf(cardOf(x.peer), x.own.rank)}
	if x.own.cfg.Secret {
		r.Secrecy = route.Encrypted
	}
	return r
}

func (x sitePair) endpoints() []dynamic.TransportAddress {
	endpoints := x.route().Addresses(func(name string) route.Transport { return transport(name) }, cardOf(x.own), cardOf(x.peer))
	var names []string
	for _, o := range endpoints {
		names = append(names, o.Transport)
	}
	if want := x.usable(x.peer.cfg.listens()); !slices.Equal(names, want) {
		x.wrong("dial those of site %d by %q instead of %q", x.peer.rank, names, want)
	}
	return endpoints
}

func (x sitePair) allows(name string) bool {
	allowed := x.route().Allows(name, transport(name))
	if want := len(x.usable([]string{name})) > 0; allowed != want {
		x.wrong("take links of site %d by %s: %t instead of %t", x.peer.rank, name, allowed, want)
	}
	return allowed
}

func (x sitePair) wrong(format string, args ...any) {
	if w := x.own.w; w.wrong == nil {
		w.wrong = fmt.Errorf("%w: procs of site %d %s", ErrDisorder, x.own.rank, fmt.Sprintf(format, args...))
	}
}

// usable returns the transports that the site may use with the peer, best first. core/route must
// come to the same result; this is computed from the case alone.
func (x sitePair) usable(of []string) (names []string) {
	if !x.own.w.cfg.Direct || x.own.cfg.NoDirect || !x.own.ours(x.peer.rank) {
		return nil
	}
	for _, name := range x.own.cfg.prefer() {
		if slices.Contains(of, name) && (name == Encrypted || !x.own.cfg.Secret && !x.peer.cfg.Secret) {
			names = append(names, name)
		}
	}
	return names
}

func (x sitePair) data() string {
	switch {
	case x.own == x.peer:
		return datatype.HostOrder().String()
	case x.own.ours(x.peer.rank):
		return route.Representation(cardOf(x.own), cardOf(x.peer), x.own.rank, x.peer.rank)
	}
	return datatype.External32.String()
}

// collectivesOf returns how a site is set to exchange messages in collective operations, the round trip
// that it has measured and the rate in bytes per second. MAXLINEAR, which all sites of a job have
// alike, also selects these.
func collectivesOf(s *site) (choice route.CollectivesChoice, rtt time.Duration, rate int64) {
	last := int(s.rank) == len(s.w.cfg.Sites)-1
	switch linear := s.cfg.Params.MaxLinear; {
	case linear == 0, linear == 1 && last:
		return route.CollectivesTree, 0, 0
	case linear == 5 && last:
		return route.CollectivesDirect, 0, 0
	case linear == 2, linear == 3: // sites near each other
		return "", tripAt(int(s.rank)), 1e11 >> s.rank
	}
	return route.CollectivesAuto, 0, 0
}

func tripAt(rank int) time.Duration {
	return []time.Duration{20, 50, 30, 10}[rank%4] * time.Microsecond
}

// wantCollectives returns by the case alone up to how many sites exchange messages all at once, and
// from how many bytes on a vector is exchanged part by part.
func wantCollectives(w *Simulation) (direct, long int) {
	n, trip := len(w.cfg.Sites), time.Duration(0)
	for i, s := range w.cfg.Sites {
		if s.Foreign != nil {
			return 0, 0
		}
		trip = max(trip, tripAt(i))
	}
	long = 1 << 20
	switch w.cfg.Sites[0].Params.MaxLinear {
	case 0, 1:
		return 0, long
	case 5:
		return wire.MaxClients, long
	case 2, 3:
		if n > 2 {
			least := int64(1e11) >> (n - 1) / 1000 * 1000
			long = int(max(64<<10, trip.Nanoseconds()*least/1e9*int64(n)/int64(2*(n-1)*(n-2))))
		}
		return int(trip / (10 * time.Microsecond)), long
	}
	return 16, long
}

// mustPlan checks how a site exchanges messages in collective operations.
func mustPlan(s *site, how *route.Collectives) {
	direct, long := wantCollectives(s.w)
	if off := how.DirectLong - long; how.Direct != direct || off < -4 || off > 4 { // it is rounded in another way
		disorder(s.w, "site %d exchanges messages of up to %d sites at once, and vectors part by part from %d bytes on, instead of %d and %d",
			s.rank, how.Direct, how.DirectLong, direct, long)
	}
}
