package main

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

func (c *checker) encryptRemedy() string {
	return c.job.EncryptRemedy(", with certificates (impi-node cert)")
}

// secrecy finds routes that require encryption where it is not possible: the job would not
// start.
func (c *checker) secrecy() {
	for _, s := range c.job.Sites {
		if s.Foreign {
			continue
		}
		c.ownRoutes(s)
		for _, other := range c.job.Sites {
			if other.Name != s.Name {
				c.between(s, other)
			}
		}
	}
}

func (c *checker) ownRoutes(s config.Site) {
	if len(c.job.Sites) == 1 && c.job.Complete && len(s.Hosts) == 1 {
		return // there is no other site
	}
	for _, r := range s.Routes {
		if r.RequireTLS && !slices.ContainsFunc(r.Prefer, func(name string) bool { return c.canMeet(s, name, encrypts) }) {
			c.fault(r.Pos, fmt.Sprintf("route %q has require_tls, but no transport in its prefer encrypts: %q", r.Site, r.Prefer),
				c.encryptRemedy()+"; or take require_tls out")
		}
	}
}

func encrypts(caps transports.Capabilities) bool { return caps.Has(transports.FeatureEncrypted) }

func staysInside(caps transports.Capabilities) bool {
	return encrypts(caps) || caps.Reach == transports.ReachMachine
}

func (c *checker) between(a, b config.Site) {
	r := a.RouteTo(b.Name)
	meets, says, without := encrypts, "has require_tls", "take require_tls out"
	switch {
	case r.RequireTLS:
	case r.Closed:
		meets, says, without = staysInside, "has certificates and does not say require_tls = false", "write require_tls = false"
	default:
		return
	}
	pos := r.Pos
	if pos.IsZero() {
		pos = a.Pos
	}
	if other := c.plain(); other != "" {
		c.fault(pos, fmt.Sprintf("route %q %s", r.Site, says)+", and site "+other+" knows only IMPI's plain channels, which all sites must use then",
			without+", and lead the channels through a tunnel")
		return
	}
	back := b.RouteTo(a.Name)
	common := func(name string) bool {
		return slices.Contains(back.Prefer, name) && c.canMeet(a, name, meets) && c.canMeet(b, name, meets)
	}
	own := func(name string) bool { return c.canMeet(a, name, meets) }
	if slices.ContainsFunc(r.Prefer, own) && !slices.ContainsFunc(r.Prefer, common) {
		c.fault(pos, fmt.Sprintf("route %q of site %q %s, and its routes and those of site %q have no transport in common that encrypts: %q and %q", r.Site, a.Name, says, b.Name, r.Prefer, back.Prefer),
			c.encryptRemedy()+"; or "+without)
	}
}

// plain returns a site that has no direct links, because of which the other sites have none
// either.
func (c *checker) plain() string {
	for _, s := range c.job.Sites {
		if s.Foreign || !s.Labels.Own() || s.Protocol.Dialect == config.Draft1999 {
			return fmt.Sprintf("%q", s.Name)
		}
	}
	return ""
}
