package client

import (
	"fmt"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// Dialect returns how the site's packets are written.
func Dialect(site config.Site) wire.Dialect {
	if site.Protocol.Dialect == config.Draft1999 {
		return wire.Draft
	}
	return wire.Published
}

func hostIDForm(site config.Site) wire.HostIDForm {
	if site.Protocol.IPv4 == config.IPv4Mapped {
		return wire.IPv4Mapped
	}
	return wire.IPv4Compatible
}

func announce(c *startup.ClientConfig, site config.Site, survive bool) error {
	c.Dialect = Dialect(site)
	c.Foreign = !site.Labels.Own()
	for _, v := range site.Labels.Versions {
		if v := wire.Version(v); v != wire.Version00 && v != wire.PrivateVersion && v != wire.AllowsVersion && v != wire.OnDemandVersion && v != wire.FailVersion && v != wire.LostVersion && v != wire.SurviveVersion && v != wire.AskVersion {
			c.Versions = append(c.Versions, v)
		}
	}
	room := startup.MaxVersions - 2 - len(c.Versions) // after 0.0 and ours
	add := func(v wire.Version, has bool) {
		if has && !c.Foreign && room > 0 {
			c.Versions = append(c.Versions, v)
			room--
		}
	}
	add(wire.OnDemandVersion, true)
	add(wire.AllowsVersion, c.Dialect != wire.Draft && site.Protocol.Unexpected > 0)
	add(wire.FailVersion, c.Dialect != wire.Draft)
	add(wire.LostVersion, c.Dialect != wire.Draft)
	add(wire.SurviveVersion, survive)
	add(wire.AskVersion, c.Dialect != wire.Draft)
	for _, name := range site.Labels.Omit {
		l, ok := wire.LabelCalled(name)
		if !ok {
			return fmt.Errorf("site %s: no label is called %q", site.Name, name)
		}
		c.Omit = append(c.Omit, l)
	}
	return nil
}
