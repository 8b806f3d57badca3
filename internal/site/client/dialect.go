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
	var file []wire.Version
	for _, v := range site.Labels.Versions {
		file = append(file, wire.Version(v))
	}
	able := startup.Abilities{Foreign: c.Foreign, Draft: c.Dialect == wire.Draft, Allowances: site.Protocol.Unexpected > 0, Survives: survive}
	c.Versions = able.Announce(file)
	for _, name := range site.Labels.Omit {
		l, ok := wire.LabelCalled(name)
		if !ok {
			return fmt.Errorf("site %s: no label is called %q", site.Name, name)
		}
		c.Omit = append(c.Omit, l)
	}
	return nil
}
