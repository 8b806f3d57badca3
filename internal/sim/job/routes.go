package job

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
)

// Names of the transports that simulated sites have.
const (
	Plain     = "plain"
	Encrypted = "tls"
)

// transport is one of them. Sites are on machines of their own.
type transport string

func (transport) Machine() bool        { return false }
func (t transport) Encrypts() bool     { return t == Encrypted }
func (transport) HasPlane(string) bool { return true }

// prefer gives the transports of a site, best first.
func (s *Site) prefer() []string {
	if s.Prefer == nil {
		return []string{Plain}
	}
	return s.Prefer
}

// listens gives the transports by which a site can be dialled: also by Plain where its route does not
// allow that, as a site has other routes.
func (s *Site) listens() []string {
	if slices.Contains(s.prefer(), Plain) {
		return s.prefer()
	}
	return append([]string{Plain}, s.prefer()...)
}

// cardOf is the business card of a site's procs, as far as routes need it; nil: they have none.
func cardOf(s *site) *dynamic.Card {
	if s.cfg.Foreign != nil || !s.w.job.AllOwn {
		return nil
	}
	c := &dynamic.Card{Node: siteName(int(s.rank)), ByteOrder: dynamic.LittleEndian}
	if datatype.HostOrder() == datatype.NativeBE {
		c.ByteOrder = dynamic.BigEndian
	}
	for _, name := range s.cfg.listens() {
		c.Offers = append(c.Offers, dynamic.Offer{Transport: name, Address: c.Node})
	}
	if s.cfg.Secret {
		c.Features = route.Features(route.TLSFeature, true, nil, nil)
	}
	if s.cfg.Data != "" {
		c.Features = append(c.Features, s.cfg.Data+"-to-all")
	}
	return c
}

// sitePair is what a site decides about its procs and those of a peer.
type sitePair struct{ own, peer *site }

// with is the site and another one of its world.
func (s *site) with(c wire.ClientRank) sitePair { return sitePair{s, s.w.sites[c]} }

// route is the site's route to the peer, with what that demands.
func (x sitePair) route() *route.Route {
	r := &route.Route{Direct: x.own.w.cfg.Direct && !x.own.cfg.NoDirect, Prefer: x.own.cfg.prefer(), Secrecy: route.DemandOf(cardOf(x.peer), x.own.rank)}
	if x.own.cfg.Secret {
		r.Secrecy = route.Encrypted
	}
	return r
}

// ways lists how procs of the site dial those of the peer.
func (x sitePair) ways() []dynamic.Offer {
	ways := x.route().Ways(func(name string) route.Transport { return transport(name) }, cardOf(x.own), cardOf(x.peer))
	var names []string
	for _, o := range ways {
		names = append(names, o.Transport)
	}
	if want := x.usable(x.peer.cfg.listens()); !slices.Equal(names, want) {
		x.wrong("dial those of site %d by %q instead of %q", x.peer.rank, names, want)
	}
	return ways
}

// allows tells whether procs of the site may have a link that the peer's make by a transport.
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

// usable lists those of some transports that the site may use with the peer, best first: what core/route
// must find, from the case alone.
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

// data names the form in which data travel between procs of the two sites.
func (x sitePair) data() string {
	switch {
	case x.own == x.peer:
		return datatype.HostOrder().String()
	case x.own.ours(x.peer.rank):
		return route.Representation(cardOf(x.own), cardOf(x.peer), x.own.rank, x.peer.rank)
	}
	return datatype.External32.String()
}
