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
	// MAXLINEAR also selects these: with 0 or 1 the job uses trees, with 2 or 3 its sites are near
	// each other.
	choice, rtt := route.CollectivesAuto, time.Duration(0)
	switch s.cfg.Params.MaxLinear {
	case 0, 1:
		choice = route.CollectivesTree
	case 2, 3:
		rtt = 30 * time.Microsecond
	}
	c.Features = append(c.Features, route.CollectivesFeatures(choice, rtt, 0)...)
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
