package main

import (
	"fmt"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/rendezvous"
)

const oneCA = "make those of all sites of the job with one CA: impi-node cert init, or impi-node cert issue for one site"

// certificates finds sites on this machine that would not accept each other's certificates:
// at the job's server, or on a route that demands encryption.
func (c *checker) certificates() {
	for i, a := range c.local {
		for _, b := range c.local[i+1:] {
			for _, t := range a.Transports {
				if u, ok := b.Transport(t.Name); ok && needed(a, b, t.Name) {
					c.accept(a, t, b, u)
				}
			}
		}
	}
}

// needed reports whether two sites cannot meet if their certificates for a transport do not
// match.
func needed(a, b config.Site, transport string) bool {
	if !wanted(a, transport) || !wanted(b, transport) {
		return false
	}
	atServer := a.Server.TLS != config.TLSOptional || b.Server.TLS != config.TLSOptional
	there, back := a.RouteTo(b.Name), b.RouteTo(a.Name)
	return atServer || there.RequireTLS || there.Closed || back.RequireTLS || back.Closed
}

// accept checks that the certificates of two sites for a transport match. Faults of one
// site's certificates alone are reported elsewhere.
func (c *checker) accept(a config.Site, t config.Transport, b config.Site, u config.Transport) {
	if !t.Builtin || !u.Builtin || !t.HasCertificates() || !u.HasCertificates() {
		return
	}
	ours, err := rendezvous.LoadIdentity(t.SettingMap(), t.Dir)
	if err != nil {
		return
	}
	theirs, err := rendezvous.LoadIdentity(u.SettingMap(), u.Dir)
	if err != nil {
		return
	}
	if err := ours.Accepts(theirs); err != nil {
		c.found = append(c.found, c.job.TransportFault(t, "ca", fmt.Sprintf("site %q does not accept site %q: %s", a.Name, b.Name, ours.Explain(err)), oneCA))
	} else if err := theirs.Accepts(ours); err != nil {
		c.found = append(c.found, c.job.TransportFault(u, "ca", fmt.Sprintf("site %q does not accept site %q: %s", b.Name, a.Name, theirs.Explain(err)), oneCA))
	}
}
